"""JAX functions for training procedures of your own: data, loss, gradient, start, test error.

`dotphase.train` has the usual optimizers. For another procedure, combine these functions inside
`jax.jit` and `jax.vmap`:

1. `position_vectors` and `draw_dataset` make a data set, `initial_weights` the weights Q.
2. `reduce` prepares the data set for `value_and_gradient`, the training loss and its gradient in Q.
3. `token_overlaps`, `attention_error` and `linear_error` measure weights. The errors are averages
   over the `quadrature` of the model.

Arrays are in double precision inside `jax.enable_x64(True)`.
"""

from dotphase._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
