"""``momentum``: full-batch gradient descent with heavy-ball momentum.

``Q <- Q - lr * gradient + momentum * (Q - Q_previous)``.
"""

from typing import Any

import optax

from dotphase.training.loop import Method, Objective, Optimizer, Schedule, first_order


def heavy_ball(objective: Objective, schedule: Schedule) -> Method:
    """Build the rule above. Optax's own momentum differs from it if the step size changes."""

    def transform(lr: Any) -> optax.GradientTransformation:
        return optax.chain(optax.scale_by_learning_rate(lr), optax.trace(schedule.momentum))

    return first_order(transform)(objective, schedule)


OPTIMIZER = Optimizer(heavy_ball, steps=2000, lr=0.15, endpoint_steps=1500, endpoint_lr=1.0)
