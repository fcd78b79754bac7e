"""``adam``: full-batch Adam; steps are the paper's."""

from __future__ import annotations

import optax

from dotphase.training.loop import Optimiser, first_order

OPTIMISER = Optimiser(first_order(optax.adam), steps=2500, lr=0.01, end_steps=1500, end_lr=0.03)
