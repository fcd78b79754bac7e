"""Regression with the absolute value as loss: one token, labels ``h + noise z``."""

from dotphase.model.named._one_token import ADDED, one_token

MODEL = one_token(
    ADDED, "Least absolute deviations on noisy labels.", noise=0.5,
    teacher="NoisyField", loss="absolute", metric="squared_error", proximal="absolute_proximal",
)  # fmt: skip
