"""The map of state evolution: symmetries, domain and images."""

import numpy as np
import pytest

from dotphase.theory.branches import BRANCHES
from dotphase.theory.expectations import evaluator_of
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.state_evolution import conjugates, next_overlaps


@pytest.fixture
def semantic(paper):
    initial = BRANCHES["semantic"].initial_overlaps(paper)
    return StateEvolutionMap.from_initial(paper, 1.8, initial), initial


def test_a_symmetry_of_the_initialization_fixes_coordinates(semantic):
    fixed_point_map, initial = semantic
    x = fixed_point_map.coordinates.pack(initial)
    np.testing.assert_array_equal(fixed_point_map.fixed, fixed_point_map.coordinates.part("m"))
    assert fixed_point_map.free(x).size == x.size - 1
    assert fixed_point_map.unconstrained.free(x).size == x.size


def test_the_image_is_one_step_of_state_evolution(semantic, paper):
    fixed_point_map, initial = semantic
    x = fixed_point_map.coordinates.pack(initial)
    mean = evaluator_of(paper).expectations(initial, 12, 0).mean
    image = fixed_point_map.overlaps(fixed_point_map.advance(x, mean))
    expected = next_overlaps(paper, conjugates(paper, 1.8, initial, mean))
    for name in ("q", "V", "theta"):
        np.testing.assert_allclose(getattr(image, name), getattr(expected, name), rtol=1e-12)
    assert not np.any(image.m)
    rows = np.stack([mean.gg] * 3), np.stack([mean.g] * 3)
    stacked = mean._replace(gg=rows[0], g=rows[1], gy=np.stack([mean.gy] * 3),
                            gxi=np.stack([mean.gxi] * 3))  # fmt: skip
    np.testing.assert_allclose(
        fixed_point_map.advance(x, stacked), [fixed_point_map.advance(x, mean)] * 3
    )


def test_singular_overlaps_have_no_image(semantic, paper):
    fixed_point_map, initial = semantic
    mean = evaluator_of(paper).expectations(initial, 12, 0).mean
    x = np.where(fixed_point_map.coordinates.part("q"), 0.0,
                 fixed_point_map.coordinates.pack(initial))  # fmt: skip
    assert np.all(np.isnan(fixed_point_map.advance(x, mean)))
    assert not fixed_point_map.admissible(x)


def test_overlaps_of_the_same_coordinates_are_computed_once(semantic):
    fixed_point_map, initial = semantic
    x = fixed_point_map.coordinates.pack(initial)
    assert fixed_point_map.overlaps(x) is fixed_point_map.overlaps(x.copy())
    assert fixed_point_map.admissible(x)
