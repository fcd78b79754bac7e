"""Logistic regression: one token, labels ``sign(h + noise z)``."""

from dotphase.model.named._one_token import INSIDE, one_token

MODEL = one_token(
    INSIDE, "Logistic regression on the signs of a linear teacher.",
    teacher="NoisySign", loss="logistic", metric="wrong_sign",
)  # fmt: skip
