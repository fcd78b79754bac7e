"""The Bayes-optimal learner along alpha, as a labeled dataset."""

from collections.abc import Sequence

import xarray as xr

from dotphase.config import validation
from dotphase.model import Model
from dotphase.model.linear_layer import linear_test_error
from dotphase.storage.provenance import provenance
from dotphase.theory.bayes import bayes_optimal, check_teacher, transitions

_DESCRIPTIONS = {
    "overlap": "M = q/sigma^2 of the Bayes-optimal estimate",
    "test_error": "test error of the posterior mean",
    "weak_recovery": "true if the estimate correlates with the teacher's weights",
    "exact_recovery": "true if the estimate is exact",
    "unique": "true if there is no other stable fixed point",
    "converged": "true if the fixed-point equation was solved",
}


def bayes_curve(model: Model, alphas: Sequence[float], *, seed: int = 0) -> xr.Dataset:
    """Compute the Bayes-optimal learner along alpha.

    Parameters
    ----------
    model, seed
        As for `dotphase.bayes.optimal`.
    alphas : sequence of float
        Sample complexities, in any order, no two the same.

    Returns
    -------
    xarray.Dataset
        Dimension ``alpha``; ``test_error`` with its ``test_error_stderr``, and the transitions
        ``weak_recovery_alpha`` and ``exact_recovery_alpha``.

    Examples
    --------
    >>> best = dp.bayes.curve(dp.positional_semantic(), [0.2, 0.3])
    >>> best["test_error"].dims
    ('alpha',)
    """
    grid = validation.grid("alphas", alphas, increasing=False)
    check_teacher(model)
    rows = [bayes_optimal(model, alpha, seed=seed) for alpha in grid.tolist()]
    dataset = xr.Dataset(
        coords={"alpha": grid}, attrs=provenance(model, alphas=grid.tolist(), seed=seed)
    )
    dataset["alpha"].attrs["description"] = "sample complexity n/d"
    for name, description in _DESCRIPTIONS.items():
        values = [getattr(row, name) for row in rows]
        dataset[name] = ("alpha", values, {"description": description})
    errors = [row.stderr for row in rows]
    dataset["test_error_stderr"] = ("alpha", errors, {"description": "quadrature standard error"})
    dataset["linear_test_error"] = linear_test_error(model, seed=seed)
    weak, exact = transitions(model.length)
    dataset["weak_recovery_alpha"], dataset["exact_recovery_alpha"] = weak, exact
    return dataset
