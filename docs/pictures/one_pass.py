"""Compute and draw the results of the page on one pass over fresh sentences.

``python docs/pictures/one_pass.py --compute`` (some minutes of CPU time) writes
``docs/data/one_pass.json``, part by part. Without ``--compute`` the figures are drawn from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dotphase as dp
from dotphase.plot import style

DOCS = Path(__file__).parents[1]
DATA = DOCS / "data/one_pass.json"
PICTURE = DOCS / "images/one-pass.png"
#: Quantities of the comparison with training.
QUANTITIES = ("test_error", "theta", "m", "q")
OMEGA, RIDGE = 0.3, 1e-4
#: Learning rates with the sentences per step over d.
RATES = {4.0: 0.08, 16.0: 0.02, 64.0: 0.02}
#: Sentences per dimension and initial learning rates of the comparison with many passes.
ALPHAS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
LEARNING_RATES = tuple(2.0 ** np.arange(3, 10.5, 0.5))


def agreement() -> list[dict[str, Any]]:
    """Train on fresh sentences at two sizes, beside the runs at finite d and the limit."""
    model, start, lr = dp.positional_semantic(), dp.start_from(theta=0.1, m=0.2, q=0.08), 16.0
    rows = []
    for d, alpha, seeds in ((1000, 4.0, 16), (4000, 1.0, 6)):
        batch = d // 50
        runs = dp.train(
            model, alpha, d, seeds=seeds, start=start, optimizer="sgd", fresh=True, record=True,
            lr=lr, minibatch=batch, held_out=2,
        )  # fmt: skip
        path = runs.path.isel(step=slice(None, None, 10))
        alphas = path["alpha"].values
        chain = dp.online(model, alphas, lr, start, d=d, repetitions=48, batch_fraction=batch / d)
        limit = dp.online(model, alphas, lr, start)
        row: dict[str, Any] = {"d": d, "seeds": seeds, "alpha": alphas.tolist()}
        for name in QUANTITIES:
            values = path[name].values
            mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(seeds)
            both = np.hypot(error, chain.stderr[name])
            row[name] = {
                "trained": mean.tolist(),
                "trained_stderr": error.tolist(),
                "chain": getattr(chain, name).tolist(),
                "chain_stderr": chain.stderr[name].tolist(),
                "limit": getattr(limit, name).tolist(),
                "errors_from_chain": ((mean - getattr(chain, name)) / both)[1:].tolist(),
                "errors_from_limit": ((mean - getattr(limit, name)) / error)[1:].tolist(),
            }  # fmt: skip
        rows.append(row)
    return rows


def mechanisms() -> list[dict[str, Any]]:
    """Run one pass from random starts for several mixings and learning rates."""
    rows = []
    for (lr, fraction), omega in (
        (pair, omega) for pair in RATES.items() for omega in (0.1, 0.2, 0.3, 0.6)
    ):
        model = dp.positional_semantic(omega=omega, ridge=RIDGE)
        alphas = np.linspace(0, 800 / lr, 33)
        path = dp.online(model, alphas, lr, d=250, batch_fraction=fraction, repetitions=16, seed=1)
        exits = path.exit_alpha()
        row = {"omega": omega, "lr": lr, "shares": path.mechanism_shares()}
        row |= {"alpha": path.alpha.tolist(), "test_error": path.test_error.tolist()}
        row |= {
            f"share_{name}": (rows_of > 0.7).mean(axis=0).tolist()
            for name, rows_of in path.alignments().items()
        }
        rows.append({**row, "exit_alpha": float(exits.mean())})
    return rows


def escapes() -> dict[str, Any]:
    """Measure when runs leave zero overlaps, for several dimensions."""
    model, lr = dp.positional_semantic(omega=OMEGA, ridge=RIDGE), 16.0
    rows = []
    for d in (250, 1000, 4000, 16000):
        path = dp.online(
            model, np.linspace(0, 16, 81), lr, d=d, batch_fraction=0.02, repetitions=24, seed=2
        )
        exits = path.exit_alpha()
        exits = exits[np.isfinite(exits)]
        error = exits.std(ddof=1) / np.sqrt(len(exits))
        rows.append({"d": d, "alpha": float(exits.mean()), "stderr": float(error)})
    return {"lr": lr, "rows": rows, "limit": [limit_escape(row["d"], lr) for row in rows]}


def limit_escape(d: int, lr: float) -> float:
    """Mean escape in the limit, from overlaps m as those of random weights in dimension d."""
    model, exits = dp.positional_semantic(omega=OMEGA, ridge=RIDGE), []
    for quantile in (0.21, 0.67, 1.38):  # of |z| at 1/6, 1/2 and 5/6, z normal
        start = dp.start_from(m=0.1 * quantile / d**0.5, q=0.25 * (0.01 + 0.01 * quantile**2 / d))
        path = dp.online(model, np.linspace(0, 16, 321), lr, start, order=8)
        exits.append(path.exit_alpha()[0])
    return float(np.mean(exits))


def passes() -> list[dict[str, Any]]:
    """Compare the best one pass with the minimum of the training loss for as many sentences.

    Minima of a small ridge overfit, where replica symmetry fails: students are trained there.
    """
    rows = []
    for omega in (0.1, 0.3, 0.6):
        model = dp.positional_semantic(omega=omega)
        minima = dp.curve(model, ALPHAS, log2_points=13, max_log2_points=13)
        lowest = minima["train_loss"].where(minima["on_branch"]).argmin("branch")
        for k, alpha in enumerate(ALPHAS):
            minimum = minima.isel(alpha=k, branch=int(lowest[k]))
            best = min(single_passes(model, alpha), key=lambda path: path.test_error[-1])
            weak = dp.train(
                model.replace(ridge=RIDGE), alpha, 300, seeds=8, start="random", held_out=2
            )
            rows.append(
                {
                    "omega": omega, "alpha": alpha, "once": float(best.test_error[-1]),
                    "once_stderr": float(best.stderr["test_error"][-1]), "lr": float(best.lr[0]),
                    "schedule": best.settings.schedule, "many": float(minimum["test_error"]),
                    "many_stderr": float(minimum["test_error_stderr"]),
                    "branch": str(minimum["branch"].values), "trusted": bool(minimum["trusted"]),
                    "weak": weak.mean["test_error"], "weak_stderr": weak.stderr["test_error"],
                    "linear": weak.mean["linear_test_error"],
                }
            )  # fmt: skip
    return rows


def single_passes(model: dp.Model, alpha: float) -> Iterator[Any]:
    """Run one pass from random weights, for all learning rates and schedules."""
    for schedule in ("constant", "linear"):
        for lr in LEARNING_RATES:
            yield dp.online(
                model.replace(ridge=RIDGE), [alpha], lr, d=1000, schedule=schedule,
                batch_fraction=0.01, repetitions=16, seed=3,
            )  # fmt: skip


def switch() -> dict[str, float]:
    """Mixings at which the escape direction and the global minimum on the sphere switch.

    The setting of Arnaboldi et al. (arXiv:2506.02651): tokens of unit variance, weights of length
    sqrt d, ``A = softmax(a^2 [[1, -1], [-1, 1]])`` with a = 1.
    """
    share = 1 / (1 + np.exp(-2.0))
    mixing = [[share, 1 - share], [1 - share, share]]

    def model(omega: float) -> dp.Model:
        return dp.positional_semantic(omega=omega, sigma=1.0, ridge=1e-9, mixing=mixing)

    def rates(omega: float) -> float:
        growth = []
        for name in ("theta", "m"):
            start = dp.start_from(**{name: 0.02}, q=1.0)
            path = dp.online(model(omega), [2.0], 0.01, start, spherical=True, order=24)
            growth.append(np.log(getattr(path, name)[1] / getattr(path, name)[0]))
        return float(growth[0] - growth[1])

    def difference(omega: float) -> float:
        losses = []
        for start in (dp.start_from(theta=1.0, q=1.0), dp.start_from(m=1.0, q=1.0)):
            path = dp.online(model(omega), [1e-6], 0.01, start, order=24)
            losses.append(path.test_error[0])
        return float(losses[0] - losses[1])

    def root(function: Any, low: float, high: float) -> float:
        below, above = function(low), function(high)
        return float(low + (high - low) * below / (below - above))

    return {"direction": root(rates, 0.635, 0.65), "minimum": root(difference, 0.73, 0.745)}


PARTS = {part.__name__: part for part in (escapes, passes, mechanisms, agreement, switch)}


def draw(path: Path) -> Any:
    """Draw the escape, the two mechanisms, and one pass against many."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    with style.new_figure(None, 1, 3, size=(11.4, 3.4)) as (figure, axes):
        draw_mechanisms(axes[0], data["mechanisms"])
        draw_escapes(axes[1], data["escapes"])
        draw_passes(axes[2], data["passes"])

        style.save(figure, path, small=True)
    return figure


