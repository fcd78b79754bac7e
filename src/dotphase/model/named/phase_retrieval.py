"""Phase retrieval: one token, labels ``h^2 + noise z``."""

from dotphase.model.named._one_token import ADDED, one_token

MODEL = one_token(
    ADDED, "Phase retrieval: the teacher's field without its sign.",
    teacher="Intensity", loss="intensity_loss", metric="intensity_error",
)  # fmt: skip
