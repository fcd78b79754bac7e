"""``gd``: full-batch gradient descent, ``Q <- Q - lr * gradient``; steps are the paper's."""

from __future__ import annotations

import optax

from dotphase.training.loop import Optimizer, first_order

OPTIMIZER = Optimizer(first_order(optax.sgd), steps=5000, lr=0.15, end_steps=3000, end_lr=1.0)
