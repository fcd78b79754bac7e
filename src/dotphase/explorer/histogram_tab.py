"""The histogram tab: attention and counts of two trained transformers for a typed sequence."""

from functools import lru_cache
from typing import Any

import numpy as np

from dotphase.histogram.introspect import attention, predict
from dotphase.histogram.network import MECHANISMS, Network
from dotphase.histogram.task import count, parse
from dotphase.histogram.weights import shipped

#: Sequence that the tab shows first: both networks count it right.
EXAMPLE = "AAAABBBCCD"


@lru_cache(maxsize=2)
def network(mechanism: str) -> Network:
    """A trained network of the package, read once."""
    return shipped(mechanism)


def inspect_sequence(text: str) -> dict[str, Any]:
    """True counts, and attention and counts of both networks, for upper or lower case letters."""
    sequence = text.strip().upper() if text.isascii() else text
    first = network(MECHANISMS[0])
    tokens = parse(sequence, first.symbols, first.length)
    networks = {name: network(name) for name in MECHANISMS}
    answers = {
        name: {"attention": attention(trained, sequence), "counts": predict(trained, sequence)}
        for name, trained in networks.items()
    }
    return {"sequence": sequence, "counts": count(np.asarray([tokens]))[0], "networks": answers}
