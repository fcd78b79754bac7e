"""``momentum``: full-batch gradient descent with heavy-ball momentum.

``Q <- Q - lr * gradient + momentum * (Q - Q before)``.
"""

from __future__ import annotations

from typing import Any

import optax

from dotphase.training.loop import Method, Objective, Optimizer, Schedule, first_order


def heavy_ball(objective: Objective, schedule: Schedule) -> Method:
    """This rule also where the size of the steps changes, unlike Optax's own momentum."""

    def transform(lr: Any) -> optax.GradientTransformation:
        return optax.chain(optax.scale_by_learning_rate(lr), optax.trace(schedule.momentum))

    return first_order(transform)(objective, schedule)


OPTIMIZER = Optimizer(heavy_ball, steps=2000, lr=0.15, end_steps=1500, end_lr=1.0)
