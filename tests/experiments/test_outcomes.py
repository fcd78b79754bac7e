"""Random starts at any d."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.finite.begin import Parts
from dotphase.mean_field.beginning import in_the_limit
from dotphase.mean_field.ensemble import Descent, repeat

pytestmark = pytest.mark.usefixtures("quick_to_compile")

STEPS = 15


def descent(parts, mirrored):
    """A short one, in which no direction is forbidden."""
    model = dp.positional_semantic()

    def begin(key):
        begun = in_the_limit(model, parts)
        return begun._replace(free=np.ones_like(begun.free))

    lr = np.full(STEPS, 4.0)
    kind = np.dtype("float64")
    return Descent(model, 2.0, begin, None, lr, 0.0, 1.0, kind, 0, mirrored)


def ends_at(parts, mirrored, number=0):
    records = repeat(descent(parts, mirrored), 512, number).records
    return abs(float(records.theta[-1, 0, 0])), abs(float(records.m[-1, 0, 0]))


def parts(theta=0.0, m=0.0, rest=0.04):
    return Parts(np.full((1, 1), theta), m * np.array([[1.0, -1.0]]), np.full((1, 1), rest))


def test_the_noise_of_an_ensemble_in_fours_breaks_no_symmetry():
    theta, m = ends_at(parts(), mirrored=True)
    assert theta < 1e-10 and m < 1e-10
    theta, m = ends_at(parts(), mirrored=False)
    assert theta > 1e-5 and m > 1e-5


def test_small_overlaps_grow_in_proportion():
    once, ten = (ends_at(parts(size, 2 * size), mirrored=True) for size in (1e-7, 1e-6))
    np.testing.assert_allclose(ten, 10 * np.asarray(once), rtol=1e-3)
    assert once[1] > 2e-7  # m grows


def test_an_ensemble_in_fours_has_the_same_limit():
    begun = parts(theta=0.5, m=0.1)
    plain, fours = (
        np.mean([ends_at(begun, mirrored, k) for k in range(4)], axis=0) for mirrored in (0, 1)
    )
    np.testing.assert_allclose(fours, plain, rtol=0.1)


@pytest.fixture(scope="module")
def found(quick_to_compile):
    small = {"draws": 3, "steps": STEPS, "momentum": 0.0, "log2_ensemble": 9}
    model = dp.positional_semantic()
    return {d: dp.outcomes(model, [2.0], [0.1], d, **small) for d in (10**6, 10**8)}


def test_overlaps_of_a_start_fall_like_one_over_the_root_of_d(found):
    """The same draws at a hundred times the dimension: a tenth of the overlaps, still small."""
    near, far = found.values()
    for name in ("theta", "m"):
        np.testing.assert_allclose(near[name], 10 * far[name], rtol=0.02)
    assert len(np.unique(near["m"])) == 3


def test_what_is_found_has_the_form_of_basins(found):
    some = found[10**6]
    assert some["mechanism"].dims == ("alpha", "seed", "scale")
    shares = dp.analysis.basin_shares(some)["share"]
    assert float(shares.sum("found").min()) == 1.0
    assert some.attrs["d"] == 10**6 and not some.attrs["exact"]


def test_sentences_can_be_drawn_as_well():
    small = {"draws": 2, "steps": STEPS, "exact": True}
    some = dp.outcomes(dp.positional_semantic(), [2.0], [0.1], 256, **small)
    assert np.isfinite(some["train_loss"]).all() and some["m"].values.min() > 1e-4


def test_what_cannot_be_is_refused():
    model = dp.positional_semantic()
    changes = {"alphas": [0.0], "scales": [-1.0], "d": 1, "draws": 0, "steps": 0}
    for name, value in changes.items():
        field, change = name.removesuffix("s") if isinstance(value, list) else name, {name: value}
        asked = {"alphas": [1.0], "scales": [0.1], "d": 100} | change
        with pytest.raises(dp.InvalidInput, match=f"{field} = "):
            dp.outcomes(model, **asked)
