"""Models by name and from files: what is found, and what is refused in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dotphase as dp
from dotphase.config.parameters import REQUIRED, Flag, Integer, Number
from dotphase.model.load import Reference, find_model
from dotphase.model.named import MODELS, PAPER

FILE = Path(__file__).parents[1] / "my_models.py"


def test_a_function_of_a_file_is_a_family():
    family = find_model(f"{FILE}:three_tokens")
    kinds = {name: type(one.type) for name, one in family.parameters.items()}
    assert kinds == {"weight": Number, "ridge": Number, "rank": Integer, "wide": Flag}
    assert family.parameters["weight"].default == 0.3
    assert family.help == "Three tokens, two of them at the same position."
    model = dp.load_model(f"{FILE}:three_tokens", weight=0.1, wide=True)
    assert model.length == 3 and model.sigma[2] == 0.8 and model.teacher.weight == 0.1
    assert find_model(f"{FILE}:needs").parameters["size"].default is REQUIRED


def test_a_model_of_a_file_has_no_parameters():
    assert find_model(f"{FILE}:fixed").parameters == {}
    with pytest.raises(dp.InvalidInput, match=r"weight = 0\.1: is not a parameter of the model"):
        dp.load_model(f"{FILE}:fixed", weight=0.1)


def test_a_file_is_run_once_for_each_text(tmp_path):
    file = tmp_path / "some.py"
    file.write_text("import my_models\none = my_models.three_tokens()\n")
    first = find_model(f"{file}:one").build()
    assert find_model(f"{file}:one").build() is first
    old = Reference.parse(f"{file}:one")
    file.write_text(file.read_text() + "two = one\n")
    assert find_model(f"{file}:two").build() is not first
    with pytest.raises(dp.InvalidInput, match="has changed since it was read"):
        old.find()


def test_parameters_with_defaults_of_other_kinds_are_kept_and_not_offered(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(
        "from __future__ import annotations\nimport my_models\n"
        "def one(ridge: float = 1, sizes=(1.0, 2.0)):\n"
        "    return my_models.three_tokens(ridge=ridge * sizes[1])\n"
    )
    family = find_model(f"{file}:one")
    assert list(family.parameters) == ["ridge"]
    assert family.build(ridge=0.1).ridge == 0.2


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("absent.py:one", "no such file"),
        (f"{FILE}:absent", "no such name, the file has three_tokens, two_tokens, fixed, needs"),
        (f"{FILE}:number", "must be a function that returns a Model, or a Model, not int"),
        (f"{FILE}:greedy", "must have named parameters only"),
        (f"{FILE}:untold", "parameter part must be annotated with float, int, bool or str"),
        (f"{FILE}:Mixture", "must be a function that returns a Model"),
        (f"{FILE}:wrong", "must return a Model, but it returned"),
        (f"{FILE}:fails", "raised RuntimeError: cannot make nothing at all"),
        (str(FILE), "must be a registered model (positional-semantic"),
        ("positional", "must be a registered model (positional-semantic"),
        ("", "must be a registered model"),
        ("models.txt:one", "FILE.py:NAME"),
        (3, "FILE.py:NAME"),
    ],
)
def test_what_is_refused(reference, said):
    with pytest.raises(dp.InvalidInput) as caught:
        dp.load_model(reference)
    assert caught.value.field == "model"
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def one(:", "raised SyntaxError"),
        ("import nothing_of_this_name", "raised ModuleNotFoundError"),
        ("raise SystemExit(3)", "raised SystemExit: 3"),
        ("", "no such name, the file has no model"),
    ],
)
def test_files_that_do_not_run(tmp_path, text, said):
    file = tmp_path / "some.py"
    file.write_text(text)
    with pytest.raises(dp.InvalidInput) as caught:
        dp.load_model(f"{file}:one")
    assert said in str(caught.value)


@pytest.mark.parametrize("reason", ["'bye now'", "3", ""])
def test_models_that_exit_are_refused(tmp_path, reason):
    file = tmp_path / "some.py"
    file.write_text(
        "import sys\nimport dotphase as dp\ndef leave(*h):\n"
        f"    sys.exit({reason})\ndef one():\n    leave()\n"
        "def two():\n    return dp.Model(leave, leave, length=2)\n"
    )
    for name in ("one", "two"):
        with pytest.raises(dp.InvalidInput, match="raised SystemExit"):
            dp.load_model(f"{file}:{name}")


def test_a_name_that_is_nearly_one_is_suggested():
    with pytest.raises(dp.InvalidInput, match=r"or FILE.py:NAME; did you mean multi-head\?$"):
        dp.load_model("multi_head")
    with pytest.raises(dp.InvalidInput, match=r"or FILE.py:NAME$"):
        dp.load_model("zzz")


def test_every_named_model_builds_from_its_defaults():
    for name, family in MODELS.items():
        model = dp.load_model(name)
        assert isinstance(model, dp.Model) and family.help
        for parameter in family.parameters.values():
            assert parameter.type.check(parameter.name, parameter.default) == parameter.default
    spread = dp.load_model(PAPER, exponent=0.5, atoms=4)
    np.testing.assert_allclose(spread.spectrum.weights, np.full(4, 0.25))
    assert dp.load_model("ridge-regression", ridge=0.1).ridge == 0.1


def test_tables_are_read_without_jax():
    script = (
        "import sys; from dotphase.model.named import MODELS; "
        "assert [list(one.parameters) for one in MODELS.values()]; "
        "sys.exit(len({'jax', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_a_file_may_import_what_lies_beside_it(tmp_path):
    (tmp_path / "beside_it.py").write_text("w = 0.25\n")
    (tmp_path / "own.py").write_text(
        "import dotphase as dp\nimport beside_it\nmodel = dp.positional_semantic(beside_it.w)\n"
    )
    before = list(sys.path)
    assert dp.load_model(f"{tmp_path / 'own.py'}:model").length == 2
    assert sys.path == before


def test_a_lower_recursion_limit_of_a_file_is_undone(tmp_path):
    limit = sys.getrecursionlimit()
    file = tmp_path / "shallow.py"
    file.write_text(
        "import sys\nimport dotphase as dp\n"
        "sys.setrecursionlimit(200)\nm = dp.positional_semantic()\n"
    )
    assert dp.load_model(f"{file}:m").length == 2
    assert sys.getrecursionlimit() == limit
