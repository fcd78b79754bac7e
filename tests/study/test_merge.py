"""Studies that grow, and studies that are merged, keep all finished points."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
import fake_task  # noqa: F401
from dotphase.cli.main import _run
from dotphase.storage.journal import read_journal
from dotphase.study.identity import new_indices, union


def fake(xs, seeds=2, fixed=None, **sweep):
    return dp.Study("fake", fixed, {"x": xs, **sweep}, seeds)


def run(study, folder):
    """Run a study; return its dataset and how many points the folder already had."""
    events = []
    dataset = dp.run_study(study, folder, engine="serial", progress=events.append)
    return dataset, events[0].done


def assert_same_values(first, second):
    xr.testing.assert_identical(first.drop_attrs(), second.drop_attrs())


@pytest.mark.parametrize(
    ("grown", "kept"),
    [
        (fake([1.0, 2.0, 3.0]), 4),
        (fake([0.5, 2.0, 1.0], seeds=[5, 1, 0]), 4),
        (fake([1.0, 2.0], kind=["vague", "good"]), 4),
        (dp.Study("fake", None, {"kind": ["good", "vague"], "x": [2.0, 1.0, 7.0]}, 3), 4),
        (fake({"start": 0, "stop": 3, "count": 7}), 4),
    ],
    ids=["values", "seeds", "axis", "order", "grid"],
)
def test_a_study_that_grows_keeps_its_points(tmp_path, grown, kept):
    before, _ = run(fake([1.0, 2.0]), tmp_path / "s")
    dataset, had = run(grown, tmp_path / "s")
    assert had == kept and dataset["done"].all()
    assert_same_values(dataset, run(grown, tmp_path / "afresh")[0])
    old = dataset.sel(x=before["x"], seed=before["seed"])
    old = old.sel(kind="good", drop=True) if "kind" in old.dims else old
    xr.testing.assert_equal(old["value"], before["value"])
    assert run(grown, tmp_path / "s")[1] == grown.size
    assert dp.read_study(tmp_path / "s").attrs["specification"] == json.dumps(grown.to_dict())


def test_numbers_of_a_longer_grid_are_the_same_points(tmp_path):
    short = {"start": 0.1, "stop": 0.25, "count": 4}
    long = {"start": 0.1, "stop": 0.4, "count": 7}
    assert fake(short).sweep["x"] != fake(long).sweep["x"][:4]
    run(fake(short), tmp_path)
    assert run(fake(long), tmp_path)[1] == 8


def test_a_study_never_loses_finished_points(tmp_path):
    run(fake([1.0, 2.0]), tmp_path)
    before = read_journal(tmp_path)
    for other in (fake([1.0, 3.0]), fake([1.0, 2.0], 1), fake([1.0, 2.0], fixed={"kind": "vague"}),
                  dp.Study("regression", None, {"alpha": [1.0]})):  # fmt: skip
        with pytest.raises(dp.InvalidInput, match=r"another configuration.*: use a new folder"):
            dp.run_study(other, tmp_path, engine="serial")
    assert read_journal(tmp_path) == before


def test_the_text_of_a_model_is_part_of_a_point(tmp_path):
    file = tmp_path / "model.py"
    texts = ["import dotphase\nmodel = dotphase.positional_semantic()\n"]
    texts += [texts[0] + "# changed\n"]
    studies = []
    for text in texts:
        file.write_text(text)
        studies.append(dp.Study("theory", {"alpha": 1.0}, model=f"{file}:model"))
    first, changed = studies
    assert new_indices(first, changed) is None
    assert new_indices(dp.Study.restore(first.to_dict()), first).tolist() == [0]
    with pytest.raises(dp.InvalidInput, match="must have the task and the model"):
        union(first, changed)


def test_studies_are_merged(tmp_path, capsys):
    run(fake([1.0, 3.0]), tmp_path / "a")
    run(fake([2.0, 3.0], seeds=[1, 4], kind=["good", "bad"]), tmp_path / "b")
    folders = [str(tmp_path / name) for name in ("a", "b")]
    assert _run(["study", "merge", *folders, "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["done"], status["failed"], status["total"]) == (7, 0, 18)
    merged = xr.load_dataset(tmp_path / "a" / "study.nc")
    assert merged["x"].values.tolist() == [1, 2, 3] and merged["seed"].values.tolist() == [0, 1, 4]
    value = merged["value"].sel(kind="good").values
    exact = merged["x"].values[:, None] / 3 + merged["seed"].values
    np.testing.assert_array_equal(value[np.isfinite(value)], exact[np.isfinite(value)])
    assert np.isfinite(value).sum() == 7
    assert dp.read_study(tmp_path / "b").sizes["x"] == 2  # unchanged
    study = fake([1.0, 2.0, 3.0], seeds=[0, 1, 4], kind=["good", "bad"])
    assert run(study, tmp_path / "a")[1] == 7


def test_a_new_folder_receives_the_points_of_several(tmp_path):
    for name, seeds in (("a", [0, 1]), ("b", [2])):
        run(fake([1.0, 2.0], seeds), tmp_path / name)
    merged = dp.analysis.merge_studies(tmp_path / "all", tmp_path / "b", tmp_path / "a")
    assert_same_values(merged, run(fake([1.0, 2.0], [0, 1, 2]), tmp_path / "at once")[0])
    with pytest.raises(dp.InvalidInput, match="must differ"):
        dp.analysis.merge_studies(tmp_path / "a", tmp_path / "a")
    run(dp.Study("regression", None, {"alpha": [1.0]}), tmp_path / "other")
    with pytest.raises(dp.InvalidInput, match="must have the task"):
        dp.analysis.merge_studies(tmp_path / "all", tmp_path / "other")
    assert_same_values(dp.read_study(tmp_path / "all"), merged)
