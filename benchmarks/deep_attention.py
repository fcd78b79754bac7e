"""Deep attention: the Bayes-optimal learner against released tables, and students by theory.

    python benchmarks/deep_attention.py bayes TABLES        # overlaps, beside the released ones
    python benchmarks/deep_attention.py three TABLES        # the same for three layers
    python benchmarks/deep_attention.py thresholds TABLES   # weak recovery against the skip
    python benchmarks/deep_attention.py students            # theory and trained students
    python benchmarks/deep_attention.py transition          # a positional last layer
    python benchmarks/deep_attention.py draw                # docs/images/deep-attention.png

Results go to docs/data/deep_attention.json. TABLES is a folder with the tables of
github.com/SPOC-group/SequenceIndexModels (arXiv:2502.00901).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dotphase as dp
from dotphase.numerics.fixed_point import fixed_point
from dotphase.runtime.precision import in_double_precision
from dotphase.theory import layered_posterior as layered
from dotphase.theory.branch import aligned_overlaps

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "data" / "deep_attention.json"
FIGURE = DOCS / "images" / "deep-attention.png"
#: Variance that the released programs add to the posterior's.
ADDED = 1e-3
#: Every how many rows of the table of three layers.
STRIDE = 4
#: Penalty, sample complexities, dimensions and number of trained students.
RIDGE, ALPHAS, SIZES, RUNS = 0.03, (1.5, 3.0), (150, 300), 4


def store(**parts: Any) -> None:
    """Merge results into the file."""
    known = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    text = json.dumps(known | parts, indent=1, allow_nan=False)
    DATA.write_text(text + "\n", encoding="utf-8")


@in_double_precision
def with_added_variance(model: dp.Model, alpha: float) -> list[float]:
    """Overlaps with a variance ``1 - M + ADDED`` of the fields, as in the released programs.

    The fields then have the variance ``1 + ADDED``, and the overlaps are measured in units of 1.
    """
    sigma = np.sqrt(1 + ADDED)
    sample = layered.Sample(model.replace(sigma=float(sigma)), 0, 0, layered.LOG2_SENTENCES - 1)

    def step(overlaps: np.ndarray) -> np.ndarray:
        s = alpha * np.maximum(sample.information(overlaps / sigma**2)[0], 0) / sigma**2
        return np.maximum(s / (1 + s), layered.FLOOR)

    start = np.full(model.teacher_rank, layered.INITIAL)
    point = fixed_point(
        step,
        start,
        lambda x: np.maximum(np.minimum(x, 1 - x), layered.LEAST),
        lambda x: bool(np.all((x >= layered.FLOOR) & (x <= 1))),
        layered.ITERATION,
    )
    return np.where(point.x > layered.LEAST, point.x, 0.0).tolist()


def bayes(tables: Path, layers: int = 2, stride: int = 1) -> None:
    """Overlaps at the sample complexities of the released tables."""
    model = dp.load_model("deep-attention", layers=layers)
    rows = []
    released = pd.read_csv(tables / f"sim_BO_{layers}w.csv").iloc[stride::stride]
    passing = pd.read_csv(tables / "sim_AMP_2w.csv") if layers == 2 else pd.DataFrame()
    grid = {round(float(a), 6) for a in [*released["alpha"], *passing.get("alpha", [])]}
    for alpha in sorted(grid):
        best = dp.bayes.optimal(model, alpha=alpha)
        row = best.to_dict() | {"added": with_added_variance(model, alpha)}
        for name, table, suffix in (("released", released, ""), ("amp", passing, "_mean")):
            match = table[np.isclose(table["alpha"], alpha)] if len(table) else table
            if len(match):
                columns = [f"Q{k}{k}{suffix}" for k in range(1, layers + 1)]
                row[name] = match[columns].iloc[0].tolist()
                if suffix:
                    spread = [column.replace("mean", "std") for column in columns]
                    row["amp_std"] = match[spread].iloc[0].tolist()
        rows.append(row)
        print(layers, row, flush=True)
        store(**{f"bayes{layers}": rows})


def three(tables: Path) -> None:
    """Overlaps of three layers."""
    bayes(tables, layers=3, stride=STRIDE)


def thresholds(tables: Path) -> None:
    """Weak recovery of both layers against the skip connection."""
    rows = []
    for skip, first, last in pd.read_csv(tables / "sim_alpha_critical.csv").to_numpy().tolist():
        model = dp.load_model("deep-attention", skip=skip)
        alphas, errors = dp.bayes.layer_thresholds(model, log2_sentences=10)
        rows.append({"skip": skip, "alphas": alphas, "stderr": errors, "released": [first, last]})
        print(rows[-1], flush=True)
        store(thresholds=rows)


def students() -> None:
    """State evolution beside trained students; random starts are trained only."""
    rows = []
    model = dp.load_model("deep-attention", ridge=RIDGE)
    for alpha in ALPHAS:
        for start in ("semantic", "positional", "random"):
            row: dict[str, Any] = {"alpha": alpha, "start": start}
            row["trained"] = [trained(model, alpha, start, d) for d in SIZES]
            if start != "random":
                solution = dp.solve(model, alpha, start, log2_points=13)
                row |= {"found": solution.found, "converged": solution.converged}
                row["kind"] = solution.stability.kind
                row["theta"] = np.abs(np.diag(solution.overlaps.theta[0])).tolist()
                row["m"] = np.abs(solution.overlaps.m[0]).tolist()
                for name in ("train_loss", "test_error"):
                    row[name], row[f"{name}_stderr"] = (
                        getattr(solution, name),
                        solution.stderr[name],
                    )
            rows.append(row)
            print(json.dumps(row), flush=True)
            store(students=rows)


def trained(model: dp.Model, alpha: float, start: str, d: int) -> dict[str, Any]:
    """Means over runs and their standard errors, with the overlaps of each layer."""
    runs = dp.train(model, alpha, d=d, seeds=RUNS, start=start)
    # A semantic start is the teacher: one tiny step returns its weights.
    teachers = dp.train(
        model, alpha, d=d, seeds=RUNS, start="semantic", optimizer="gd", steps=1, lr=1e-12
    )
    pairs = zip(runs.runs, teachers.runs, strict=True)
    thetas = [np.abs(np.diag(run.weights.T @ teacher.weights)) / d for run, teacher in pairs]
    row: dict[str, Any] = {"d": d, "theta": np.asarray(thetas).tolist()}
    row["m"] = [run.m for run in runs.runs]
    for name in ("train_loss", "test_error"):
        row[name], row[f"{name}_stderr"] = runs.mean[name], runs.stderr[name]
    return row


def transition() -> None:
    """Training losses of minima whose last layer is semantic or positional, at sigma = .5."""
    model = dp.load_model("deep-attention", omega=0.3, sigma=0.5)
    initial = {"semantic": "semantic", "positional": aligned_overlaps(model, positional=1)}
    rows = []
    for alpha in (0.3, 0.5, 0.6, 0.7, 0.9):
        for name, start in initial.items():
            solution = dp.solve(model, alpha, start, log2_points=13)
            row: dict[str, Any] = {"alpha": alpha, "start": name, "found": solution.found}
            row |= {"kind": solution.stability.kind, "trusted": solution.stability.trusted}
            row["theta"] = np.abs(np.diag(solution.overlaps.theta[0])).tolist()
            row["m"] = np.abs(solution.overlaps.m[0]).tolist()
            row["train_loss"] = solution.train_loss
            row["train_loss_stderr"] = solution.stderr["train_loss"]
            rows.append(row)
            print(json.dumps(row), flush=True)
            store(transition=rows)


def draw() -> None:
    """Draw the figure for light and dark pages."""
    from dotphase.figures.parts.style import save, theme

    for shade, suffix in (("light", ""), ("dark", "-dark")):
        with theme(shade):
            figure = panels(json.loads(DATA.read_text(encoding="utf-8")))
            save(figure, FIGURE.with_stem(FIGURE.stem + suffix), small=True)


def panels(data: dict[str, Any]) -> Any:
    """Overlaps against alpha, and thresholds against the skip connection."""
    from dotphase.figures.parts.lines import ALPHA
    from dotphase.figures.parts.style import COLORS, ink_color, new_figure

    colors, names = (COLORS["mixed"], COLORS["linear"]), ("first layer", "second layer")
    rows, skips = data["bayes2"], data["thresholds"]
    with new_figure(None, 1, 2, size=(8.6, 3.4)) as (figure, (left, right)):
        for layer, (color, name) in enumerate(zip(colors, names, strict=True)):

            def column(key: str, rows: Any = rows, layer: int = layer) -> Any:
                return np.asarray([row[key][layer] if key in row else np.nan for row in rows])

            alpha = [row["alpha"] for row in rows]
            others = ("with added variance", "released", "released, message passing")
            # One legend entry for both layers.
            added, released, passing = others if layer == 0 else ("_", "_", "_")
            left.errorbar(alpha, column("overlaps"), column("overlaps_stderr"), color=color,
                          label=f"optimum, {name}")  # fmt: skip
            left.plot(alpha, column("added"), color=color, ls=":", label=added)
            left.plot(alpha, column("released"), "x", color=color, label=released)
            left.errorbar(alpha, column("amp"), column("amp_std"), fmt="o", mfc="none", ms=4,
                          color=color, lw=0.8, label=passing)  # fmt: skip
            skip = [row["skip"] for row in skips]
            right.errorbar(skip, column("alphas", skips), column("stderr", skips), color=color)
            right.plot(skip, column("released", skips), "x", color=color)
        right.axhline(1 / 6, color=ink_color(), ls="--", lw=1)
        right.annotate("bound 1/6", (4, 1 / 6), va="top", ha="right", color=ink_color(),
                       xytext=(0, -3), textcoords="offset points")  # fmt: skip
        left.set(xlabel=ALPHA, ylabel="overlap with the teacher", ylim=(-0.03, 1.1))
        right.set(xlabel="skip connection $c$", ylabel=r"$\alpha$ of weak recovery", ylim=(0, None))
        figure.legend(*left.get_legend_handles_labels(), ncols=5, loc="outside lower center")
    return figure


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {
        "bayes": bayes,
        "three": three,
        "thresholds": thresholds,
        "students": students,
        "transition": transition,
        "draw": draw,
    }[command](*map(Path, arguments))
