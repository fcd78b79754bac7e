"""``sgd``: gradient descent on mini-batches, for every step a new random one without repetition."""

from __future__ import annotations

import optax

from dotphase.training.loop import Optimizer, first_order

OPTIMIZER = Optimizer(
    first_order(optax.sgd, minibatch=True), steps=5000, lr=0.15, end_steps=6000, end_lr=0.3
)
