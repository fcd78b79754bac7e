"""JAX functions for training procedures of your own: data, loss, gradient, start, test error.

`dotphase.train` has the usual optimizers. For another procedure, combine these functions inside
`jax.jit` and `jax.vmap`:

1. `position_vectors` and `draw_dataset` make a data set, `initial_weights` the weights Q.
2. `reduce` prepares the data set for `value_and_gradient`, the training loss and its gradient in Q.
3. `token_overlaps`, `attention_error` and `linear_error` measure weights. The errors are averages
   over the `quadrature` of the model.

Arrays are in double precision inside `jax.enable_x64(True)`.
"""

from dotphase.finite_d.datasets import count_sentences, draw_dataset, position_vectors
from dotphase.finite_d.initialization import initial_weights, resolve_start
from dotphase.finite_d.loss import project, reduce, token_products, value_and_gradient
from dotphase.finite_d.overlaps import token_overlaps
from dotphase.finite_d.test_error import attention_error, linear_error, quadrature

__all__ = [
    "attention_error",
    "count_sentences",
    "draw_dataset",
    "initial_weights",
    "linear_error",
    "position_vectors",
    "project",
    "quadrature",
    "reduce",
    "resolve_start",
    "token_overlaps",
    "token_products",
    "value_and_gradient",
]
