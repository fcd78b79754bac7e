"""Numbers that pages quote, from committed results: (value,) or (value, standard error)."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import brentq

DOCS = Path(__file__).resolve().parent


@cache
def item(name: str) -> Any:
    """Return an item of the report of the reproduction."""
    report = json.loads((DOCS / "reproduction/report.json").read_text(encoding="utf-8"))
    return next(each for each in report["items"] if each["name"] == name)


def row(name: str, quantity: str, **at: Any) -> Any:
    """Return a row of an item, by its quantity and its place."""
    rows = [r for r in item(name)["rows"] if r["quantity"] == quantity]
    return next(r for r in rows if at.items() <= r["at"].items())


def ours(name: str, quantity: str, **at: Any) -> tuple[float, float]:
    found = row(name, quantity, **at)
    return found["ours"], found["stderr"]


def published(name: str, quantity: str, **at: Any) -> tuple[float, float]:
    found = row(name, quantity, **at)
    return found["reference"], found["reference_error"] or np.nan


def deviation(name: str, quantity: str, sign: int, **at: Any) -> float:
    """Return the relative deviation of a row from its reference, times a sign."""
    found = row(name, quantity, **at)
    return float(sign * (found["ours"] / found["reference"] - 1))


def remark(name: str, pattern: str) -> tuple[float, ...]:
    """Return the numbers of a pattern in the words of an item."""
    text = json.dumps(item(name), ensure_ascii=False)
    return tuple(float(group) for group in re.search(pattern, text).groups())


def verdicts() -> dict[str, tuple[float]]:
    """Return how many comparisons of the report have each verdict."""
    text = (DOCS / "reproduction/report.json").read_text(encoding="utf-8")
    counts = json.loads(text)["verdicts"]
    names = {"agree": "agrees", "off": "published is off", "differ": "differs"}
    names |= {"outside": "outside the theory", "none": "no verdict"}
    facts = {f"compared.{name}": (counts[verdict],) for name, verdict in names.items()}
    return {"compared": (sum(counts.values()),), **facts}


@cache
def data(name: str) -> xr.Dataset:
    return xr.load_dataset(DOCS / "data" / name)


def shift(omega: float) -> tuple[float, float]:
    """Return the relative shift of alpha_c by one step of symmetry breaking."""
    at = data("critical_lines.nc").sel(omega=omega, method="nearest")
    both = at["alpha_c_shift"] / at["alpha_c"], at["alpha_c_shift_stderr"] / at["alpha_c"]
    return float(both[0]), float(both[1])


@cache
def speed() -> Any:
    lines = (DOCS / "data/benchmarks.jsonl").read_text(encoding="utf-8").splitlines()
    return json.loads(lines[-1])


@cache
def released() -> pd.DataFrame:
    return pd.read_csv(DOCS / "reproduction/tables/released-runs.csv.gz")


@cache
def deep() -> dict[str, np.ndarray]:
    """Return Bayes-optimal overlaps of deep attention and the released ones, up to alpha = .8."""
    text = (DOCS / "data/deep_attention.json").read_text(encoding="utf-8")
    rows = [row for row in json.loads(text)["bayes2"] if row["alpha"] < 0.81]
    exact = [row for row in rows if "released" in row]
    passed = [row for row in rows if "amp" in row]
    ours, theirs = ([row[key][1] for row in exact] for key in ("overlaps", "released"))
    amp = [(row["amp"][1] - row["overlaps"][1]) / row["amp_std"][1] for row in passed]
    return {"difference": np.abs(np.subtract(ours, theirs)), "amp": np.abs(amp)}


def deep_three() -> float:
    """Return the largest difference from a released overlap of the last of three layers."""
    text = (DOCS / "data/deep_attention.json").read_text(encoding="utf-8")
    rows = json.loads(text)["bayes3"]
    return max(abs(row["overlaps"][-1] - row["released"][-1]) for row in rows)


def deep_added() -> float:
    """Return the largest deviation of message passing from the learner with added variance."""
    text = (DOCS / "data/deep_attention.json").read_text(encoding="utf-8")
    rows = [row for row in json.loads(text)["bayes2"] if "amp" in row]
    misses = [np.subtract(row["amp"], row["added"]) / row["amp_std"] for row in rows]
    return float(np.max(np.abs(misses)))


def deep_decay() -> float:
    """Return the threshold at which two released overlaps decay as they do from .05.

    One damped step multiplies a small overlap by ``.2 + .8 alpha/threshold``.
    """
    text = (DOCS / "data/deep_attention.json").read_text(encoding="utf-8")
    rows = {row["alpha"]: row for row in json.loads(text)["bayes2"]}
    low, high = 0.1, 0.133333
    logs = [np.log(rows[alpha]["released"][1] / 0.05) for alpha in (low, high)]

    def excess(threshold: float) -> float:
        factors = [0.2 + 0.8 * alpha / threshold for alpha in (low, high)]
        return float(np.log(factors[0]) / np.log(factors[1]) - logs[0] / logs[1])

    return float(brentq(excess, 0.14, 0.3))


def deep_students() -> dict[str, tuple[float, ...]]:
    """Return overlaps and test errors, in theory ("limit") and at d, and losses of minima."""
    text = (DOCS / "data/deep_attention.json").read_text(encoding="utf-8")
    facts: dict[str, tuple[float, ...]] = {}
    for row in json.loads(text)["students"]:
        at = f"deep.{row['alpha']:g}.{row['start']}"
        if "test_error" in row:
            facts[f"{at}.limit.error"] = row["test_error"], row["test_error_stderr"]
            facts[f"{at}.relative"] = (row["test_error_stderr"] / row["test_error"],)
            facts |= {f"{at}.limit.{k}": (value,) for k, value in enumerate(row["theta"], 1)}
        for runs in row["trained"]:
            facts[f"{at}.{runs['d']}.error"] = runs["test_error"], runs["test_error_stderr"]
            theta = np.asarray(runs["theta"])
            errors = theta.std(axis=0, ddof=1) / np.sqrt(len(theta))
            for k, pair in enumerate(zip(theta.mean(axis=0), errors, strict=True), 1):
                facts[f"{at}.{runs['d']}.{k}"] = float(pair[0]), float(pair[1])
    for row in json.loads(text)["transition"]:
        at = f"deep.transition.{row['alpha']:g}.{row['start']}"
        facts[at] = 1e3 * row["train_loss"], 1e3 * row["train_loss_stderr"]
    near = [[facts[f"deep.transition.{alpha}.{start}"] for start in ("semantic", "positional")]
            for alpha in (0.6, 0.7)]  # fmt: skip
    errors = [abs(a[0] - b[0]) / np.hypot(a[1], b[1]) for a, b in near]
    facts["deep.transition.errors"] = (float(max(errors)),)
    return facts


def deep_threshold(skip: float, layer: int) -> tuple[float, float]:
    """Return the weak recovery of a layer of deep attention."""
    text = (DOCS / "data/deep_attention.json").read_text(encoding="utf-8")
    rows = json.loads(text)["thresholds"]
    at = next(row for row in rows if row["skip"] == skip)
    return at["alphas"][layer], at["stderr"][layer]


def models() -> int:
    folder = DOCS.parent / "src/dotphase/model/named"
    return sum(not path.name.startswith("_") for path in folder.glob("*.py"))


def trained_deviation() -> float:
    """Return the largest relative deviation of trained alpha_c where the theory is trusted."""
    lines = data("phase_lines.nc").interp(omega=data("phase_grid.nc")["omega"])
    ratio = data("phase_grid.nc")["alpha_c"] / lines["alpha_c"]
    return float(abs(ratio - 1).where(lines["trusted"] == 1).max())


def printed_line(name: str) -> list[float]:
    """Return the p-values of the printed line or the theory among fits of the released runs."""
    fits = json.loads((DOCS / "data/printed_line.json").read_text(encoding="utf-8"))
    return [fit[name]["p"] for fit in fits]


@cache
def one_pass() -> Any:
    return json.loads((DOCS / "data/one_pass.json").read_text(encoding="utf-8"))


def one_pass_share(mechanism: str, omega: float, lr: float) -> tuple[float, float]:
    """Return the share of the 16 one-pass runs that end with a mechanism, and its error."""
    rows = one_pass()["mechanisms"]
    share = next(r["shares"][mechanism] for r in rows if (r["omega"], r["lr"]) == (omega, lr))
    return share, (share * (1 - share) / 16) ** 0.5


def one_pass_escapes() -> dict[str, tuple[float, ...]]:
    """Return when runs of one pass escape, and when the limit does, for each dimension."""
    escapes = one_pass()["escapes"]
    facts: dict[str, tuple[float, ...]] = {}
    for row, limit in zip(escapes["rows"], escapes["limit"], strict=True):
        facts[f"one_pass.escape.{row['d']}"] = row["alpha"], row["stderr"]
        facts[f"one_pass.escape_limit.{row['d']}"] = (limit,)
    return facts


def one_pass_gains(name: str) -> tuple[float, ...]:
    """Return ratios of the test errors of minima and of one pass over alpha and omega, increasing.

    The ratios of students with hardly any ridge are those up to alpha = 1.
    """
    rows = [r for r in one_pass()["passes"] if name == "many" or r["alpha"] <= 1]
    return tuple(sorted(row[name] / row["once"] for row in rows))


def one_pass_limit(d: int) -> tuple[float]:
    """Return the largest relative difference of trained test errors from the limit."""
    row = next(row for row in one_pass()["agreement"] if row["d"] == d)["test_error"]
    return (float(np.max(np.abs(np.divide(row["trained"], row["limit"]) - 1))),)


def one_pass_errors() -> tuple[float]:
    """Return the largest difference of training from the runs at finite d, in standard errors."""
    names = ("test_error", "theta", "m", "q")
    rows = [row[name]["errors_from_chain"] for row in one_pass()["agreement"] for name in names]
    return (float(max(np.abs(row).max() for row in rows)),)


TRANSITION = "transition"
AT_TWO = {"start": "semantic", "alpha": 2.0}

FACTS: dict[str, tuple[float, ...]] = {
    "alpha_c": ours(TRANSITION, "alpha_c"),
    "alpha_c.published": published(TRANSITION, "alpha_c"),
    "alpha_c.procedure": remark("quadrature", r"released procedure(?: gives)?:? (\d\.\d+)"),
    "alpha_l": ours(TRANSITION, "alpha_l"),
    "alpha_l.published": published(TRANSITION, "alpha_l"),
    "alpha_c.shift.0": shift(0.0),
    "alpha_c.shift.3": shift(0.3),
    "test_error": ours(TRANSITION, "test_error", **AT_TWO),
    "test_error.published": published(TRANSITION, "test_error", **AT_TWO),
    "positional": ours("histogram", "accuracy", mechanism="positional"),
    "positional.published": published("histogram", "accuracy", mechanism="positional"),
    "semantic": ours("histogram", "accuracy", mechanism="semantic"),
    "semantic.published": published("histogram", "accuracy", mechanism="semantic"),
    "starts.gd.semantic": remark("starts", r"gradient descent, random start: (\d+) semantic"),
    "starts.gd.positional": remark(
        "starts", r"gradient descent, random start: .*?(\d+) positional"
    ),
    "starts.gd.mixed": remark("starts", r"gradient descent, random start: .*?(\d+) mixed"),
    "printed.p.low": (min(printed_line("printed")),),
    "printed.p.high": (max(printed_line("printed")),),
    "theory.p.low": (min(printed_line("theory")),),
    "theory.p.high": (max(printed_line("theory")),),
    "released.values": remark("released", r"Over the (\d+) values of runs"),
    "released.beyond": remark("released", r"comparisons: (\d+) of them"),
    "released.expected": remark("released", r"beyond 3 standard errors; (\d+) are"),
    "released.standins": remark("released", r"Another (\d+) values"),
    "released.standins.beyond": remark("released", r"replaces: (\d+) lie beyond 3"),
    "rank2.low": (deviation("rank2", "theta of the lowest minimum, mean over cells", -1),),
    "shift.0": (-shift(0.0)[0],),
    "shift.1": (-shift(0.1)[0],),
    "early.08": (deviation("phase-standard", "alpha_c of trained students", -1, omega=0.08),),
    "theta.early": (deviation(TRANSITION, "theta", 1, branch="semantic", alpha=1.005),),
    "barrier": remark("distances", r"barrier of ([\d.]+), [\d.]+ after"),
    "barrier.aligned": remark("distances", r"barrier of [\d.]+, ([\d.]+) after"),
    "trained.trusted": (trained_deviation(),),
    "one_pass.semantic.fast": one_pass_share("semantic", 0.3, 64.0),
    "one_pass.semantic.slow": one_pass_share("semantic", 0.3, 4.0),
    "one_pass.mixed.slow": one_pass_share("mixed", 0.3, 4.0),
    "one_pass.positional.slow.3": one_pass_share("positional", 0.3, 4.0),
    "one_pass.positional.slow": one_pass_share("positional", 0.6, 4.0),
    "one_pass.positional.fast": one_pass_share("positional", 0.6, 64.0),
    "one_pass.errors": one_pass_errors(),
    "one_pass.limit.1000": one_pass_limit(1000),
    "one_pass.limit.4000": one_pass_limit(4000),
    **one_pass_escapes(),
    "one_pass.many.closest": one_pass_gains("many")[-1:],
    "one_pass.weak.lowest": one_pass_gains("weak")[:1],
    "one_pass.weak.highest": one_pass_gains("weak")[-1:],
    **{
        f"one_pass.{name}.{row['alpha']:g}": (1e3 * row[name], 1e3 * row[f"{name}_stderr"])
        for row in one_pass()["passes"]
        for name in ("once", "many", "weak")
        if row["omega"] == 0.3
    },
    "one_pass.lr.lowest": (min(row["lr"] for row in one_pass()["passes"]),),
    "one_pass.lr.highest": (max(row["lr"] for row in one_pass()["passes"]),),
    "one_pass.direction": (one_pass()["switch"]["direction"],),
    "one_pass.minimum": (one_pass()["switch"]["minimum"],),
    "models": (models(),),
    "deep.worst": (float(deep()["difference"].max()),),
    "deep.typical": (float(np.median(deep()["difference"])),),
    "deep.amp": (float(deep()["amp"].max()),),
    "deep.three": (deep_three(),),
    "deep.added": (deep_added(),),
    "deep.decay": (deep_decay(),),
    "deep.first": deep_threshold(1.0, 0),
    "deep.last": deep_threshold(1.0, 1),
    "deep.last.strong": deep_threshold(4.0, 1),
    "speed.ratio": (speed()["textbook"]["default"]["ratio"],),
    # One minimization for all averages takes a quarter of the time (benchmarks.md).
    "speed.once": (round(speed()["textbook"]["default"]["ratio"] / 4, -1),),
    "speed.error": (speed()["textbook"]["default"]["error"],),
    "speed.textbook": (speed()["textbook"]["textbook"]["error"],),
}
FACTS |= deep_students() | verdicts()
FACTS["alpha_c.low"] = (1 - FACTS["alpha_c.published"][0] / FACTS["alpha_c"][0],)


def wide() -> dict[str, tuple[float, ...]]:
    """Return numbers of wide attention: tables of `benchmarks/wide.py`."""
    content = json.loads((DOCS / "data/wide.json").read_text(encoding="utf-8"))
    lines = [table for table in content["released"] if table["learner"] == "SE"]
    shift = next(
        row for row in content["trained"] if row["quantity"] == "shift" and row["alpha"] == 0.6
    )
    return {
        "wide.typical": (max(table["typical"] for table in lines),),
        "wide.first": (max(table["first"][0] for table in lines),),
        "wide.last": (max(table["last"][0] for table in lines),),
        "wide.outlier": (-min(table["lowest"] for table in lines),),
        **{f"wide.{name}": (value,) for name, value in content["scores"].items()},
        "wide.shift.small": (shift["small"][0],),
        "wide.shift.large": (shift["large"][0],),
        "wide.shift.theory": (shift["theory"],),
    }


FACTS |= wide()
