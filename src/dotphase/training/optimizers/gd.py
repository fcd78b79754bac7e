"""``gd``: full-batch gradient descent, ``Q <- Q - lr * gradient``, steps as in the paper."""

import optax

from dotphase.training.loop import Optimizer, first_order

OPTIMIZER = Optimizer(
    first_order(optax.sgd), steps=5000, lr=0.15, endpoint_steps=3000, endpoint_lr=1.0
)
