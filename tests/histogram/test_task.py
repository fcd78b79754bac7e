"""Sequences and their counts."""

import numpy as np
import pytest

from dotphase.errors import InvalidInput
from dotphase.histogram.task import Task, count, draw, parse

SMALL = Task(symbols=4, length=5, samples=300)


def test_counts_of_a_known_sequence():
    sequence = parse("BBCCDDBBBB", 15, 10)
    assert count(sequence[None])[0].tolist() == [6, 6, 2, 2, 2, 2, 6, 6, 6, 6]


def test_split_has_no_sequence_twice_and_the_right_shares():
    split = draw(SMALL, seed=3)
    drawn = np.concatenate([split.train, split.held_out])
    assert len(np.unique(drawn, axis=0)) == len(drawn) < SMALL.samples
    assert len(split.train) == int(0.7 * len(drawn))
    assert drawn.min() == 0 and drawn.max() == SMALL.symbols - 1
    for sequences, counts in (split[:2], split[2:]):
        expected = [[list(row).count(token) for token in row] for row in sequences]
        np.testing.assert_array_equal(counts, expected)


def test_the_seed_decides():
    first, again, other = draw(SMALL, 1), draw(SMALL, 1), draw(SMALL, 2)
    np.testing.assert_array_equal(first.train, again.train)
    assert not np.array_equal(first.train[:50], other.train[:50])


def test_the_order_is_random():
    # Removal of duplicates sorts; the halves must not be those of the alphabet.
    split = draw(SMALL, 0)
    assert abs(split.train[:, 0].mean() - split.held_out[:, 0].mean()) < 0.5


@pytest.mark.parametrize("text", ["BBCCDDBBB", "BBCCDDBBBBB", "", "BBCCDDBBBP", "bbccddbbbb", 7])
def test_bad_sequences_are_refused_in_one_line(text):
    with pytest.raises(InvalidInput, match="10 letters from A to O") as caught:
        parse(text, 15, 10)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"), [("symbols", 1), ("symbols", 27), ("length", 1), ("samples", 9)]
)
def test_bad_tasks(field, value):
    with pytest.raises(InvalidInput, match=field):
        Task(**{field: value})
