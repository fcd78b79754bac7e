"""Attention of extensive rank: width proportional to d, n = alpha d^2 sentences."""

#: Numbers of a solution, and their long names.
QUANTITIES = {
    "q": "tr S^2/d",
    "m": "tr S S*/d",
    "V": "response V",
    "trace": "tr S/d",
    "rank": "fraction of positive eigenvalues of S",
    "shift": "positional shift u of the scores",
    "train_loss": "training loss per d^2",
    "test_error": "test error",
}
