"""The models that studies and grids of training runs can name: the paper's and its relatives."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from dotphase.errors import InvalidInput
from dotphase.model import Model
from dotphase.model.paper import positional_semantic, positional_semantic_length
from dotphase.model.spectrum import Spectrum
from dotphase.model.untied import untied as untie


def named_model(
    omega: float = 0.3,
    sigma: float = 0.5,
    ridge: float = 0.01,
    mixing: Any = "standard",
    student_rank: int = 1,
    length: int = 2,
    kinds: int = 2,
    untied: bool = False,
    spectrum: Spectrum | None = None,
) -> Model:
    """The model of these parameters.

    Parameters
    ----------
    omega, sigma, ridge, mixing, student_rank
        As in `positional_semantic`.
    length, kinds
        As in `positional_semantic_length`, which has a matrix A of its own: more than two tokens
        go with the standard `mixing` only.
    untied : bool
        Whether the student has separate queries and keys, of `student_rank` columns each.
    spectrum : Spectrum, optional
        Shape of the tokens' covariances; white if not given.
    """
    if length == 2 and kinds == 2:
        model = positional_semantic(omega, sigma, ridge, mixing, 1 if untied else student_rank)
    elif mixing != "standard":
        raise InvalidInput("mixing", mixing, "must be standard for more than two tokens")
    else:
        model = positional_semantic_length(
            length, omega, sigma, ridge, kinds, 1 if untied else student_rank
        )
    if spectrum is not None:
        model = eqx.tree_at(
            lambda some: some.spectrum, model, spectrum, is_leaf=lambda leaf: leaf is None
        )
    return untie(model, student_rank) if untied else model
