"""Made-up results for every figure: drawing needs no solving and no training."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import xarray as xr

import dotphase as dp

ALPHA = np.array([0.5, 1.0, 1.5, 2.0])
OMEGA = np.array([0.1, 0.2, 0.3])
DIMS = ("branch", "alpha")


def rng():
    return np.random.default_rng(7)


def curve():
    """Two branches, one missing at first and doubtful after that."""
    loss = np.array([[0.0013, 0.0023, 0.0031, 0.0036], [0.0011, 0.0022, 0.0033, 0.0045]])
    return xr.Dataset(
        {
            "train_loss": (DIMS, loss),
            "test_error": (DIMS, loss[::-1]),
            "theta": (DIMS, [[0, 0.09, 0.13, 0.16], [0, 0, 0, 0]]),
            "m": (DIMS, [[0, 0, 0, 0], [0.22, 0.25, 0.25, 0.26]]),
            "on_branch": (DIMS, [[False, True, True, True], [True] * 4]),
            "trusted": (DIMS, [[False, False, True, True], [True] * 4]),
            "alpha_c": 1.24,
            "alpha_c_stderr": 0.01,
            "linear_test_error": 0.00197,
        },
        coords={"branch": ["semantic", "positional"], "alpha": ALPHA},
        attrs={"sigma": [0.5, 0.5]},
    )


def compared():
    """Theory, training and message passing; one point differs, one was left."""
    theory = curve().drop_vars(["alpha_c", "alpha_c_stderr"])
    parts = ("train_loss", "test_error", "theta", "m")
    for name in parts:
        theory[f"{name}_stderr"] = 0.02 * theory[name]
        both = [scale * theory[name] for scale in (1.0, 1.05, 1.02)]
        theory[name] = xr.concat(both, xr.Variable("source", ["theory", "training", "amp"]))
    verdict = np.full((2, 4), "agrees", dtype="U20")
    verdict[0, 2], verdict[1, 3] = "differs", "training leaves it"
    return theory.assign(verdict=(DIMS, verdict)).assign_attrs(d=200)


def runs(omegas=(0.3,)):
    """Trained students from both starts, three data sets each."""
    theory = curve()
    noise = rng()
    shape = (ALPHA.size, len(omegas), 2, 3)
    values = {}
    for name in ("train_loss", "test_error", "theta", "m"):
        level = theory[name].transpose("alpha", "branch").values[:, None, :, None]
        values[name] = (
            ("alpha", "omega", "start", "seed"),
            level * noise.uniform(0.95, 1.05, shape) + 1e-4 * np.asarray(omegas)[:, None, None],
        )
    values["linear_test_error"] = (
        ("alpha", "omega", "seed"),
        noise.uniform(0.0019, 0.002, (ALPHA.size, len(omegas), 3)),
    )
    return xr.Dataset(
        values,
        coords={"alpha": ALPHA, "omega": list(omegas), "start": ["semantic", "positional"]},
        attrs={"d": 200},
    )


def diagram():
    """A phase diagram with a corner where a branch is missing and one that is doubtful."""
    difference = 1e-3 * (OMEGA[None, :] * 4 - ALPHA[:, None])
    difference[0, 2] = np.nan
    gain = 1e-3 * (ALPHA[:, None] - 1 - OMEGA[None, :])
    winner = np.where(np.nan_to_num(difference, nan=1.0) < 0, "semantic", "positional")
    found = np.stack([np.where(ALPHA[:, None] > 1.7, "mixed", "semantic")] * 2)
    both, shape = ("alpha", "omega"), (2, ALPHA.size, OMEGA.size)
    kind = np.full(shape, "minimum", object)
    kind[0, 0, 1], kind[0, 0, 2], kind[1, 3, 0], kind[1, 2, 0] = (
        "marginal", "missing", "saddle", "unknown",
    )  # fmt: skip
    return xr.Dataset(
        {
            "loss_difference": (both, difference),
            "test_gain": (both, gain),
            "winner": (both, winner),
            "winner_trusted": (both, ALPHA[:, None] + OMEGA > 0.75),
            "found": (("branch", *both), np.broadcast_to(found, shape)),
            "kind": (("branch", *both), kind.astype(str)),
            "model_error": (("branch", *both), np.full(shape, 0.2)),
            "alpha_c": ("omega", [0.6, 0.9, np.nan]),
            "alpha_l": ("omega", [1.1, 1.2, 1.3]),
        },
        coords={"alpha": ALPHA, "omega": OMEGA, "branch": ["semantic", "positional"]},
        attrs={"parameter": "omega"},
    )


def trained_means():
    """A diagram by training, one crossing of which lies outside."""
    theory = diagram()
    crossing = {"alpha_c": ("omega", [0.62, 0.93, np.nan]), "alpha_c_stderr": ("omega", [0.02] * 3)}
    means = theory[["loss_difference"]].fillna(0.0).assign(crossing)
    return means.assign_attrs(theory.attrs, d=200)


def critical(dimension, values):
    """Critical points over a parameter, one of them missing."""
    alpha_c = np.linspace(1.2, 0.8, len(values))
    alpha_c[-1] = np.nan
    lines = {
        "alpha_c": alpha_c,
        "alpha_c_stderr": np.full(len(values), 0.02),
        "alpha_l": np.linspace(1.5, 1.1, len(values)),
        "alpha_l_stderr": np.full(len(values), 0.02),
        "trained": alpha_c + 0.03,
        "trained_stderr": np.full(len(values), 0.04),
        "trusted": np.arange(len(values)) % 2 == 0,
    }
    return xr.Dataset(
        {name: (dimension, line) for name, line in lines.items()}, coords={dimension: values}
    )


def basins():
    """What runs of two optimizers found."""
    kinds = rng().choice(["semantic", "positional", "uninformed"], (2, 2, 4, 3))
    return xr.Dataset(
        {"mechanism": (("optimizer", "alpha", "seed", "scale"), kinds)},
        coords={"optimizer": ["gd", "lion"], "alpha": [1.0, 2.0], "scale": [0.01, 0.1, 1.0]},
    )


def starts():
    """Where runs of two optimizers from three starts ended."""
    dims = ("optimizer", "start", "seed")
    return xr.Dataset(
        {"m": (dims, 0.2 * rng().random((2, 3, 4))), "theta": (dims, rng().random((2, 3, 4)) / 5)},
        coords={"optimizer": ["gd", "adam"], "start": ["semantic", "positional", "random"]},
    )


def passing():
    """Message passing whose prediction ends before it does."""
    rows = [
        {
            "iteration": k,
            "measured": {"q": 0.1 + 0.01 * k, "m": 0.0, "theta": 0.02 * k},
            "stderr": {"q": None, "m": None, "theta": None},
            "predicted": {"q": 0.1 + 0.01 * k, "m": 0.0, "theta": 0.02 * k} if k < 3 else None,
        }
        for k in range(5)
    ]
    model = dp.positional_semantic()
    return SimpleNamespace(
        iterations=rows, runs=[0], model=model, start="semantic", d=100, alpha=2.0
    )


def passing_dataset():
    """The same as a dataset."""
    k = np.arange(6)
    values = {}
    for name, size in (("q", 0.1), ("m", 0.01), ("theta", 0.05)):
        values[f"{name}_measured"] = ("iteration", size * (1 - 0.5**k) * 1.02)
        values[f"{name}_predicted"] = ("iteration", size * (1 - 0.5**k))
        values[f"{name}_stderr"] = ("iteration", np.where(k < 3, 0.003, np.nan))
    return xr.Dataset(values, coords={"iteration": k}, attrs={"d": 300, "alpha": 2.0})


def training():
    """Runs of three mechanisms, and one that diverged."""
    found = ["semantic", "positional", "positional", "uninformed"]
    some = [
        SimpleNamespace(m=0.1 * k, theta=0.02 * k, q=0.05, mechanism=name, diverged=False)
        for k, name in enumerate(found)
    ]
    some.append(SimpleNamespace(m=9.0, theta=9.0, q=9.0, mechanism="mixed", diverged=True))
    return SimpleNamespace(
        runs=some, model=dp.positional_semantic(), d=100, start="random", optimizer="adam",
        alpha=2.0,
    )  # fmt: skip


def field():
    """A flow field with three fixed points."""
    m, theta = np.linspace(0, 0.5, 6), np.linspace(0, 0.26, 5)
    x, y = np.meshgrid(m, theta)
    axes = ("theta", "m")
    return xr.Dataset(
        {
            "m_speed": (axes, x * (0.3 - x) - y),
            "theta_speed": (axes, y * (0.2 - y) - x / 9),
            "loss": (axes, (x - 0.3) ** 2 + y),
            "point_m": ("point", [0.3, 0.0, 0.1]),
            "point_theta": ("point", [0.0, 0.2, 0.1]),
            "point_stable": ("point", [1, 1, 0]),
        },
        coords={"m": m, "theta": theta},
    )


def along_time():
    """Overlaps along time, with errors."""
    tau = np.linspace(0, 8, 9)
    values = {name: ("tau", 0.1 * k * tau / 8) for k, name in enumerate(("m", "theta", "q"), 1)}
    values |= {f"{name}_stderr": ("tau", np.full(9, 0.004)) for name in list(values)}
    return xr.Dataset(values, coords={"tau": tau})


def concentration():
    """Runs at three dimensions from two starts."""
    dims = ("d", "start", "seed")
    noise = rng().normal(0, 1, (3, 2, 6)) / np.sqrt([[[100]], [[300]], [[1000]]])
    levels = {"train_loss": 0.0036, "theta": 0.16, "m": 0.26}
    return xr.Dataset(
        {name: (dims, level * (1 + noise)) for name, level in levels.items()},
        coords={"d": [100, 300, 1000], "start": ["semantic", "positional"]},
    )


def ridge():
    """Two ridges, three alphas."""
    alphas, ridges = [0.5, 1.0, 2.0], [0.01, 0.1]
    values = 0.1 + rng().random((2, 3))
    return xr.Dataset(
        {"V": (("ridge", "alpha"), 1 / values), "test_error": (("ridge", "alpha"), values)},
        coords={"alpha": alphas, "ridge": ridges},
    )


def histogram():
    """Two counting transformers of each mechanism."""
    noise = rng()
    curves = SimpleNamespace(
        accuracy=np.where(np.arange(6) < 5, noise.uniform(0.9, 1.0, (4, 6)), np.nan),
        train_loss=noise.uniform(0.1, 1.0, (4, 6)),
    )
    far, near = np.asarray([70.0, 71, 67, 68]), np.asarray([0.5, 0.6, 0.3, 0.4])
    return SimpleNamespace(
        trained=curves,
        task=dp.histogram.Task(),
        settings=SimpleNamespace(target=0.99),
        mechanisms=("semantic", "positional"),
        rows=lambda name: np.asarray([0, 1] if name == "semantic" else [2, 3]),
        distances=SimpleNamespace(summed_from_start=far, summed_after_release=near),
    )


def emergence():
    """Scores of two runs at three numbers of sequences."""
    values = rng().uniform(size=(4, 3, 2))
    return dp.histogram.Emergence(
        dp.histogram.HistogramSettings(), 100, np.asarray([10, 100, 1000]), *values, seconds=1.0
    )


def landscape():
    """The loss on the line between two networks."""
    position = np.linspace(0, 1, 5)
    return dp.histogram.LossBetween(
        position, 1 + position, 1 - position / 2, 1.5 + position, 1 - position / 3, 9.0, 8.0
    )


def bayes():
    """The best test errors, with both recoveries."""
    return xr.Dataset(
        {
            "test_error": ("alpha", [0.002, 0.001, 0.0]),
            "weak_recovery_alpha": 1 / 6,
            "exact_recovery_alpha": 0.5,
        },
        coords={"alpha": [0.1, 0.4, 0.5]},
    )


def rules():
    """alpha_c of four rules."""
    return xr.Dataset({"nodes": ("rule", [57, 256, 625]), "alpha_c": ("rule", [1.24, 1.3, 1.27])})


def sobol():
    """alpha_c from three numbers of points."""
    return xr.Dataset(
        {
            "alpha_c": ("nodes", [1.23, 1.25, 1.251]),
            "alpha_c_stderr": ("nodes", [0.02, 0.004, 0.001]),
        },
        coords={"nodes": [2**10, 2**12, 2**14]},
    )


def attention():
    """Attention of teacher and student over two tokens."""
    weights = [[[0.7, 0.3], [0.4, 0.6]], [[0.9, 0.1], [0.2, 0.8]]]
    return xr.DataArray(
        weights, dims=("who", "token", "on"), coords={"who": ["teacher", "student"]}
    )


def heads():
    """Shares of three heads in two layers."""
    values = np.array([[0.9, 0.1, 0.4], [0.2, 0.5, np.nan]])
    shares = {"positional": values, "semantic": 0.8 * (1 - values)}
    return xr.Dataset({name: (("layer", "head"), each) for name, each in shares.items()})


def wide():
    """Eigenvalues of two students, a density, and the onset for two ridges."""
    x = np.linspace(0.1, 3, 30)
    solution = SimpleNamespace(spectrum=lambda: (x, 0.5 * np.exp(-x)))
    onset = (("ridge", "omega"), [[0.02, 0.04, 0.1], [0.07, 0.12, 0.3]])
    diagram = xr.Dataset({"alpha_c": onset}, {"ridge": [0.1, 0.2], "omega": [0, 0.3, 0.7]})
    return np.stack([np.append(np.zeros(30), x)] * 2), solution, diagram


def descent():
    """Gradient descent over twenty steps, trusted for the first twelve."""
    step = np.arange(21)
    sizes = {"train_loss": 0.004, "test_error": 0.003, "theta": 0.16, "m": 0.2, "q": 0.06}
    values = {name: ("step", size * (1 + step / 20)) for name, size in sizes.items()}
    values |= {f"{name}_stderr": ("step", np.full(21, size / 50)) for name, size in sizes.items()}
    return xr.Dataset(values | {"trusted": ("step", step < 12)}, {"step": step}, {"sigma": [0.5]})


def one_pass():
    """Two runs over fresh sentences, at six times."""
    alpha = np.linspace(0, 10, 6)
    sizes = {"test_error": 0.003, "theta": 0.16, "m": 0.2, "q": 0.06}
    values = {name: ("alpha", size * (1 + alpha / 10)) for name, size in sizes.items()}
    values |= {f"{name}_stderr": ("alpha", np.full(6, size / 50)) for name, size in sizes.items()}
    for name, size in sizes.items():
        rows = size * (1 + np.outer([0.09, 0.11], alpha))
        values[f"{name}_samples"] = (("repetition", "alpha"), rows)
    return xr.Dataset(values, {"alpha": alpha}, {"sigma": [0.5]})


def loss_surface():
    """Training loss over m and theta, with a minimum and a corner that is not trusted."""
    m, theta = np.linspace(0, 0.4, 5), np.linspace(0, 0.2, 3)
    trusted = np.ones((3, 5), bool)
    trusted[2, 3:] = False
    return SimpleNamespace(
        m=m, theta=theta, loss=0.002 + (m - 0.2) ** 2 + theta[:, None], trusted=trusted,
        minima=[(0.2, 0.0, 0.002)], alpha=2.0,
    )  # fmt: skip


def complexity():
    """Complexity along the Parisi parameter, with its maximum in the middle."""
    return SimpleNamespace(
        branch="positional",
        alpha=0.75,
        parisi=np.array([0.01, 0.1, 1.0, 10.0]),
        complexity=1e-4 * np.array([0.0, 1.0, 3.0, -1.0]),
        energy=0.003 + 1e-6 * np.array([4.0, 3.0, 2.0, 1.0]),
        free_energy=0.003 + 1e-6 * np.array([0.0, 0.5, 1.0, 0.8]),
        stderr={"complexity": np.full(4, 1e-5), "free_energy": np.full(4, 1e-7)},
    )


def model_errors():
    """Estimated and measured model errors of three points, the last away from the paper's model."""
    rows = ("result", "point")
    estimated = np.array([[1e-4, 2e-4, 4e-4]] * 4)
    point = {
        "branch": ["semantic", "positional", "semantic"], "sigma": [0.5, 0.5, 0.7],
        "ridge": [0.01] * 3, "length": [2] * 3,
    }  # fmt: skip
    values = {"estimated": estimated, "measured": -1.5 * estimated, "stderr": 0.1 * estimated}
    return xr.Dataset(
        {name: (rows, value) for name, value in values.items()}
        | {name: ("point", value) for name, value in point.items()},
        {"result": ["train_loss", "theta", "m", "test_error"]},
    )
