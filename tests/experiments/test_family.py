from pathlib import Path

import pytest

import dotphase as dp
from dotphase.experiments.family import named_model
from dotphase.model.attention import untied_attention

STUDIES = Path(__file__).resolve().parents[2] / "studies"


def test_defaults_are_the_paper():
    model, paper = named_model(), dp.positional_semantic()
    assert model.student is paper.student and model.length == 2 and model.student_rank == 1


def test_relatives():
    model = named_model(length=3, untied=True)
    assert model.student is untied_attention and model.length == 3 and model.student_rank == 2
    assert named_model(length=4, kinds=4, student_rank=3).student_rank == 3
    with pytest.raises(dp.InvalidInput, match="mixing"):
        named_model(length=3, mixing="other")


@pytest.mark.parametrize("name", ["lengths", "untied"])
def test_study_files_are_accepted(name):
    parameters, _ = dp.read_spec(STUDIES / f"{name}.toml").point(0)
    assert {"length", "kinds", "untied"} <= set(parameters)


def test_untied_is_true_or_false():
    with pytest.raises(dp.InvalidInput, match="untied"):
        dp.Study("train", {"alpha": 1.0, "d": 20, "untied": 1})
