"""Every view as Python and as a command, for the clipboard."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dotphase.explorer.branch_curves import GRID
from dotphase.explorer.diagram import rows_of
from dotphase.explorer.landscape import LARGEST_M, LARGEST_T, SIZE
from dotphase.explorer.lesson import STAGES, Lesson
from dotphase.explorer.point import Point, branches_of, matrix_of
from dotphase.explorer.solver import FINAL
from dotphase.explorer.stored_diagrams import POINTS
from dotphase.model.mixing import MIXING


def snippets(
    point: Point,
    lesson: Lesson | None,
    runs: int,
    training: Mapping[str, Any],
    sentence: int,
    sequence: str,
) -> dict[str, dict[str, str]]:
    """For each view a piece of Python and a command that give the same numbers.

    Parameters
    ----------
    point : Point
        Where the page is.
    lesson : Lesson, optional
        What is watched there, if anything is.
    runs : int
        How many runs are watched.
    training : mapping
        d, seeds, seed and start of a training.
    sentence : int
        Number of the sampled sentence.
    sequence : str
        Typed on the histogram tab.
    """
    d, seeds, seed, start = (training[name] for name in ("d", "seeds", "seed", "start"))
    alpha, across = point.alpha, point.family.across
    names = branches_of(point.model())
    head = f"import dotphase as dp\n\nmodel = {_model(point)}\n"
    numpy = "import numpy as np\n" + head
    alphas = f"np.linspace({GRID[0]!r}, {GRID[1]!r}, {GRID[2]})"
    precisely = f"rtol={FINAL.rtol!r}, max_log2_points={FINAL.max_log2_points}"
    first, options, rest = _options(point)
    grid = ":".join(f"{part:g}" for part in GRID)
    solve = " && ".join(
        f"dotphase solve --alpha {alpha!r} --branch {branch} {options} "
        f"--rtol {FINAL.rtol!r} --max-log2-points {FINAL.max_log2_points}"
        for branch in names
    )
    rho = float(point.model().rho[0])
    python = {
        "numbers": head + f"for branch in {names!r}:\n"
        f"    print(dp.solve(model, alpha={alpha!r}, start=branch, {precisely}))\n",
        "curves": numpy + f"curve = dp.curve(model, {alphas}, {names!r}, log2_points=13)\n"
        "dp.plot.curve(curve, 'curve.png')\n",
        "landscape": numpy + f"m = np.linspace(0.0, {LARGEST_M!r}, {SIZE})\n"
        f"theta = np.linspace(0.0, {LARGEST_T * rho!r}, {SIZE})\n"
        f"print(dp.analysis.landscape(model, {alpha!r}, m, theta).minima)\n",
        "attention": head + "overlaps = {\n"
        f"    branch: dp.solve(model, {alpha!r}, branch, {precisely}).overlaps\n"
        f"    for branch in {names!r}\n}}\n"
        f"print(dp.analysis.attention_matrices(model, overlaps, sentence={sentence}))\n",
        "train": head + f"print(dp.train(model, alpha={alpha!r}, d={d}, seeds={seeds}, "
        f"seed={seed}, start={start!r}))\n",
        "histogram": "import dotphase as dp\n\nfor mechanism in ('semantic', 'positional'):\n"
        "    network = dp.histogram.shipped(mechanism)\n"
        f"    print(dp.histogram.predict(network, {sequence!r}))\n"
        f"    print(dp.histogram.attention(network, {sequence!r}).round(3))\n",
    }
    command = {
        "numbers": first + solve,
        "curves": first + f"dotphase curve --alphas {grid} --log2-points 13 {options} "
        f"--branches {','.join(names)} --out curve.nc --plot curve.png",
        "train": first + f"dotphase train --d {d} --alpha {alpha!r} --start {start} "
        f"--seeds {seeds} --seed {seed} {options}",
    }
    if across:
        rows = rows_of(point)
        values = f"{rows[0]!r}, {rows[-1]!r}, {rows.size}".replace("np.float64", "")
        informed = "" if len(names) == 2 else ",\n    informed=('semantic', 'mixed')"
        python["diagram"] = (
            "import numpy as np\nimport dotphase as dp\n\n"
            f"diagram = dp.diagram(\n    lambda {across}: {_model(point, across)},\n"
            f"    alphas={alphas},\n    values=np.linspace({values}),\n"
            f"    parameter={across!r},\n    log2_points={POINTS}{informed},\n)\n"
            "dp.plot.diagram(diagram, 'diagram.png')\n"
        )
    if across == "omega" and len(names) == 2:
        command["diagram"] = first + (
            f"dotphase diagram --alphas {grid} --omegas 0:0.6:25 {rest} "
            f"--log2-points {POINTS} --out diagram.nc --plot diagram.png"
        )
    if lesson:
        python["learn"] = head + _descent(lesson, runs)
        command["learn"] = first + (
            f"dotphase dynamics --alpha {alpha!r} {_rule(lesson)} {options} --plot learning.png"
        )
    for name in python.keys() - command.keys():
        command[name] = f"python -c {shlex.quote(python[name])}"
    return {name: {"python": python[name], "command": command[name]} for name in python}


def _model(point: Point, across: str | None = None) -> str:
    """The model in Python, with one of its parameters left open."""
    values = {name: repr(value) for name, value in point.values}
    if across:
        values[across] = across
    if not point.family.is_paper:
        given = "".join(f", {name}={value}" for name, value in values.items())
        return f"dp.load_model({point.reference!r}{given})"
    if point["mixing"] not in MIXING:
        values["mixing"] = json.dumps(matrix_of(point["mixing"]))
    if point["student_rank"] == 1:
        del values["student_rank"]
    given = ", ".join(f"{name}={value}" for name, value in values.items())
    return f"dp.positional_semantic({given})"


def _options(point: Point) -> tuple[str, str, str]:
    """What to do before a command, the options of the model, and those without omega."""
    if not point.family.is_paper:
        given = "".join(f" --set {name}={_text(value)}" for name, value in point.values)
        options = f"--model {shlex.quote(point.reference)}{given}"
        return "", options, options
    # A matrix of the user's own reaches the command line through a file.
    named, matrix = point["mixing"] in MIXING, json.dumps(matrix_of(point["mixing"]))
    first = "" if named else f"echo {shlex.quote(matrix)} > A.json && "
    rest = f"--sigma {point['sigma']!r} --ridge {point['ridge']!r} "
    rest += f"--mixing {point['mixing'] if named else 'A.json'}"
    if point["student_rank"] != 1:
        rest += f" --student-rank {point['student_rank']}"
    return first, f"--omega {point['omega']!r} {rest}", rest


def _text(value: Any) -> str:
    return shlex.quote(str(value).lower() if isinstance(value, bool) else str(value))


def _descent(lesson: Lesson, runs: int) -> str:
    """Theory and runs of a lesson, in Python."""
    rule = f"lr={lesson.lr!r}, steps={lesson.steps}"
    kind = f"'momentum', momentum={lesson.momentum!r}" if lesson.momentum else "'gd'"
    sizes = ", ".join(f"{name}={value!r}" for name, value in STAGES[-1].items())
    if lesson.begin == "semantic":
        start = repr(lesson.begin)
    else:
        given = ", ".join(f"{name}={value!r}" for name, value in lesson.overlaps().items())
        start = f"dp.start_from({given})"
    return (
        f"start = {start}\n"
        f"theory = dp.dynamics(\n    model, {lesson.point.alpha!r}, start, {rule}, "
        f"momentum={lesson.momentum!r},\n    {sizes},\n)\n"
        f"runs = dp.train(\n    model, {lesson.point.alpha!r}, {lesson.d}, start=start, {rule}, "
        f"optimizer={kind},\n    seeds={runs}, record=True,\n)\n"
        "print(theory)\n"
        "dp.plot.dynamics(theory.dataset(), 'learning.png', runs.path)\n"
    )


def _rule(lesson: Lesson) -> str:
    """Theory of a lesson, as options of the command line."""
    start = lesson.begin
    if start == "random":
        given = lesson.overlaps()
        start += f" --scale {lesson.scale!r} --theta0 {given['theta']!r} --m0 {given['m']!r}"
    sizes = STAGES[-1]
    return (
        f"--start {start} --lr {lesson.lr!r} --momentum {lesson.momentum!r} "
        f"--steps {lesson.steps} --ensemble {sizes['log2_ensemble']} "
        f"--repetitions {sizes['repetitions']} --rtol {sizes['rtol']!r}"
    )
