import numpy as np

from dotphase.model.paper import positional_semantic
from dotphase.runtime.memoize import memoize


def counted():
    calls = []

    @memoize(8)
    def function(tree, scale=1.0):
        calls.append(tree)
        return scale * len(calls)

    return function, calls


def test_equal_numbers_and_the_same_functions_are_answered_once():
    function, calls = counted()
    assert function(positional_semantic(0.3)) == function(positional_semantic(0.3)) == 1
    assert function(positional_semantic(0.4)) == 2
    assert function(positional_semantic(0.3), scale=2.0) == 6
    assert len(calls) == 3


def test_an_array_changed_in_place_is_another_one():
    function, _ = counted()
    values = np.zeros(3)
    first = function(values)
    values[1] = 1.0
    assert function(values) != first
    assert function(np.zeros(3)) == first


def test_equal_functions_that_are_not_the_same_are_told_apart():
    function, _ = counted()
    one, other = (lambda h: h), (lambda h: h)
    assert function(one) != function(other)
    assert function(one) == 1
