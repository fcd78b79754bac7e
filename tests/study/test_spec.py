"""What a study may say, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dotphase as dp
from dotphase.config.parameters import REQUIRED
from dotphase.study.tasks import TASKS

GOOD = """
task = "theory"
seeds = [3, 5]
[fixed]
log2_points = 12
[sweep]
alpha = { start = 1.0, stop = 2.0, count = 3 }
branch = ["semantic", "positional"]
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "spec.toml"
    file.write_text(text)
    return file


def test_a_file_becomes_a_grid(tmp_path):
    study = dp.read_spec(write(tmp_path, GOOD))
    assert study.shape == (3, 2, 2) and study.size == 12
    assert list(study.dimensions) == ["alpha", "branch", "seed"]
    assert study.sweep["alpha"] == (1.0, 1.5, 2.0)
    assert study.fixed["omega"] == 0.3 and study.fixed["log2_points"] == 12
    parameters, seed = study.point(7)
    assert (parameters["alpha"], parameters["branch"], seed) == (1.5, "positional", 5)
    assert study.labels(7) == {"alpha": 1.5, "branch": "positional", "seed": 5}
    assert dp.Study.restore(json.loads(json.dumps(study.to_dict()))) == study


def test_every_point_is_met_once(tmp_path):
    study = dp.read_spec(write(tmp_path, GOOD))
    places = {tuple(study.labels(index).values()) for index in range(study.size)}
    assert len(places) == study.size


def test_defaults_spelled_out_are_the_same_study():
    short = dp.Study("theory", sweep={"alpha": [1.0]})
    long = dp.Study("theory", fixed={"omega": 0.3, "branch": "semantic"}, sweep={"alpha": [1.0]})
    assert short == long


def test_whole_and_logarithmic_grids():
    study = dp.Study(
        "train",
        fixed={"alpha": 1.0},
        sweep={
            "d": {"start": 100, "stop": 300, "count": 3},
            "ridge": {"start": 1e-3, "stop": 0.1, "count": 3, "spacing": "log"},
            "sigma": np.array([0.5, 0.7]),
        },
    )
    assert study.sweep["d"] == (100, 200, 300)
    np.testing.assert_allclose(study.sweep["ridge"], [1e-3, 1e-2, 0.1])
    assert study.seeds == (0,)


def test_a_mixing_file_is_read_beside_the_specification(tmp_path):
    (tmp_path / "a.json").write_text("[[0.3, 0.7], [0.8, 0.2]]")
    text = GOOD.replace("[fixed]", '[fixed]\nmixing = "a.json"')
    study = dp.read_spec(write(tmp_path, text))
    assert study.fixed["mixing"] == [[0.3, 0.7], [0.8, 0.2]]
    swept = GOOD + 'mixing = ["standard", "a.json"]'
    assert dp.read_spec(write(tmp_path, swept)).sweep["mixing"][1] == [[0.3, 0.7], [0.8, 0.2]]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("task =", "tsak =", ["tsak", "did you mean task"]),
        ('"theory"', '"theroy"', ["theroy", "did you mean theory"]),
        ('task = "theory"', "", ["task", "theory, online, train, amp, critical"]),
        ("log2_points =", "log2_pionts =", ["fixed.log2_pionts", "did you mean log2_points"]),
        ("branch =", "brunch =", ["sweep.brunch", "did you mean branch"]),
        ("branch =", "d =", ["sweep.d", "theory study"]),
        ("[sweep]", "[sweeps]", ["sweeps", "did you mean sweep"]),
        ("log2_points = 12", "alpha = 1.0", ["sweep.alpha", "must not be fixed as well"]),
        ("[3, 5]", "[3, -5]", ["seeds", "-5"]),
        ("[3, 5]", "-1", ["seeds", "-1"]),
        ("[3, 5]", "[]", ["seeds"]),
        ("[3, 5]", "[3, 3]", ["seeds"]),
        ("[3, 5]", "1.5", ["seeds", "1.5"]),
        ("[3, 5]", '"all"', ["seeds", "all"]),
        ("log2_points = 12", "log2_points = 3", ["fixed.log2_points", "3"]),
        ("log2_points = 12", "omega = nan", ["fixed.omega", "nan"]),
        ("log2_points = 12", "omega = '0.3'", ["fixed.omega", "0.3", "number"]),
        ("log2_points = 12", "omega = [0.3]", ["fixed.omega"]),
        ("log2_points = 12", "seed = 1", ["fixed.seed", "seeds"]),
        ("log2_points = 12", 'mixing = "no.json"', ["mixing", "no.json"]),
        ("count = 3", "count = 0", ["sweep.alpha.count", "0"]),
        ("count = 3", "cuont = 3", ["sweep.alpha.cuont", "did you mean count"]),
        (", count = 3", "", ["sweep.alpha", "count"]),
        ("start = 1.0", "start = nan", ["sweep.alpha.start", "nan"]),
        ("start = 1.0", "start = -1.0", ["sweep.alpha", "-1.0"]),
        ("start = 1.0", "start = 2.0", ["sweep.alpha", "twice"]),
        ("count = 3", "count = 1", ["sweep.alpha.count"]),
        ("{ start = 1.0, stop = 2.0, count = 3 }", "[]", ["sweep.alpha", "[]"]),
        ("{ start = 1.0, stop = 2.0, count = 3 }", "[1.0, inf]", ["sweep.alpha", "inf"]),
        ("{ start = 1.0, stop = 2.0, count = 3 }", "1.0", ["sweep.alpha", "list"]),
        ("branch =", "omega = [1.5]\nbranch =", ["sweep.omega", "1.5"]),
        ("alpha = { start = 1.0, stop = 2.0, count = 3 }", "", ["alpha", "fixed or swept"]),
        ('"positional"]', '"postional"]', ["sweep.branch", "postional"]),
        ("[fixed]", "[fixed", ["TOML"]),
        ("seeds =", 'task = "amp"\nseeds =', ["TOML"]),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, old, new, parts):
    assert old in GOOD
    file = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(dp.InvalidInput) as caught:
        dp.read_spec(file)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("field", ["task", "model"])
