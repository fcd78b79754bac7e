"""Parameters of the page from and to the query of an address."""

import threading

import numpy as np
import pytest

from dotphase.errors import InvalidInput
from dotphase.explorer.point import Point, initial_point, mixing_matrix, parse_integer


def parse_point(query):
    """The point of a query on the paper's page."""
    return Point().family.parse(query, Point())


def test_a_link_gives_the_same_point_back():
    point = Point(alpha=1.234567, omega=0.123, ridge=0.0005, mixing="0.7,0.35", student_rank=2)
    assert parse_point({name: str(value) for name, value in point.to_dict().items()}) == point
    assert parse_point({}) == Point()


def test_the_matrix_has_rows_that_sum_to_one():
    np.testing.assert_allclose(mixing_matrix("0.7,0.35"), [[0.7, 0.3], [0.65, 0.35]])
    assert mixing_matrix("other") == [[0.3, 0.7], [0.8, 0.2]]
    assert parse_point({"mixing": "0.3,0.2"})["mixing"] == "other"
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
        ("student_rank", "4"),
        ("student_rank", "1.5"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(name, text):
    with pytest.raises(InvalidInput) as caught:
        parse_point({name: text})
    assert caught.value.field == name
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", "1.5", "-1", "11", "٣", "1e1", "9" * 5000])
def test_whole_numbers(text):
    assert parse_integer("d", "7", 0, 10) == 7
    with pytest.raises(InvalidInput):
        parse_integer("d", text, 0, 10)


OWN = """
import dotphase as dp


def mine(weight: float = 0.2, layers: int = 3, ridge: float = 0.01, bright: bool = False):
    if weight > 1:
        raise ValueError("weight is at most 1")
    return dp.positional_semantic(omega=weight, ridge=ridge)


def demanding(weight: float):
    return dp.positional_semantic(omega=weight)
"""


def test_a_model_of_the_users_own_has_its_parameters_as_controls(tmp_path):
    file = tmp_path / "models.py"
    file.write_text(OWN)
    begin = initial_point(f"{file}:mine", ["weight=0.4"])
    assert begin["weight"] == 0.4 and begin.family.vertical == "weight"
    controls = {control["name"]: control for control in begin.family.controls(begin)}
    assert list(controls) == ["alpha", "weight", "layers", "ridge", "bright"]
    assert (controls["weight"]["low"], controls["weight"]["high"]) == (0.0, 1.0)
    assert controls["ridge"]["logarithmic"] and "low" not in controls["bright"]
    asked = {"weight": "0.3", "layers": "2", "bright": "true", "reference": "/etc/passwd:x"}
    point = begin.family.parse(asked, begin)
    assert point == begin.replace(weight=0.3, layers=2, bright=True)
    assert Point(**point.to_dict()) == point and point.reference == f"{file}:mine"
    assert float(point.model().teacher.omega) == 0.3
    with pytest.raises(InvalidInput, match="at most 1"):
        begin.family.parse({"weight": "2"}, begin)
    with pytest.raises(InvalidInput, match="weight"):
        initial_point(f"{file}:demanding", [])
    with pytest.raises(InvalidInput, match="--model"):
        initial_point(None, ["omega=0.1"])


def test_a_model_that_loops_is_refused_after_a_while(tmp_path, monkeypatch):
    file, before = tmp_path / "loops.py", threading.active_count()
    file.write_text(
        "from pathlib import Path\nimport dotphase as dp\n"
        "def model(ridge: float = 0.01):\n"
        f"    while not Path({str(tmp_path / 'stop')!r}).exists(): pass\n"
        "    return dp.positional_semantic(ridge=ridge)\n"
    )
    monkeypatch.setattr("dotphase.explorer.point.MODEL_SECONDS", 0.1)
    point = Point(reference=f"{file}:model")
    try:
        for _ in range(5):
            with pytest.raises(InvalidInput, match=r"took longer than 0.1 s: .* loop for ever"):
                point.model()
        assert threading.active_count() == before + 1
    finally:
        (tmp_path / "stop").touch()
