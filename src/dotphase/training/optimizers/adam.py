"""``adam``: full-batch Adam with the paper's number and size of steps."""

import optax

from dotphase.training.loop import Optimizer, first_order

OPTIMIZER = Optimizer(
    first_order(optax.adam), steps=2500, lr=0.01, endpoint_steps=1500, endpoint_lr=0.03
)
