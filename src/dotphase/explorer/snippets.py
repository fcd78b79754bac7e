"""Every view as Python and as a command, for the clipboard."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dotphase.explorer.branch_curves import GRID
from dotphase.explorer.branch_curves import LOG2_POINTS as CURVE_LOG2_POINTS
from dotphase.explorer.descent import STAGES, Descent
from dotphase.explorer.diagram import vertical_values
from dotphase.explorer.landscape import MAX_M, MAX_THETA, SIZE
from dotphase.explorer.point import Point, branches_of, mixing_matrix
from dotphase.explorer.solver import FINAL
from dotphase.explorer.stored_diagrams import LOG2_POINTS as DIAGRAM_LOG2_POINTS
from dotphase.model.mixing import MIXING

#: Arguments of `dp.solve` that give the final numbers of the page.
PRECISION = f"rtol={FINAL.rtol!r}, max_log2_points={FINAL.max_log2_points}"
#: Grid of the curves and diagrams in Python.
ALPHAS = f"np.linspace({GRID[0]!r}, {GRID[1]!r}, {GRID[2]})"
#: Grid of the curves and diagrams on the command line.
ALPHAS_OPTION = ":".join(f"{part:g}" for part in GRID)


def snippets(
    point: Point,
    descent: Descent | None,
    runs: int,
    training: Mapping[str, Any],
    sentence: int,
    sequence: str,
) -> dict[str, dict[str, str]]:
    """For each view a piece of Python and a command that give the same numbers.

    Without `descent` the page cannot show gradient descent, of which there are `runs`. A training
    has d, seeds, seed and start.
    """
    python = _python(point, training, sentence, sequence)
    command = _commands(point, training)
    if point.family.vertical:
        python["diagram"] = _diagram(point)
    if descent:
        head = _head(point)
        python["learn"] = head + _descent(descent, runs)
        command["learn"] = _descent_command(descent)
    for name in python.keys() - command.keys():
        command[name] = f"python -c {shlex.quote(python[name])}"
    return {name: {"python": python[name], "command": command[name]} for name in python}


def _head(point: Point) -> str:
    return f"import dotphase as dp\n\nmodel = {_model(point)}\n"


def _python(
    point: Point, training: Mapping[str, Any], sentence: int, sequence: str
) -> dict[str, str]:
    """The views that every model has, in Python."""
    alpha, names, head = point.alpha, branches_of(point.model()), _head(point)
    numpy, rho = "import numpy as np\n" + head, float(point.model().rho[0])
    options = ", ".join(f"{name}={training[name]!r}" for name in ("d", "seeds", "seed", "start"))
    return {
        "numbers": head + f"for branch in {names!r}:\n"
        f"    print(dp.solve(model, alpha={alpha!r}, start=branch, {PRECISION}))\n",
        "curves": numpy
        + f"curve = dp.curve(model, {ALPHAS}, {names!r}, log2_points={CURVE_LOG2_POINTS})\n"
        "dp.plot.curve(curve, 'curve.png')\n",
        "landscape": numpy + f"m = np.linspace(0.0, {MAX_M!r}, {SIZE})\n"
        f"theta = np.linspace(0.0, {MAX_THETA * rho!r}, {SIZE})\n"
        f"print(dp.analysis.landscape(model, {alpha!r}, m, theta).minima)\n",
        "attention": head + "overlaps = {\n"
        f"    branch: dp.solve(model, {alpha!r}, branch, {PRECISION}).overlaps\n"
        f"    for branch in {names!r}\n}}\n"
        f"print(dp.analysis.attention_matrices(model, overlaps, sentence={sentence}))\n",
        "train": head + f"print(dp.train(model, alpha={alpha!r}, {options}))\n",
        "histogram": "import dotphase as dp\n\nfor mechanism in ('semantic', 'positional'):\n"
        "    network = dp.histogram.shipped(mechanism)\n"
        f"    print(dp.histogram.predict(network, {sequence!r}))\n"
        f"    print(dp.histogram.attention(network, {sequence!r}).round(3))\n",
    }


def _commands(point: Point, training: Mapping[str, Any]) -> dict[str, str]:
    """The views that a command gives."""
    alpha, names = point.alpha, branches_of(point.model())
    before, options, without_omega = _options(point)
    precision = f"--rtol {FINAL.rtol!r} --max-log2-points {FINAL.max_log2_points}"
    commands = {
        "numbers": before
        + " && ".join(
            f"dotphase solve --alpha {alpha!r} --branch {branch} {options} {precision}"
            for branch in names
        ),
        "curves": before + f"dotphase curve --alphas {ALPHAS_OPTION} "
        f"--log2-points {CURVE_LOG2_POINTS} {options} "
        f"--branches {','.join(names)} --out curve.nc --plot curve.png",
        "train": before + f"dotphase train --d {training['d']} --alpha {alpha!r} "
        f"--start {training['start']} --seeds {training['seeds']} --seed {training['seed']} "
        f"{options}",
    }
    if point.family.vertical == "omega" and len(names) == 2:
        commands["diagram"] = before + (
            f"dotphase diagram --alphas {ALPHAS_OPTION} --omegas 0:0.6:25 {without_omega} "
            f"--log2-points {DIAGRAM_LOG2_POINTS} --out diagram.nc --plot diagram.png"
        )
    return commands


def _diagram(point: Point) -> str:
    """The phase diagram in Python."""
    vertical, rows = point.family.vertical, vertical_values(point)
    values = f"{rows[0]!r}, {rows[-1]!r}, {rows.size}".replace("np.float64", "")
    has_mixed = len(branches_of(point.model())) > 2
    informed = ",\n    informed=('semantic', 'mixed')" if has_mixed else ""
    return (
        "import numpy as np\nimport dotphase as dp\n\n"
        f"diagram = dp.diagram(\n    lambda {vertical}: {_model(point, vertical)},\n"
        f"    alphas={ALPHAS},\n    values=np.linspace({values}),\n"
        f"    parameter={vertical!r},\n    log2_points={DIAGRAM_LOG2_POINTS}{informed},\n)\n"
        "dp.plot.diagram(diagram, 'diagram.png')\n"
    )


def _model(point: Point, free: str | None = None) -> str:
    """The model in Python, with a variable for one of its parameters."""
    values = {name: repr(value) for name, value in point.values}
    if free:
        values[free] = free
    if not point.family.is_paper:
        arguments = "".join(f", {name}={value}" for name, value in values.items())
        return f"dp.load_model({point.reference!r}{arguments})"
    if point["mixing"] not in MIXING:
        values["mixing"] = json.dumps(mixing_matrix(point["mixing"]))
    if point["student_rank"] == 1:
        del values["student_rank"]
    return f"dp.positional_semantic({', '.join(f'{name}={v}' for name, v in values.items())})"


def _options(point: Point) -> tuple[str, str, str]:
    """A command to run first, the options of the model, and those without omega."""
    if not point.family.is_paper:
        settings = "".join(f" --set {name}={_quote(value)}" for name, value in point.values)
        options = f"--model {shlex.quote(point.reference)}{settings}"
        return "", options, options
    # The command line takes a matrix of the user's own from a file.
    is_named, matrix = point["mixing"] in MIXING, json.dumps(mixing_matrix(point["mixing"]))
    before = "" if is_named else f"echo {shlex.quote(matrix)} > A.json && "
    without_omega = f"--sigma {point['sigma']!r} --ridge {point['ridge']!r} "
    without_omega += f"--mixing {point['mixing'] if is_named else 'A.json'}"
    if point["student_rank"] != 1:
        without_omega += f" --student-rank {point['student_rank']}"
    return before, f"--omega {point['omega']!r} {without_omega}", without_omega


def _quote(value: Any) -> str:
    return shlex.quote(str(value).lower() if isinstance(value, bool) else str(value))


def _descent(descent: Descent, runs: int) -> str:
    """Theory and runs of gradient descent, in Python."""
    alpha, rule = descent.point.alpha, f"lr={descent.lr!r}, steps={descent.steps}"
    optimizer = f"'momentum', momentum={descent.momentum!r}" if descent.momentum else "'gd'"
    sizes = ", ".join(f"{name}={value!r}" for name, value in STAGES[-1].items())
    start = repr(descent.initialization)
    if descent.initialization != "semantic":
        overlaps = ", ".join(f"{name}={value!r}" for name, value in descent.overlaps().items())
        start = f"dp.start_from({overlaps})"
    return (
        f"start = {start}\n"
        f"theory = dp.dynamics(\n    model, {alpha!r}, start, {rule}, "
        f"momentum={descent.momentum!r},\n    {sizes},\n)\n"
        f"runs = dp.train(\n    model, {alpha!r}, {descent.d}, start=start, {rule}, "
        f"optimizer={optimizer},\n    seeds={runs}, record=True,\n)\n"
        "print(theory)\n"
        "dp.plot.dynamics(theory.dataset(), 'learning.png', runs.path)\n"
    )


def _descent_command(descent: Descent) -> str:
    """Theory of gradient descent, as a command."""
    before, options, _ = _options(descent.point)
    start = descent.initialization
    if start == "random":
        overlaps = descent.overlaps()
        start += f" --scale {descent.scale!r} --theta0 {overlaps['theta']!r}"
        start += f" --m0 {overlaps['m']!r}"
    sizes = STAGES[-1]
    return before + (
        f"dotphase dynamics --alpha {descent.point.alpha!r} --start {start} --lr {descent.lr!r} "
        f"--momentum {descent.momentum!r} --steps {descent.steps} "
        f"--ensemble {sizes['log2_ensemble']} --repetitions {sizes['repetitions']} "
        f"--rtol {sizes['rtol']!r} {options} --plot learning.png"
    )
