"""``adam``: full-batch Adam; steps are the paper's."""

from __future__ import annotations

import optax

from dotphase.training.loop import Optimizer, first_order

OPTIMIZER = Optimizer(first_order(optax.adam), steps=2500, lr=0.01, end_steps=1500, end_lr=0.03)
