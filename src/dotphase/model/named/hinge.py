"""A support vector machine: one token, labels ``sign(h + noise z)``."""

from dotphase.model.named._one_token import INSIDE, one_token

MODEL = one_token(
    INSIDE, "The hinge loss on the signs of a linear teacher.",
    teacher="NoisySign", loss="hinge", metric="wrong_sign", proximal="hinge_proximal",
)  # fmt: skip
