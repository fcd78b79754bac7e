"""Labels of datasets: what plots write at their axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

#: What names stand for on an axis. Everything is a pure number.
LONG_NAMES = {
    "alpha": "sample complexity α = n/d",
    "omega": "mixing ω of the teacher",
    "sigma": "standard deviation σ of tokens",
    "ridge": "ridge λ",
    "d": "dimension d",
    "seed": "number of the run",
    "step": "step",
    "train_loss": "training loss per dimension",
    "test_error": "test error",
    "test_error_sampled": "test error on new sentences",
    "test_gain": "test error of the linear layer minus that of the lowest minimum",
    "linear_test_error": "test error of the linear layer",
    "loss_difference": "semantic minus positional training loss",
    "theta": "overlap θ with the teacher",
    "m": "overlap m with the positions",
    "q": "overlap q of the student with itself",
    "V": "response V",
    "gradient_norm": "norm of the gradient",
    "replicon": "replicon",
    "jump_weight": "weight of the jumps",
    "alpha_c": "critical sample complexity α_c",
    "alpha_l": "sample complexity α_l at which attention beats the linear layer",
    "score": "difference over what is allowed",
    "stayed": "share of runs that stay",
}


def add_labels(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset with `long_name` and `units` on every variable and coordinate that is known."""
    for name in map(str, dataset.variables):
        base = name.removeprefix("path_")
        what = LONG_NAMES.get(
            base.removesuffix("_stderr").removesuffix("_at_d").removesuffix("_limit")
        )
        if what is not None:
            error = "standard error of the " if base.endswith("_stderr") else ""
            dataset[name].attrs.update(long_name=error + what, units="1")
    return dataset
