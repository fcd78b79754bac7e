"""Theory beside training: one grid, one dataset, a verdict that can fail."""

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.cli.commands.compare import _print_table, _summary
from dotphase.experiments.comparison import compare as module
from dotphase.experiments.comparison import one_pass as one_pass_module
from dotphase.experiments.comparison.agreement import AGREES, DIFFERS, student_factor
from dotphase.experiments.comparison.compare import LEFT, NO_BRANCH, QUANTITIES

ALPHAS = [0.5, 2.0]
PARTS = ("test_error", "theta", "m", "q")


EVENTS = []


@pytest.fixture(scope="module")
def both():
    settings = {"d": 60, "seeds": 3, "log2_points": 12, "progress": EVENTS.append}
    return dp.compare(dp.positional_semantic(), ALPHAS, **settings)


def test_progress_counts_points_and_data_sets(both):
    last = {event.stage: (event.done, event.total) for event in EVENTS if event.total}
    assert (4, 4) in last.values() and last["grid"] == (6, 6)


def test_few_data_sets_widen_the_allowed_difference(both):
    assert student_factor(2) == pytest.approx(78.6, abs=0.1)
    assert student_factor(1000) == pytest.approx(1, abs=0.01)
    point = both.sel(alpha=2.0, branch="semantic")
    scores = [module._verdict(point.assign_attrs(seeds=count))[1] for count in (2, 3, 100)]
    assert scores == sorted(scores) and scores[0] < 0.2 * scores[2]


def test_every_method_has_every_number_at_every_point(both):
    assert both["source"].values.tolist() == ["theory", "training"]
    assert both["train_loss"].dims == ("source", "branch", "alpha")
    for name in QUANTITIES:
        assert {name, f"{name}_stderr"} <= set(both)
    assert "model" not in both.coords
    assert both.attrs["positions"] == "[[1.0, -1.0], [-1.0, 1.0]]"
    theory = dp.curve(dp.positional_semantic(), ALPHAS, log2_points=12)
    np.testing.assert_array_equal(both["theta"].sel(source="theory"), theory["theta"])


def test_losses_of_the_theory_are_those_at_the_same_d(both, paper):
    solution = dp.solve(paper, 2.0, "semantic", log2_points=12)
    at = both.sel(source="theory", branch="semantic", alpha=2.0)
    assert float(at["train_loss_limit"]) == pytest.approx(solution.train_loss, rel=1e-3)
    added = float(at["train_loss"] - at["train_loss_limit"])
    finite = solution.at(60)
    assert added == pytest.approx(finite.train_loss - solution.train_loss, rel=1e-2)
    missing = both.sel(source="theory", branch="semantic", alpha=0.5)
    assert float(missing["train_loss"]) == float(missing["train_loss_limit"])


def test_training_is_that_of_the_grid(both):
    runs = dp.grid(lambda _: dp.positional_semantic(), ALPHAS, [0.0], 60, seeds=3)
    mean = runs["train_loss"].isel(omega=0).sel(alpha=2.0, start="semantic").mean("seed")
    trained = both["train_loss"].sel(source="training", alpha=2.0, branch="semantic")
    assert float(both["stayed"].sel(alpha=2.0, branch="semantic")) == 1
    np.testing.assert_allclose(trained, mean, rtol=1e-12)


def test_theory_and_training_agree_where_there_are_many_data(both):
    at = both.sel(alpha=2.0)
    assert at["verdict"].sel(branch="semantic") == AGREES
    assert 0 < float(at["score"].sel(branch="semantic")) < 1


def test_a_branch_that_does_not_exist_is_no_disagreement(both):
    at = both.sel(alpha=0.5, branch="semantic")
    assert at["verdict"] == NO_BRANCH and np.isnan(at["score"])