def draw_mechanisms(axis: Any, rows: list[dict[str, Any]]) -> None:
    """Draw the share of runs aligned with teacher and positions, over time."""
    for lr, line in ((4.0, "-"), (64.0, "--")):
        row = next(row for row in rows if row["lr"] == lr and row["omega"] == 0.2)
        for name in ("positional", "semantic"):
            label = f"{name}, lr = {lr:g}"
            time = lr * np.array(row["alpha"])
            axis.plot(time, row[f"share_{name}"], line, color=style.COLORS[name], label=label)
    axis.set(xlabel=r"lr $\times$ sentences per dimension", ylabel="share of runs")
    axis.set(ylim=(-0.03, 1.4), yticks=np.linspace(0, 1, 6))
    axis.legend(fontsize=8, loc="upper center", ncols=2)


def draw_escapes(axis: Any, data: dict[str, Any]) -> None:
    """Draw the escape against the dimension, with the slope of the theory."""
    d, alpha, error = (np.array([r[key] for r in data["rows"]]) for key in ("d", "alpha", "stderr"))
    axis.errorbar(d, alpha, error, fmt="o", color=style.ink_color(), mfc=style.page_color(),
                  label="runs")  # fmt: skip
    axis.plot(d, data["limit"], color=style.ink_color(), label="limit, from overlaps of this size")
    axis.set(xscale="log", xlabel="dimension d", ylabel=r"escape, sentences per dimension")
    axis.legend()


