"""The histogram tab: what two trained transformers make of a typed sequence."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dotphase.histogram.introspect import attention, predict
from dotphase.histogram.network import MECHANISMS, Network
from dotphase.histogram.task import count, parse
from dotphase.histogram.weights import shipped

#: What is shown before anything is typed: both networks count it right.
EXAMPLE = "AAAABBBCCD"


@lru_cache(maxsize=2)
def network(mechanism: str) -> Network:
    """A trained network that comes with the package, read once."""
    return shipped(mechanism)


def look(text: str) -> dict[str, Any]:
    """True counts, and attention and counts of both networks, for a sequence.

    Parameters
    ----------
    text : str
        Letters, large or small; anything else raises `InvalidInput`.
    """
    sequence = text.strip().upper() if text.isascii() else text
    first = network(MECHANISMS[0])
    tokens = parse(sequence, first.symbols, first.length)
    answers = {
        name: {"attention": attention(one, sequence), "counts": predict(one, sequence)}
        for name, one in ((name, network(name)) for name in MECHANISMS)
    }
    return {"sequence": sequence, "counts": count(np.asarray([tokens]))[0], "networks": answers}