def test_a_mixed_run_stays_with_half_of_what_the_theory_is_aligned_by(paper):
    """The mixed branch of eight tokens (rank two, alpha = 1.5) and two runs that end there, which
    are called semantic; a third has lost its positional part."""
    cell = {"branch": ["mixed"], "alpha": [1.5]}
    theory = xr.Dataset(
        {name: (("branch", "alpha"), [[value]]) for name, value in
         {"m": 0.185, "theta": 0.1775, "q": 0.128}.items()}, cell
    )  # fmt: skip
    dims = ("seed", "branch", "alpha")
    runs = xr.Dataset(
        {"semantic_alignment": (dims, [[[0.96]], [[0.97]], [[0.96]]]),
         "positional_alignment": (dims, [[[0.44]], [[0.47]], [[0.02]]]),
         "mechanism": (dims, [[["semantic"]]] * 3)}, cell
    )  # fmt: skip
    assert module._stayed(runs, theory, paper).values.ravel().tolist() == [True, True, False]
    semantic = {"branch": ["semantic"]}
    stayed = module._stayed(runs.assign_coords(semantic), theory.assign_coords(semantic), paper)
    assert stayed.all()
    runs["mechanism"][:] = "mixed"
    stayed = module._stayed(runs.assign_coords(semantic), theory.assign_coords(semantic), paper)
    assert not stayed.any()


def test_a_wrong_theory_is_noticed(monkeypatch):
    original = module.curve

    def wrong(*args, **kwargs):
        dataset = original(*args, **kwargs)
        dataset["theta"] *= 1.7
        return dataset

    monkeypatch.setattr(module, "curve", wrong)
    comparison = dp.compare(dp.positional_semantic(), ALPHAS, d=60, seeds=3, log2_points=12)
    at = comparison.sel(alpha=2.0, branch="semantic")
    assert at["verdict"] == DIFFERS and at["worst"] == "theta" and at["score"] > 1


def test_runs_that_leave_their_branch_do_not_count(monkeypatch):
    original = module.grid

    def escaping(*args, **kwargs):
        runs = original(*args, **kwargs)
        kinds = np.where(runs["seed"] < 2, "uninformed", runs["mechanism"].transpose(..., "seed"))
        runs["mechanism"] = runs["mechanism"].transpose(..., "seed").copy(data=kinds)
        return runs

    monkeypatch.setattr(module, "grid", escaping)
    comparison = dp.compare(dp.positional_semantic(), ALPHAS, d=60, seeds=3, log2_points=12)
    assert comparison["verdict"].sel(alpha=2.0, branch="semantic") == LEFT


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"branches": ["sideways"]}, "branches"), ({"branches": ["uninformed"]}, "branches"),
     ({"branches": []}, "branches"), ({"seeds": 1}, "seeds"), ({"alphas": [1.0, 1.0]}, "alphas")],
)  # fmt: skip
def test_bad_input_is_refused(arguments, field):
    with pytest.raises(dp.InvalidInput, match=f"^{field} = "):
        dp.compare(dp.positional_semantic(), **({"alphas": [1.0], "d": 60} | arguments))


def test_the_figure_is_drawn(both, tmp_path):
    dp.plot.compare(both, tmp_path / "compare.png")
    assert (tmp_path / "compare.png").stat().st_size > 5000


