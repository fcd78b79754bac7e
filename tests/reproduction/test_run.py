"""The reproduction as a whole: what is kept, what is written, what a failure does."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dotphase.errors import InvalidInput
from reproduction.__main__ import main, open_page
from reproduction.facts import facts
from reproduction.item import Item
from reproduction.items import BEYOND, ITEMS, PAPER, in_order
from reproduction.paper_figures import PAPER_FIGURES
from reproduction.run import ItemResult, Report, reproduce, rewrite_report
from reproduction.store import Parts
from reproduction.sweeps import theory_curve
from reproduction.verdict import against_equations, between_engines
from reproduction.write import markdown

ROOT = Path(__file__).resolve().parents[2]


def small_item(calls, fail=False):
    def compute(parts, sizes):
        def work():
            calls.append(sizes["n"])
            return xr.Dataset({"x": ("k", np.arange(sizes["n"]))})

        return {"data": parts.get("data", sizes, work)}

    def draw(datasets):
        if fail:
            raise RuntimeError("no ink\nleft")
        from matplotlib.figure import Figure

        figure = Figure()
        figure.subplots().plot(datasets["data"]["x"])
        return {"": figure, "again": figure}

    def compare(datasets):
        total = float(datasets["data"]["x"].sum())
        return [between_engines("sum", {"a|b": 1.5}, (3.0, 0.0), (total, 0.0), "sure")]

    return Item(
        title="Small",
        compute=compute,
        draw=draw,
        compare=compare,
        remarks=lambda datasets: ["Seen."],
        sizes={"quick": {"n": 3}, "full": {"n": 4}},
    )


@pytest.fixture
def fakes():
    calls = []
    items = {"a-good": small_item(calls), "bad": small_item([], fail=True)}
    for name, item in items.items():
        ITEMS.register(name, item)
    yield calls
    for name in items:
        ITEMS.unregister(name)


def test_report_says_everything_and_a_failure_stops_nothing(fakes, tmp_path):
    report = reproduce(["bad", "a-good"], out=tmp_path / "r")
    assert report.failed == ("bad",)
    document = json.loads((tmp_path / "r/report.json").read_text())
    good, bad = document["items"]  # in the order of the report
    assert good["rows"][0]["verdict"] == "agrees" and good["rows"][0]["difference"] == 0
    assert bad["failure"] == "RuntimeError: no ink left" and bad["rows"] == []
    assert "no ink" in (tmp_path / "r/data/bad/failure.txt").read_text()
    text = (tmp_path / "r/report.md").read_text()
    assert "a\\|b = 1.5" in text and "✓ agrees" in text and "This item failed" in text
    assert "![Small](figures/a-good.png)" in text and "![Small](figures/a-good-again.png)" in text
    page = (tmp_path / "r/report.html").read_text()
    assert page.count("data:image/png") == 4 and "prefers-color-scheme: dark" in page
    assert not re.findall(r'(?:src|srcset)="(?!data:)|https?://', page)  # nothing is loaded
    for name in good["figures"]:
        assert (tmp_path / "r" / name).stat().st_size > 0
    assert {"figures/a-good.png", "figures/a-good-dark.svg"} <= set(good["figures"])


def test_first_screen_has_the_figures_of_the_paper(tmp_path):
    items = [ItemResult(name, ITEMS[name].title, (), (), (), None, 0.0) for name in PAPER]
    off = against_equations(facts("alpha_c")[5], 1.251, 0.001, "evidence")
    tolerated = between_engines("theta", {"branch": "semantic", "alpha": 1.005}, (1.0, 0.0),
                                (1.016, 0.004), share=0.01)  # fmt: skip
    items[2] = replace(items[2], rows=(off, tolerated), figures=("figures/transition.png",))
    text = markdown(Report("full", tmp_path, tuple(items)))
    assert [f"## {figure.title}" in text for figure in PAPER_FIGURES] == [True] * 10
    assert sum(len(figure.lines) for figure in PAPER_FIGURES) <= 20
    link = "[The transition](#the-transition)"
    assert f"| {link} | alpha_c, where the losses are equal | 1.2510 ± 0.0010 | 1.241 (pub" in text
    assert "(4.0 σ, tolerance)" in text and "assuming the same equations" in text
    assert "2 comparisons: agreement 1, published number off 1." in text
    assert (
        text.index("## Message passing") < text.index("## Appendix") < text.index("### Every rel")
    )


def test_a_report_is_written_again_without_computation(fakes, tmp_path, capsys):
    with pytest.raises(InvalidInput, match="must be a folder with the report"):
        rewrite_report(tmp_path)
    reproduce(["a-good"], scale="full", out=tmp_path)
    before = (tmp_path / "report.md").read_text()
    (tmp_path / "report.md").unlink()
    assert main(["--rewrite", "--out", str(tmp_path)]) == 0 and fakes == [4]
    assert (tmp_path / "report.md").read_text() == before
    assert capsys.readouterr().out.endswith("report.html: open it in a browser\n")


@pytest.mark.parametrize(
    ("settings", "terminal", "opened"),
    [({"DISPLAY": ":0"}, True, 1), ({"DISPLAY": ":0"}, False, 0), ({}, True, 0),
     ({"DISPLAY": ":0", "CI": "1"}, True, 0)],
)  # fmt: skip
def test_the_page_opens_only_where_a_person_looks(
    fakes, tmp_path, monkeypatch, settings, terminal, opened
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    pages = []
    monkeypatch.setattr("reproduction.__main__.webbrowser.open", pages.append)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    open_page(tmp_path / "report.html")
    assert len(pages) == opened and all(page.startswith("file://") for page in pages)


def test_other_items_of_a_report_stay_in_it(fakes, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.run._draw", lambda *args: ())
    ITEMS.register("b-good", small_item([]))
    try:
        reproduce(["b-good"], out=tmp_path)
        first = json.loads((tmp_path / "report.json").read_text())["items"]
        report = reproduce(["a-good"], out=tmp_path)
        assert [outcome.name for outcome in report.outcomes] == ["a-good"]
        after = json.loads((tmp_path / "report.json").read_text())["items"]
        assert [item["name"] for item in after] == ["a-good", "b-good"] and after[1:] == first
        reproduce(["a-good"], scale="full", out=tmp_path)  # of another scale: a report of its own
        after = json.loads((tmp_path / "report.json").read_text())["items"]
        assert [item["name"] for item in after] == ["a-good"]
    finally:
        ITEMS.unregister("b-good")


def test_parts_are_computed_once_for_the_same_sizes(fakes, tmp_path):
    reproduce(["a-good"], out=tmp_path)
    reproduce(["a-good"], out=tmp_path)
    assert fakes == [3]
    report = reproduce(["a-good"], scale="full", out=tmp_path)
    assert fakes == [3, 4]
    assert report.count("differs") == 1  # 0 + 1 + 2 + 3 is not 3


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InvalidInput, match="NAME = 'nonsense': must be one of"):
        reproduce(["nonsense"], out=tmp_path / "r")
    with pytest.raises(InvalidInput, match="scheduler"):
        where = {"engine": "local", "scheduler": "tcp://127.0.0.1:1"}
        reproduce(["transition"], out=tmp_path / "r", where=where)
    assert not (tmp_path / "r").exists()
    file = tmp_path / "file"
    file.write_text("here")
    with pytest.raises(InvalidInput, match="out"):
        reproduce(["transition"], out=file)
    assert file.read_text() == "here"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nonsense", "--out", "r"], 2, "NAME = 'nonsense': must be one of"),
        (["transition"], 2, "--out = None: must be the folder of the report"),
        (["--engine", "other", "--out", "r"], 2, "is not one of"),
        (["bad", "--out", "r"], 3, "bad: FAILED, RuntimeError: no ink left"),
        (["a-good", "--out", "r", "--json"], 0, "a-good: done"),
    ],
)
def test_exit_codes_of_the_command(fakes, tmp_path, monkeypatch, capsys, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert message in err and (code != 2 or err.count("\n") == 1)
    if "--json" in arguments:
        assert json.loads(out)["verdicts"] == {"agrees": 1, "published is off": 0, "differs": 0}


def test_module_runs_as_a_program():
    command = [sys.executable, "-m", "reproduction", "--list"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert output.split("\n")[0] == PAPER[0]


def test_progress_events_count_finished_items(fakes, tmp_path):
    events = []
    reproduce(["a-good", "bad"], out=tmp_path, progress=events.append)
    assert [event.done for event in events] == [0, 1, 1, 2] and events[0].stage == "a-good: data"
    assert [event.result and event.result.name for event in events] == [None, "a-good", None, "bad"]


def test_names_come_back_in_the_order_of_the_report(fakes):
    assert in_order(("gamp", "histogram")) == ("histogram", "gamp")
    assert in_order(()) == PAPER
    assert tuple(ITEMS) == (*PAPER, *BEYOND, "a-good", "bad")  # others follow by themselves


def test_every_item_loads_and_has_both_scales():
    for name, item in ITEMS.items():
        assert set(item.sizes) == {"quick", "full"}, name


def test_studies_are_parts_that_go_on_point_by_point(tmp_path):
    import fake_task  # noqa: F401

    told = []
    parts = Parts(tmp_path, told.append)
    found = parts.study("s", "fake", {"kind": "good"}, {"x": [1.0, 2.0]}, seeds=2)
    assert dict(found.sizes) == {"x": 2, "seed": 2}
    assert told[0] == "s, 0 of 4 points" and told[-1] == "s, 3 of 4 points"
    told.clear()
    xr.testing.assert_identical(
        parts.study("s", "fake", {"kind": "good"}, {"x": [1.0, 2.0]}, seeds=2), found
    )
    assert told == []
    other = parts.study("s", "fake", {"kind": "good", "x": 3.0})
    assert not other.sizes and float(other["value"]) == 1.0
    with pytest.raises(RuntimeError, match="1 of 1 points of s failed: ArithmeticError"):
        parts.study("s", "fake", {"kind": "bad", "x": 3.0})


def test_stored_part_of_another_model_is_not_used(tmp_path, paper):
    def compute(model, a):
        return xr.Dataset({"v": a + float(model.ridge)})

    parts = Parts(tmp_path)
    assert float(parts.call("x", compute, paper, a=1)["v"]) == 1.01
    assert float(parts.call("x", lambda model, a: 1 / 0, paper, a=1)["v"]) == 1.01
    import dotphase as dp

    assert float(parts.call("x", compute, dp.positional_semantic(ridge=0.5), a=1)["v"]) == 1.5


def test_parts_of_the_full_report_are_found_under_new_names(tmp_path, paper):
    from dotphase.results import CachedResult, describe_model

    config = {"alphas": [1.0], "most": 17, "models": [describe_model(paper)]}
    stored = CachedResult(tmp_path / "theory.nc", config)
    stored.store_dataset(xr.Dataset({"crossing": 1.2, "crossing_stderr": 0.1}))
    sizes = {"alphas": [1.0], "max_log2_points": 17}
    dataset = theory_curve(Parts(tmp_path), "theory", paper, sizes)
    assert (float(dataset["alpha_c"]), float(dataset["alpha_c_stderr"])) == (1.2, 0.1)


def test_small_figures_keep_the_colours_of_maps(tmp_path):
    from matplotlib.figure import Figure
    from PIL import Image

    from dotphase.figures.parts.style import save

    line, maps = Figure(), Figure()
    line.subplots().plot([0, 1], [0, 1])
    for axis, colours in zip(maps.subplots(1, 2), ("PuOr", "RdBu"), strict=True):
        axis.pcolormesh(np.linspace(-1, 1, 400).reshape(20, 20), cmap=colours)
    modes = {}
    for name, figure in (("line", line), ("maps", maps)):
        save(figure, tmp_path / f"{name}.png", small=True)
        with Image.open(tmp_path / f"{name}.png") as drawn:
            modes[name] = drawn.mode
    assert modes == {"line": "P", "maps": "RGB"}
