"""A picture of every model that comes with the package: the theory beside trained students.

    python benchmarks/named_models.py NAME   # one model, into docs/data/named_models.json
    python benchmarks/named_models.py draw   # docs/images/named-models.png of what is there
    python benchmarks/named_models.py        # everything

Test errors against alpha on the branch that the students start on (`dp.compare`).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dotphase as dp

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA, FIGURE = DOCS / "data" / "named_models.json", DOCS / "images" / "named-models.png"
D, SEEDS, POINTS = 300, 6, 13
COLUMNS = 5


@dataclass(frozen=True)
class Case:
    """Where a model is looked at."""

    alphas: tuple[float, ...]
    branch: str = "semantic"
    given: dict[str, Any] = field(default_factory=dict)


ONE_TOKEN: dict[str, Any] = {"noise": 0.5, "ridge": 0.1}
CASES = {
    "ridge-regression": Case((0.5, 1, 2, 4), given=ONE_TOKEN),
    "least-absolute": Case((0.5, 1, 2, 4), given=ONE_TOKEN),
    "logistic": Case((0.5, 1, 2, 4), given=ONE_TOKEN),
    "hinge": Case((0.5, 1, 2, 4), given=ONE_TOKEN),
    "phase-retrieval": Case((2, 4, 8)),
    "committee": Case((4, 6, 8), given={"sigma": 3.0, "ridge": 0.1, "noise": 0.1}),
    "causal-attention": Case((1.5, 2.5, 4)),
    "multi-head": Case((5, 8, 12), given={"omega": 0.1}),
    "attention-temperature": Case((1.5, 2, 3), given={"beta": 2.0}),
    "attention-classes": Case(
        (5, 8, 13), given={"omega": 0.1, "labels": "likeliest", "sigma": 0.7, "ridge": 1.0}
    ),
    "correlated-attention": Case((2, 4, 6)),
    "single-location": Case(
        (4, 8), "mixed", given={"strength": 4.0, "length": 3, "ridge": 0.3}
    ),
    "sparse-token": Case(
        (2, 4, 6), "positional", given={"strength": 9.0, "length": 3, "ridge": 0.5}
    ),
}  # fmt: skip


def row(name: str) -> dict[str, Any]:
    """Test errors of theory and training, with their standard errors, and the verdicts."""
    case = CASES[name]
    model = dp.load_model(name, **case.given)
    both = dp.compare(
        model, case.alphas, D, seeds=SEEDS, branches=[case.branch], log2_points=POINTS
    ).isel(branch=0)  # fmt: skip
    parts = {
        f"{source}{what}": both[f"test_error{what}"].sel(source=source).values.tolist()
        for source in ("theory", "training")
        for what in ("", "_stderr")
    }
    return {"alpha": list(case.alphas), **parts, "verdict": both["verdict"].values.tolist()}


def keep(name: str) -> None:
    """Compute a model, beside those that are there."""
    found = row(name)
    print(name, json.dumps(found), flush=True)
    kept = json.loads(DATA.read_text()) if DATA.exists() else {}
    DATA.write_text(json.dumps(kept | {name: found}, indent=1) + "\n", encoding="utf-8")


def draw() -> None:
    """One panel for each model, in the color of its branch, for light and dark pages."""
    from dotphase.figures.parts.style import save, theme

    kept = json.loads(DATA.read_text())
    for shade, suffix in (("light", ""), ("dark", "-dark")):
        with theme(shade):
            save(panels(kept), FIGURE.with_stem(FIGURE.stem + suffix), small=True)


def panels(kept: dict[str, Any]) -> Any:
    """Test errors of theory and trained students against alpha."""
    from dotphase.figures.parts.style import COLORS, ink_color, new_figure

    names = [name for name in CASES if name in kept]
    rows = -(-len(names) // COLUMNS)
    with new_figure(None, rows, COLUMNS, size=(11, 2.4 * rows), squeeze=False) as (figure, axes):
        for axis in axes.flat[len(names) :]:
            axis.set_axis_off()
        for axis, name in zip(axes.flat, names, strict=False):
            found = {key: np.asarray(value) for key, value in kept[name].items()}
            axis.errorbar(found["alpha"], found["theory"], found["theory_stderr"],
                          color=COLORS[CASES[name].branch], lw=1.8)  # fmt: skip
            trained = axis.errorbar(found["alpha"], found["training"], found["training_stderr"],
                                    fmt="o", color=ink_color(), ms=4, mfc="none")  # fmt: skip
            axis.set_title(name)
            axis.set_ylim(0, 1.1 * max(np.nanmax(found["theory"]), np.nanmax(found["training"])))
            axis.set_xlabel(r"$\alpha$")
        for line in axes[:, 0]:
            line.set_ylabel("test error")
        branches = list(dict.fromkeys(CASES[name].branch for name in names))
        lines = [axes[0, 0].plot([], [], color=COLORS[branch], lw=1.8)[0] for branch in branches]
        labels = [f"theory, {branch} minimum" for branch in branches]
        figure.legend([*lines, trained], [*labels, f"trained, d = {D}"], ncols=4,
                      loc="outside lower center")  # fmt: skip
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", nargs="?", choices=[*CASES, "draw"])
    step = parser.parse_args().step
    for name in CASES if step is None else [step]:
        if name != "draw":
            keep(name)
    draw()


if __name__ == "__main__":
    main()
