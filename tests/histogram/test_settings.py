"""Settings of the histogram task and their keywords."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from dotphase import histogram
from dotphase.histogram.settings import ExperimentFields, HistogramFields


@pytest.mark.parametrize(
    ("settings", "keywords"),
    [
        (histogram.HistogramSettings, HistogramFields),
        (histogram.ExperimentSettings, ExperimentFields),
    ],
)
def test_settings_and_keywords_are_the_same(settings, keywords):
    assert {field.name for field in fields(settings)} == set(get_type_hints(keywords))


def test_an_unknown_keyword_is_refused_with_the_nearest_name():
    with pytest.raises(TypeError, match="did you mean batch_size"):
        histogram.run("both", runs=1, size=3)
