"""Saved results: exact round trips, and refusals in one line."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from typing import Any, NamedTuple

import equinox as eqx
import h5py
import jax
import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.model.attention import softmax_attention
from dotphase.model.paper import positional_semantic
from dotphase.storage import results
from dotphase.storage.encoding import UnsavedFunction
from result_checks import assert_same


class Part(NamedTuple):
    theta: np.ndarray
    m: np.ndarray


@dataclass(frozen=True, eq=False)
class Verdict:
    kind: str
    towards: tuple[str, ...] = ()
    multipliers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Measurement(results.Result):
    model: Any
    alpha: float
    d: int | None
    converged: bool
    message: str
    overlaps: Part
    verdict: Verdict
    values: Any = None


@dataclass(frozen=True)
class Settings:
    seed: int = 7
    rtol: float = 1e-3


@dataclass(frozen=True, eq=False)
class WithSettings(results.Result):
    settings: Settings


@pytest.mark.parametrize(("name", "module"), results.SAVED_CLASSES.items())
def test_saved_classes_are_where_the_table_says(name, module):
    assert is_dataclass(getattr(import_module(module), name))


@pytest.fixture(autouse=True)
def saved_classes(monkeypatch):
    """Let files contain the classes of this module."""
    monkeypatch.setattr("dotphase.storage.encoding.CLASS_MODULES", ("dotphase", __name__))
    names = dict.fromkeys(("Measurement", "WithSettings"), __name__)
    monkeypatch.setattr(results, "SAVED_CLASSES", names)


def measurement(values=None, model=None) -> Measurement:
    overlaps = Part(np.array([[0.1 + 0.2], [-0.0]]), np.array([5e-324, np.pi, np.inf]))
    verdict = Verdict("saddle", ("semantic", "mixed"), {"theta": np.nextafter(1.0, 2.0)})
    return Measurement(model, 1 / 3, None, True, "größer\n'als'", overlaps, verdict, values)


def saved_and_loaded(result, path):
    assert result.save(path) == path
    return dp.load(path)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        2**70,
        -0.0,
        float("nan"),
        float("-inf"),
        "",
        [],
        (),
        {},
        [1, (2.5, None), {"a": {"b": [False]}}],
        {3: "three", "alpha": 1.0, (1, 2): 0.5},
        np.zeros((0, 3)),
        np.array(1.5),
        np.array([True, False]),
        np.array([1, -(2**63)]),
        np.array([1.5], dtype=np.float32),
        np.frombuffer(np.uint64([0xFFF8000000000001, 0x7FF8000000000000])),
        np.array(["uninformed", "größer"]),
        (Verdict("minimum"), [Verdict("marginal")]),
    ],
    ids=repr,
)
def test_values_keep_their_types_and_bits(tmp_path, value):
    result = measurement(value)
    assert_same(saved_and_loaded(result, tmp_path / "a.nc"), result)


def test_arrays_of_jax_stay_arrays_of_jax(tmp_path):
    with jax.enable_x64(True):
        values = jax.numpy.array([0.1, 0.2])
    result = measurement({"wide": values, "narrow": jax.numpy.ones(2, "float32")})
    assert_same(saved_and_loaded(result, tmp_path / "a.nc"), result)


def test_datasets_inside_results_are_restored(tmp_path):
    dataset = xr.Dataset(
        {"loss": (("seed", "step"), np.array([[0.1, np.nan]]), {"units": "1"})},
        coords={"step": [0, 5], "branch": ("seed", ["semantic"])},
        attrs={"start": "random"},
    )
    loaded = saved_and_loaded(measurement(dataset), tmp_path / "a.nc")
    xr.testing.assert_identical(loaded.values, dataset)


def test_a_model_is_restored_with_its_functions(tmp_path):
    model = positional_semantic(omega=0.2, sigma=0.7)
    loaded = saved_and_loaded(measurement([measurement(model=model)], model), tmp_path / "a.nc")
    assert repr(loaded.model) == repr(model)
    assert loaded.model.student is softmax_attention
    assert bool(eqx.tree_equal(loaded.model, model))
    assert loaded.values[0].model is loaded.model  # shared objects stay shared


def test_functions_of_the_user_are_not_saved(tmp_path):
    def my_student(h):
        return h @ h.T

    model = positional_semantic().replace(student=my_student)
    loaded = saved_and_loaded(measurement(model=model), tmp_path / "a.nc")
    assert loaded.model.student == UnsavedFunction("my_student")
    assert loaded.model.ridge == model.ridge
    with pytest.raises(dp.InvalidInput, match="model = 'my_student': was not saved") as caught:
        loaded.model.student(np.zeros((2, 1)))
    assert "\n" not in str(caught.value)
    again = saved_and_loaded(loaded, tmp_path / "b.nc")
    assert again.model.student == UnsavedFunction("my_student")


def test_a_file_contains_a_dataset_and_its_provenance(tmp_path):
    path = measurement(model=positional_semantic()).save(tmp_path / "a.nc")
    with xr.open_dataset(path) as dataset:
        assert float(dataset["alpha"]) == 1 / 3
        assert dataset.attrs["class"] == "Measurement" and dataset.attrs["format_version"] == 1
        assert dataset.attrs["software"].startswith("dotphase ")
        assert dataset.attrs["student"] == "softmax_attention" and dataset.attrs["ridge"] == 0.01
        assert dataset.attrs["message"] == "größer\n'als'"
    path = WithSettings(Settings()).save(tmp_path / "b.nc")
    with xr.open_dataset(path) as dataset:
        assert (dataset.attrs["seed"], dataset.attrs["rtol"]) == (7, 1e-3)


def test_a_result_of_another_kind_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match=r"builtins\.object cannot be saved"):
        measurement(object()).save(tmp_path / "a.nc")
    with pytest.raises(dp.InvalidInput, match=r"^path = .*must end in \.nc"):
        measurement().save(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def change_attribute(path, name, value):
    with h5py.File(path, "r+") as file:
        file.attrs[name] = value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("format_version", 2, "format_version 2 .*; allowed is 1"),
        ("class", "Measurment", "unknown class 'Measurment' .did you mean Measurement"),
        ("class", "WithSettings", "contains a Measurement, not a WithSettings"),
        ("checksum", "0", "damaged"),
    ],
)
def test_other_versions_and_classes_are_refused(tmp_path, name, value, message):
    path = measurement().save(tmp_path / "a.nc")
    change_attribute(path, name, value)
    with pytest.raises(dp.InvalidInput, match=message) as caught:
        dp.load(path)
    assert caught.value.field == "path" and "a.nc" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_foreign_files_are_refused(tmp_path):
    xr.Dataset({"x": 1.0}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    (tmp_path / "text.nc").write_text("no netCDF")
    whole = measurement(np.zeros(1000)).save(tmp_path / "whole.nc").read_bytes()
    (tmp_path / "half.nc").write_bytes(whole[: len(whole) // 2])
    for name in ("other.nc", "text.nc", "half.nc", "absent.nc", "."):
        with pytest.raises(dp.InvalidInput, match=r"^path = .*written by") as caught:
            dp.load(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_a_changed_number_is_noticed(tmp_path):
    values = np.random.default_rng(0).normal(size=100)
    path = measurement(values).save(tmp_path / "a.nc")
    content = bytearray(path.read_bytes())
    for position in [k for k in range(len(content)) if content[k : k + 8] == values[3].tobytes()]:
        content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(dp.InvalidInput, match="damaged"):
        dp.load(path)


def test_classes_outside_of_dotphase_are_refused(tmp_path, monkeypatch):
    path = measurement().save(tmp_path / "a.nc")
    monkeypatch.setattr("dotphase.storage.encoding.CLASS_MODULES", ("dotphase",))
    with pytest.raises(dp.InvalidInput, match="is not in dotphase"):
        dp.load(path)


def test_a_class_with_other_fields_is_refused(tmp_path, monkeypatch):
    path = measurement().save(tmp_path / "a.nc")

    @dataclass(frozen=True)
    class Verdict:
        kind: str

    Verdict.__qualname__ = "Verdict"
    monkeypatch.setitem(globals(), "Verdict", Verdict)
    with pytest.raises(dp.InvalidInput, match=r"another version of .*Verdict"):
        dp.load(path)
