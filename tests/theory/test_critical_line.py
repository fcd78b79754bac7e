"""Critical lines: a sequence of critical points that is also a dataset and a figure."""

import numpy as np
import pytest

import dotphase as dp

SMALL = {"alpha_min": 0.8, "alpha_max": 2.0, "log2_points": 12}


def family(ridge):
    return dp.positional_semantic(0.3, ridge=ridge)


@pytest.fixture(scope="module")
def line():
    events = []
    result = dp.critical_line(family, [0.012, 0.01], "ridge", progress=events.append, **SMALL)
    assert {event.done for event in events} == {1, 2} and events[0].total == 2
    return result


def test_points_are_those_of_critical(line):
    """The ridge moves the transition; each point is that of its model alone."""
    assert len(line) == 2 and all(point.found for point in line)
    assert line[1].alpha_c < line[0].alpha_c
    alone = dp.critical(family(0.01), limits=False, **SMALL)
    np.testing.assert_allclose(line[1].alpha_c, alone.alpha_c, rtol=1e-9)


def test_dataset_has_every_point_with_units(line):
    dataset = line.dataset()
    assert dataset["ridge"].values.tolist() == [0.012, 0.01]
    assert dataset.attrs["parameter"] == "ridge" and "branch" not in dataset.dims
    for name in ("alpha_c", "alpha_c_stderr", "alpha_l", "linear_test_error"):
        expected = [getattr(point, name) for point in line]
        np.testing.assert_array_equal(dataset[name], expected)
    assert dataset["alpha_c"].attrs["units"] == "1"
    assert dataset["alpha_c_trusted"].values.tolist() == [point.trusted for point in line]


def test_limits_of_branches_have_a_dimension():
    line = dp.critical_line(family, [0.01], "ridge", limits=True, **SMALL)
    dataset = line.dataset()
    for name in ("stability_loss", "branch_end"):
        values = dataset[name].sel(branch="semantic").values
        np.testing.assert_array_equal(values, [getattr(line[0], name)["semantic"]])


def test_figure_shows_both_lines(line, tmp_path):
    figure = dp.plot.diagram(line, tmp_path / "line.png")
    (axis,) = figure.axes
    alpha_c = axis.containers[0].lines[0].get_xdata()
    np.testing.assert_array_equal(alpha_c, [line[1].alpha_c, line[0].alpha_c])
    assert axis.get_ylabel() == r"$\lambda$" and (tmp_path / "line.png").stat().st_size > 5000


def test_text_and_file(line, tmp_path):
    assert "ridge = 0.012" in str(line) and "alpha_l" in str(line)
    again = dp.load(line.save(tmp_path / "line.nc"))
    assert [point.alpha_c for point in again] == [point.alpha_c for point in line]
    assert line == line and isinstance(hash(line), int)


def test_equal_values_are_refused():
    with pytest.raises(dp.InvalidInput, match=r"ridge = .*must be one or more different"):
        dp.critical_line(family, [0.01, 0.01], "ridge", **SMALL)
