"""Every view as Python and as a command, for the clipboard."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dotphase.app.curve import GRID
from dotphase.app.landscape import LARGEST_M, LARGEST_T, SIZE
from dotphase.app.lesson import STAGES, Lesson
from dotphase.model.mixing import MIXING


def snippets(
    lesson: Lesson, runs: int, training: Mapping[str, Any], sentence: int, sequence: str
) -> dict[str, dict[str, str]]:
    """For each view a piece of Python and a command that give the same numbers.

    Parameters
    ----------
    lesson : Lesson
        Where the page is, and what is watched there.
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
    point = lesson.point
    named = point.mixing in MIXING
    mixing = repr(point.mixing) if named else json.dumps(point.matrix)
    model = f"dp.positional_semantic(omega={{omega}}, sigma={point.sigma!r}, "
    model += f"ridge={point.ridge!r}, mixing={mixing})"
    here = model.format(omega=repr(point.omega))
    head = f"import dotphase as dp\n\nmodel = {here}\n"
    numpy = "import numpy as np\n" + head
    alphas = f"np.linspace({GRID[0]!r}, {GRID[1]!r}, {GRID[2]})"

    # A matrix of the user's own reaches the command line through a file.
    first = "" if named else f"echo {shlex.quote(json.dumps(point.matrix))} > A.json && "
    file = point.mixing if named else "A.json"
    rest = f"--sigma {point.sigma!r} --ridge {point.ridge!r} --mixing {file}"
    options = f"--omega {point.omega!r} {rest}"
    grid = ":".join(f"{part:g}" for part in GRID)
    solve = " && ".join(
        f"dotphase solve --alpha {point.alpha!r} --branch {branch} {options}"
        for branch in ("semantic", "positional")
    )
    python = {
        "numbers": head + f"for branch in ('semantic', 'positional'):\n"
        f"    print(dp.solve(model, alpha={point.alpha!r}, start=branch))\n",
        "diagram": f"import numpy as np\nimport dotphase as dp\n\n"
        f"diagram = dp.diagram(\n    lambda omega: {model.format(omega='omega')},\n"
        f"    alphas={alphas},\n    values=np.linspace(0.0, 0.6, 25),\n)\n"
        "dp.plot.diagram(diagram, 'diagram.png')\n",
        "curves": numpy + f"curve = dp.curve(model, {alphas}, log2_points=13)\n"
        "dp.plot.curve(curve, 'curve.png')\n",
        "landscape": numpy + f"m = np.linspace(0.0, {LARGEST_M!r}, {SIZE})\n"
        f"theta = np.linspace(0.0, {LARGEST_T * point.sigma**2!r}, {SIZE})\n"
        f"print(dp.analysis.landscape(model, {point.alpha!r}, m, theta).minima)\n",
        "attention": head + "overlaps = {\n"
        f"    branch: dp.solve(model, {point.alpha!r}, branch).overlaps\n"
        "    for branch in ('semantic', 'positional')\n}\n"
        f"print(dp.analysis.attention_matrices(model, overlaps, sentence={sentence}))\n",
        "train": head + f"print(dp.train(model, alpha={point.alpha!r}, d={d}, seeds={seeds}, "
        f"seed={seed}, start={start!r}))\n",
        "learn": head + _descent(lesson, runs),
        "histogram": "import dotphase as dp\n\nfor mechanism in ('semantic', 'positional'):\n"
        "    network = dp.histogram.shipped(mechanism)\n"
        f"    print(dp.histogram.predict(network, {sequence!r}))\n"
        f"    print(dp.histogram.attention(network, {sequence!r}).round(3))\n",
    }
    command = {
        "numbers": first + solve,
        "diagram": first + f"dotphase diagram --alphas {grid} --omegas 0:0.6:25 {rest} "
        "--out diagram.nc --plot diagram.png",
        "curves": first + f"dotphase curve --alphas {grid} --log2-points 13 {options} "
        "--out curve.nc --plot curve.png",
        "train": first + f"dotphase train --d {d} --alpha {point.alpha!r} --start {start} "
        f"--seeds {seeds} --seed {seed} {options}",
        "learn": first + f"dotphase dynamics --alpha {point.alpha!r} {_rule(lesson)} {options} "
        "--plot learning.png",
    }
    for name in ("landscape", "attention", "histogram"):
        command[name] = f"python -c {shlex.quote(python[name])}"
    return {name: {"python": python[name], "command": command[name]} for name in python}


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
