"""Parameters of the page from and to the query of an address."""

import numpy as np
import pytest

from dotphase.app.state import Point, read_point, whole
from dotphase.errors import InvalidInput


def test_a_link_gives_the_same_point_back():
    point = Point(alpha=1.234567, omega=0.123, sigma=0.45, ridge=0.0005, mixing="0.7,0.35")
    assert read_point({name: str(value) for name, value in point.to_dict().items()}) == point
    assert read_point({}) == Point()


def test_the_matrix_has_rows_that_sum_to_one():
    np.testing.assert_allclose(Point(mixing="0.7,0.35").matrix, [[0.7, 0.3], [0.65, 0.35]])
    assert Point(mixing="other").matrix == [[0.3, 0.7], [0.8, 0.2]]
    assert read_point({"mixing": "0.3,0.2"}).mixing == "other"
    np.testing.assert_allclose(Point(mixing="0.7,0.35").model().teacher.mixing.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("alpha", "0"),
        ("alpha", "nan"),
        ("alpha", "inf"),
        ("alpha", "1e9"),
        ("alpha", "<script>"),
        ("alpha", "1" * 10_000),
        ("omega", "-0.1"),
        ("omega", "1.01"),
        ("sigma", ""),
        ("ridge", "0"),
        ("mixing", "strange"),
        ("mixing", "0.5"),
        ("mixing", "0.5,nan"),
        ("mixing", "../A.json"),
        ("mixing", "1.5,0.2"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(name, text):
    with pytest.raises(InvalidInput) as caught:
        read_point({name: text})
    assert caught.value.field == name
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", "1.5", "-1", "11", "٣", "1e1", "9" * 5000])
def test_whole_numbers(text):
    assert whole("d", "7", 0, 10) == 7
    with pytest.raises(InvalidInput):
        whole("d", text, 0, 10)