def test_students_take_the_steps_of_the_dynamics(both, paper, monkeypatch):
    original = {"curve": module.curve, "grid": module.grid}
    received = {}

    def curve(model, alphas, names, **given):
        received["theory"] = given
        comparison = original["curve"](model, alphas, names, log2_points=12)
        return comparison.drop_vars("kind")  # ends of descents have none

    def grid(*args, optimizer, lr, steps, **given):
        received["training"] = {"lr": lr, "steps": steps}
        assert optimizer == "gd"
        return original["grid"](*args, **given)

    monkeypatch.setattr(module, "curve", curve)
    monkeypatch.setattr(module, "grid", grid)
    comparison = dp.compare(paper, ALPHAS, d=60, seeds=3, theory="dynamics", steps=5)
    assert received["training"] == {"lr": 4.0, "steps": 5}
    assert {name: received["theory"][name] for name in ("theory", "lr", "steps")} == {
        "theory": "dynamics", "lr": 4.0, "steps": 5,
    }  # fmt: skip
    start = received["theory"]["start"]
    assert start["semantic"] == "semantic"
    np.testing.assert_allclose(np.abs(start["positional"].m), 60**-0.5)
    assert comparison.attrs["theory"] == "dynamics" and comparison.attrs["steps"] == 5
    # Terms of order 1/d are known for the minima only.
    for source, name in (("theory", "train_loss_limit"), ("training", "train_loss")):
        expected = both[name].sel(source=source) if "source" in both[name].dims else both[name]
        np.testing.assert_array_equal(comparison["train_loss"].sel(source=source), expected)
    with pytest.raises(dp.InvalidInput, match="momentum"):
        dp.compare(paper, [0.5], d=60, seeds=3, theory="dynamics", momentum=0.5)


@pytest.fixture(scope="module")
def recorded():
    """A comparison of one pass, the students and the theory in it."""
    results = {}

    def record(name):
        function = getattr(one_pass_module, name)

        def call(*arguments, **options):
            results[name] = function(*arguments, **options)
            return results[name]

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("train", "online"):
            patch.setattr(one_pass_module, name, record(name))
        both = dp.compare(
            dp.positional_semantic(), [1.0, 2.02], 100, seeds=8, theory="one_pass", lr=16.0,
            branches=["semantic"], batch_fraction=0.1, repetitions=16, order=6,
        )  # fmt: skip
    return both, results["train"], results["online"]


@pytest.fixture
def one_pass(recorded):
    return recorded[0]


def test_one_pass_is_beside_students_that_see_every_sentence_once(recorded):
    """Theory and training at the moments of training; students take the steps of the theory."""
    both, runs, theory = recorded
    assert both["alpha"].values.tolist() == [1.0, 2.0]
    assert set(both["verdict"].values.ravel()) == {AGREES}
    assert "train_loss" not in both and bool((both["stayed"] == 1).all())
    settings = runs.settings
    assert (settings.optimizer, settings.fresh, settings.minibatch) == ("sgd", True, 10)
    assert (settings.step_size, theory.settings.batch_fraction, theory.d) == (16.0, 0.1, 100)
    for name in PARTS:
        last = runs.path[name].isel(step=-1).values
        point = both[name].sel(branch="semantic", alpha=2.0)
        np.testing.assert_allclose(point, [getattr(theory, name)[-1], last.mean()], rtol=1e-12)
        assert 0.5 < last.std(ddof=1) / theory.samples[name][:, -1].std(ddof=1) < 2, name


def test_one_pass_is_printed_and_drawn_without_a_training_loss(one_pass, capsys):
    _print_table(one_pass)
    assert "one pass and training at d = 100" in capsys.readouterr().out
    printed = _summary(one_pass)["training"]
    assert set(printed) == set(printed["stderr"]) | {"stderr"} == {*PARTS, "stderr"}
    figure = dp.plot.compare(one_pass)
    assert [axis.get_ylabel() for axis in figure.axes] == [dp.plot.style.TEST_ERROR, "overlaps"]


def test_one_pass_that_differs_is_no_agreement(one_pass):
    wrong = one_pass.copy(deep=True)
    wrong["test_error"].loc[{"source": "training"}] *= 2
    verdicts = module._add_verdicts(wrong)["verdict"].sel(branch="semantic")
    assert set(verdicts.values) == {DIFFERS}


@pytest.mark.parametrize("change", [{"spherical": True}, {"amp": True}, {"theory": "none"}])
def test_what_one_pass_cannot_compare_is_refused(paper, change):
    arguments = {"theory": "one_pass"} | change
    with pytest.raises(dp.InvalidInput, match=next(iter(change))):
        dp.compare(paper, [1.0], 40, **arguments)
