"""Shares of attention in the solvable model: theory and trained students against alpha.

``python -m reproduction.heads.students`` solves both branches, trains students at d = 500 from both
starts (minutes on a CPU) and writes ``docs/data/heads_students.nc``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

import dotphase as dp

DATA = Path(__file__).parents[2] / "docs/data/heads_students.nc"
BRANCHES = ("semantic", "positional")
THEORY = np.linspace(0.6, 2.4, 19)
ALPHAS = (0.8, 1.1, 1.4, 2.0)
D, SEEDS = 500, 8
#: Tokens of the vocabulary and sentences on which attention is measured.
VOCABULARY, SENTENCES = 128, 40_000
SHARES = ("positional", "semantic", "interaction", "rest")


def theory(model: dp.Model) -> xr.Dataset:
    """Shares and training loss of both branches."""
    points = [(model, float(alpha), branch) for branch in BRANCHES for alpha in THEORY]
    solutions = dp.solve_many(points, log2_points=13)
    shape = len(BRANCHES), len(THEORY)
    parts = [dp.heads.solution_shares(solution) for solution in solutions]
    dims = ("branch", "alpha")
    values = {name: (dims, np.reshape([part[name] for part in parts], shape)) for name in SHARES}
    reached = np.reshape([solution.found for solution in solutions], shape)
    loss = np.reshape([solution.train_loss for solution in solutions], shape)
    dataset = xr.Dataset(
        values | {"train_loss": (dims, loss)}, {"branch": list(BRANCHES), "alpha": THEORY}
    )
    return dataset.where(xr.DataArray(reached == np.array(BRANCHES)[:, None], dims=dims))


def measure(model: dp.Model, runs: dp.results.Training, seed: int) -> dp.heads.HeadShares:
    """Shares of trained students on sentences of a finite vocabulary, one head for each student."""
    positions = np.asarray(dp.sample(model, D, 2, key=0).positions)
    rng = np.random.default_rng(seed)
    tokens = np.argsort(rng.random((SENTENCES, VOCABULARY)), axis=1)[:, : model.length]
    scores = []
    for run in runs.runs:
        contents = model.sigma[0] * rng.standard_normal((VOCABULARY, D))
        # The mean content of a finite vocabulary would act as a position of its own.
        contents -= contents.mean(axis=0)
        contents *= np.sqrt(VOCABULARY / (VOCABULARY - 1))
        fields = ((contents[tokens] + positions) @ run.weights)[..., 0] / np.sqrt(D)
        scores.append(fields[:, :, None] * fields[:, None, :])
    return dp.heads.shares(np.stack(scores, axis=1), tokens, scores=True)


def students(model: dp.Model) -> xr.Dataset:
    """Shares of trained students, means and standard errors over seeds."""
    rows = []
    for number, alpha in enumerate(ALPHAS):
        for branch in BRANCHES:
            runs = dp.train(model, alpha=alpha, d=D, seeds=SEEDS, start=branch)
            heads = measure(model, runs, seed=number)
            row = {}
            for name in SHARES:
                values = getattr(heads, name)
                row[name] = float(values.mean())
                row[f"{name}_stderr"] = float(values.std(ddof=1) / np.sqrt(SEEDS))
            rows.append(row)
            print(alpha, branch, {name: round(value, 3) for name, value in row.items()}, flush=True)
    shape = len(ALPHAS), len(BRANCHES)
    dims = ("alpha_trained", "branch")
    values = {
        f"{name}_trained": (dims, np.reshape([row[name] for row in rows], shape))
        for name in rows[0]
    }
    return xr.Dataset(values, {"alpha_trained": list(ALPHAS), "branch": list(BRANCHES)})


def main() -> None:
    model = dp.positional_semantic(omega=0.3)
    dataset = xr.merge([theory(model), students(model)])
    dataset.attrs = {"d": D, "seeds": SEEDS, "command": "python -m reproduction.heads.students"}
    dataset.to_netcdf(DATA, engine="h5netcdf")


if __name__ == "__main__":
    main()
