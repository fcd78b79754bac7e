"""The library with bad arguments: an InvalidInput or a TypeError in one line, or a sound result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import hostile
import numpy as np
from common import Trial, Wrong, require, run

import dotphase as dp

PAPER = dp.positional_semantic()
SMALL: dict[str, Any] = {"log2_points": 12}
OVERLAPS = dp.solve(PAPER, 2.0, **SMALL).overlaps


def _overlaps(**parts: Any) -> Any:
    return dp.solve(PAPER, 2.0, dp.Overlaps(**parts), **SMALL)


def _study(task: Any, sweep: Any, **more: Any) -> Any:
    return dp.Study(task, sweep=sweep, **more)


def _iteration(**parts: Any) -> Any:
    return dp.solve(PAPER, 2.0, iteration=dp.Iteration(**parts), **SMALL)


#: Calls with sound arguments, each of which is exchanged in turn.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "positional_semantic": (dp.positional_semantic, {
        "omega": 0.3, "sigma": 0.5, "ridge": 0.01, "mixing": "standard", "student_rank": 1}),
    "Model": (dp.Model, {
        "teacher": dp.softmax_attention, "student": dp.softmax_attention, "length": 2,
        "teacher_rank": 1, "student_rank": 1, "sigma": 0.5, "positions": np.eye(2), "ridge": 0.01,
        "spectrum": None}),
    "solve": (dp.solve, {
        "model": PAPER, "alpha": 2.0, "start": "semantic", "log2_points": 12, "rtol": 0.01,
        "max_log2_points": 14, "seed": 0, "iteration": None, "breaking": 0}),
    "Overlaps": (_overlaps, OVERLAPS._asdict()),
    "Iteration": (_iteration, {
        "tolerance": 1e-4, "floor": 1e-3, "max_steps": 40, "step": 0.4, "anderson_depth": 3,
        "near": 0.5}),
    "solve_many": (dp.solve_many, {
        "problems": [(PAPER, 2.0, "semantic")], "lanes": 1, "log2_points": 12}),
    "curve": (dp.curve, {
        "model": PAPER, "alphas": [2.0], "branches": ["semantic"], "log2_points": 12, "seed": 0}),
    "critical": (dp.critical, {"model": None, "seed": 0}),
    "train": (dp.train, {
        "model": PAPER, "alpha": 1.0, "d": 20, "seeds": 1, "first_index": 0, "start": "semantic",
        "steps": 2, "optimizer": "lbfgs", "tolerance": 1e-3, "minibatch": 8, "momentum": 0.5,
        "held_out": 256, "scale": 0.1, "seed": 0, "dtype": "float64", "runs_per_batch": 1,
        "record": False}),
    "amp": (dp.amp, {
        "model": PAPER, "alpha": 1.0, "d": 20, "seeds": 1, "start": "semantic", "iterations": 2,
        "damping": 0.1, "tolerance": 1e-3, "held_out": 256, "seed": 0}),
    "dynamics": (dp.dynamics, {
        "model": PAPER, "alpha": 1.0, "start": "semantic", "steps": 2, "lr": 4.0, "momentum": 0.0,
        "batch_fraction": 1.0, "scale": None, "d": None, "log2_ensemble": 6, "repetitions": 2,
        "rtol": None, "seed": 0, "dtype": "float64"}),
    "sample": (dp.sample, {"model": PAPER, "d": 20, "n": 20, "key": 0, "dtype": "float64"}),
    "curvature": (dp.curvature, {
        "model": PAPER, "alpha": 1.0, "d": 20, "weights": np.zeros((20, 1)), "run": 0, "seed": 0,
        "count": 2}),
    "Study": (_study, {
        "task": "theory", "sweep": {"alpha": [1.0]}, "fixed": {}, "seeds": 1,
        "model": "positional-semantic"}),
    "Task": (dp.histogram.Task, {"symbols": 5, "length": 4, "samples": 50}),
    "load_model": (dp.load_model, {"reference": "positional-semantic", "omega": 0.3}),
    "read_spec": (dp.read_spec, {"path": "nothing.toml", "model": None, "settings": ()}),
    "read_study": (dp.read_study, {"folder": "nothing"}),
    "load_network": (dp.histogram.load_network, {"path": "nothing.npz"}),
    "ridge_regression": (dp.analysis.ridge_regression, {"alpha": 1.0, "ridge": 0.1}),
    "plot.curve": (dp.plot.curve, {
        "dataset": dp.curve(PAPER, [1.9, 2.0], **SMALL), "path": "a.png"}),
}  # fmt: skip
#: Arguments that are callbacks or objects whose misuse is Python's to tell.
LEFT_OUT = {("plot.curve", "dataset")}


def numbers(value: Any, depth: int = 0) -> list[float]:
    """The numbers of a result that says that it converged."""
    if isinstance(value, float | np.floating):
        return [float(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return [float(np.sum(value))]
    if is_dataclass(value) and depth < 3:
        return [n for part in fields(value) for n in numbers(getattr(value, part.name), depth + 1)]
    return []


def sound(result: Any) -> bool:
    """Whether a result that says that it converged has its main numbers."""
    if getattr(result, "converged", None) is not True:
        return True
    told = [getattr(result, name, 0.0) for name in ("train_loss", "test_error")]
    told += [value for value in getattr(result, "mean", {}).values() if value is not None]
    return all(math.isfinite(value) for value in told if isinstance(value, float))


def cases(trial: Trial) -> None:
    places = [(name, argument) for name, (_, given) in CALLS.items() for argument in given]
    for _ in range(trial.cases):
        name, argument = trial.choose([place for place in places if place not in LEFT_OUT])
        number = int(trial.rng.integers(len(hostile.OBJECTS)))
        function, given = CALLS[name]
        value = hostile.OBJECTS[number]
        with trial.case((name, argument, number)):
            try:
                result = function(**{**given, argument: value})
            except (dp.InvalidInput, TypeError) as error:
                text = str(error)
                require("\n" not in text, f"{len(text.splitlines())} lines: {text[:200]}")
                require(len(text) < 600, f"{len(text)} characters: {text[:200]}")
                ours = isinstance(error, dp.InvalidInput) or _from_the_call(error, function)
                require(ours, f"TypeError from inside: {text[:200]}")
            except MemoryError:
                raise Wrong("out of memory") from None
            else:
                require(sound(result), "converged with numbers that are not finite")


def _from_the_call(error: BaseException, function: Callable[..., Any]) -> bool:
    """Whether Python, or the list of settings, refused the call itself."""
    trace = error.__traceback__
    depth = 0
    while trace is not None:
        depth += 1
        trace = trace.tb_next
    return depth <= 3 or "unknown keyword" in str(error)


if __name__ == "__main__":
    run(Trial("library", "Functions with one hostile argument.", 500), cases)