def draw_passes(axis: Any, rows: list[dict[str, Any]]) -> None:
    """Draw the test error of one pass and of minima, against the sentences."""
    rows = [row for row in rows if row["omega"] == OMEGA]
    alpha = [row["alpha"] for row in rows]
    for name, color, label in (
        ("weak", style.COLORS["random"], rf"many passes, $\lambda = {RIDGE:g}$ (training)"),
        ("many", style.ink_color(), r"many passes, $\lambda = 0.01$ (theory)"),
        ("once", style.COLORS["mixed"], "one pass, best learning rate"),
    ):
        values = [1e3 * row[name] for row in rows]
        error = [1e3 * row[f"{name}_stderr"] for row in rows]
        axis.errorbar(alpha, values, error, fmt="o-", color=color, mfc=style.page_color(),
                      label=label)  # fmt: skip
    axis.plot(alpha, [1e3 * row["linear"] for row in rows], "--", color=style.COLORS["linear"],
              label="linear layer")  # fmt: skip
    axis.set(xlabel=r"sentences per dimension $\alpha$", ylim=(0, 11.5), xscale="log")
    axis.set_xticks(alpha, [f"{value:g}" for value in alpha], fontsize="small")
    axis.set_xticks([], minor=True)
    axis.set_ylabel(r"test error $\times 10^3$")
    axis.legend(fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compute", nargs="*", choices=PARTS, help="parts; all if none is named")
    chosen = parser.parse_args().compute
    if chosen is not None:
        data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
        for name in chosen or PARTS:
            data[name] = PARTS[name]()
            DATA.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")
    for shade in ("light", "dark"):
        suffix = "" if shade == "light" else "-dark"
        with style.theme(shade):
            draw(PICTURE.with_stem(PICTURE.stem + suffix))


if __name__ == "__main__":
    main()