def test_what_is_no_text_is_refused(field):
    for value in (None, 1.5, 10**5000):  # Python refuses to write down the last one
        given = {"task": "theory", "sweep": {"alpha": [1.0]}, field: value}
        with pytest.raises(dp.InvalidInput, match=f"^{field} = "):
            dp.Study(**given)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(dp.InvalidInput, match=r"no\.toml"):
        dp.read_spec(tmp_path / "no.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(dp.InvalidInput, match="UTF-8"):
        dp.read_spec(tmp_path / "binary.toml")


def test_values_that_do_not_fit_together_are_refused_before_the_first_point():
    sweep = {"alpha": [1.0], "kinds": [2, 3], "length": [3, 2]}
    with pytest.raises(dp.InvalidInput, match="kinds = 3: must be an integer >= 2 and <= 2"):
        dp.Study("theory", sweep=sweep)


def test_too_many_points_are_refused():
    with pytest.raises(dp.InvalidInput, match="points"):
        dp.Study("theory", sweep={"alpha": {"start": 1, "stop": 2, "count": 2000}}, seeds=100_000)


@pytest.mark.parametrize("task", list(TASKS))
def test_defaults_are_allowed_values(task):
    for name, parameter in TASKS[task].parameters.items():
        if parameter.default is not REQUIRED and parameter.default is not None:
            assert parameter.type.check(name, parameter.default) == parameter.default


def test_the_example_is_a_study():
    example = Path(__file__).parents[2] / "studies" / "branches.toml"
    assert dp.read_spec(example).size == 84


def test_files_of_windows_editors_are_read(tmp_path):
    mark = b"\xef\xbb\xbf"
    (tmp_path / "matrix.json").write_bytes(mark + b"[[0.6, 0.4], [0.4, 0.6]]")
    text = "import dotphase as dp\r\nmodel = dp.positional_semantic(mixing='matrix.json')\r\n"
    text = text.replace("'matrix.json'", repr(str(tmp_path / "matrix.json")))
    (tmp_path / "model.py").write_bytes(mark + text.encode())
    spec = b'task = "theory"\r\nmodel = "model.py:model"\r\n[fixed]\r\nalpha = 1.0\r\n'
    (tmp_path / "spec.toml").write_bytes(mark + spec)
    assert dp.read_spec(tmp_path / "spec.toml").model.find().build().length == 2
