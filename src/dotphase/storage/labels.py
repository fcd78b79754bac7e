"""Long names and units of variables in datasets, which plots show on their axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

#: Long names of variables. Everything but the times in `SECONDS` is a pure number.
LONG_NAMES = {
    "alpha": "sample complexity α = n/d",
    "omega": "mixing ω of the teacher",
    "sigma": "standard deviation σ of tokens",
    "ridge": "ridge λ",
    "d": "dimension d",
    "seed": "index of the run",
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
    "semantic_alignment": "cosine of student and teacher weights",
    "positional_alignment": "share of the positions in the student weights",
    "two_minima": "share of sentences with two proximal minima",
    "overlap_with_trained": "cosine with the trained weights",
    "trained_loss": "training loss of the trained weights per dimension",
    "iteration": "iteration",
    "iterations": "number of iterations",
    "seconds": "time",
    "mechanism": "mechanism of the student",
    "converged": "1 if the run met its tolerance",
    "outcome": "outcome of the run",
    "reason": "reason why the run stopped",
    "eigenvalues": "smallest eigenvalues of the Hessian",
    "largest": "largest eigenvalue of the Hessian",
    "products": "number of products with the Hessian",
    "direction": "eigenvector of the smallest eigenvalue",
}


#: Times, in seconds.
SECONDS = ("seconds",)
#: Additions to the long name, by suffix of a name.
SUFFIXES = {
    "_stderr": "standard error of the {}",
    "_measured": "{}, measured",
    "_predicted": "{}, predicted",
    "_at_d": "{}",
    "_limit": "{}",
}


def add_labels(dataset: xr.Dataset) -> xr.Dataset:
    """Add `long_name` and `units` to every variable and coordinate with a known name."""
    for name in map(str, dataset.variables):
        base, pattern = name.removeprefix("path_"), "{}"
        for suffix, addition in SUFFIXES.items():
            if base.endswith(suffix):
                base, pattern = base.removesuffix(suffix), addition.format(pattern)
        if base in LONG_NAMES:
            units = "s" if base in SECONDS else "1"
            dataset[name].attrs.update(long_name=pattern.format(LONG_NAMES[base]), units=units)
    return dataset


def add_default_labels(dataset: xr.Dataset) -> xr.Dataset:
    """Add labels to all variables: a description or the name where none is known."""
    for label, variable in add_labels(dataset).variables.items():
        name = variable.attrs.get("description", str(label).replace("_", " "))
        variable.attrs.setdefault("long_name", name)
        variable.attrs.setdefault("units", "1")
    return dataset
