"""``momentum``: full-batch gradient descent with heavy-ball momentum.

``Q <- Q - lr * gradient + momentum * (Q - Q before)``.
"""

from __future__ import annotations

import optax

from dotphase.training.loop import Method, Objective, Optimiser, Schedule, first_order


def heavy_ball(objective: Objective, schedule: Schedule) -> Method:
    """Optax's momentum, which is this rule for steps of one size."""
    build = first_order(lambda lr: optax.sgd(lr, momentum=schedule.momentum))
    return build(objective, schedule)


OPTIMISER = Optimiser(heavy_ball, steps=2000, lr=0.15, end_steps=1500, end_lr=1.0)
