"""``sgd``: gradient descent on mini-batches, drawn anew without repetition in every step."""

import optax

from dotphase.training.loop import Optimizer, first_order

OPTIMIZER = Optimizer(
    first_order(optax.sgd, minibatch=True),
    steps=5000,
    lr=0.15,
    endpoint_steps=6000,
    endpoint_lr=0.3,
)
