"""Spectra of tokens that are not white: eigenvalues of their covariances, with weights.

The covariances of a sentence's tokens are taken to commute. In their common eigenbasis a
fraction ``w_i`` of the d directions has the eigenvalue ``sigma_l^2 s_{l,i}`` for token l. The
eigenvalues are scaled to a mean of one, ``sum_i w_i s_{l,i} = 1``, so that
``rho_l = tr(Sigma_l)/d = sigma_l^2`` whatever the shape of the spectrum.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.errors import InvalidInput

#: Coordinate k has the eigenvalue at the quantile ``k GOLDEN mod 1``, so that each interval of
#: coordinates contains all eigenvalues in proportion.
GOLDEN = (np.sqrt(5) - 1) / 2


class Spectrum(eqx.Module):
    """Joint spectrum of commuting covariances.

    Parameters
    ----------
    values : (atoms,) or (tokens, atoms) array
        Eigenvalues >= 0, one row for all tokens or one for each; scaled to a mean of one.
    weights : (atoms,) array, optional
        Fraction of the directions that have each eigenvalue; equal if not given.

    Examples
    --------
    >>> half = dp.Spectrum([0.5, 1.5])
    >>> model = dp.positional_semantic(spectrum=half)
    """

    values: Float[np.ndarray, "rows atoms"]
    weights: Float[np.ndarray, " atoms"]

    def __init__(self, values: Any, weights: Any = None) -> None:
        allowed = "must be finite numbers >= 0, one row for all tokens or one row for each"
        numbers = validation.finite_array(values)
        rows: np.ndarray = np.zeros(0) if numbers is None else np.atleast_2d(numbers)
        if rows.ndim != 2 or rows.size == 0 or np.any(rows < 0):
            raise InvalidInput("spectrum.values", values, allowed)
        atoms = rows.shape[1]
        fractions = np.ones(atoms) if weights is None else weights
        fractions = validation.array("spectrum.weights", fractions, (atoms,))
        if not np.all(fractions > 0):
            raise InvalidInput("spectrum.weights", weights, "must be numbers > 0")
        self.weights = fractions / fractions.sum()
        mean = rows @ self.weights
        if not np.all(mean > 0):
            raise InvalidInput("spectrum.values", values, "must not all be zero")
        self.values = rows / mean[:, None]

    @property
    def shared(self) -> bool:
        """True if all tokens have the same spectrum, up to their scale."""
        return self.values.shape[0] == 1

    def along(self, d: int) -> Float[Array, "rows d"]:
        """Eigenvalues of d coordinates, each as often as its weight requires.

        They are scattered over the coordinates, so that a vector with smooth entries has the same
        share of its length in each eigenspace. They are scaled again to a mean of one, because
        multiplicities are rounded.
        """
        rank = np.argsort(np.argsort(np.arange(d) * GOLDEN % 1.0))
        edges = jnp.cumsum(jnp.asarray(self.weights))[:-1]
        chosen = jnp.searchsorted(edges, jnp.asarray((rank + 0.5) / d, edges.dtype))
        values = jnp.asarray(self.values)[:, chosen]
        return values / jnp.mean(values, axis=1, keepdims=True)


def power_law(exponent: float, atoms: int = 32) -> Spectrum:
    """Eigenvalues proportional to ``i^(-exponent)``, i = 1, ..., atoms, of equal weight.

    Parameters
    ----------
    exponent : float
        Zero gives white tokens.
    atoms : int
        Number of different eigenvalues. Each has d/atoms directions: with an exponent of one
        or more the first few carry most of the variance, and their number matters.

    Examples
    --------
    >>> steep = dp.spectrum.power_law(0.5, atoms=8)
    >>> model = dp.positional_semantic(spectrum=steep)
    """
    exponent = validation.number("exponent", exponent, at_least=0)
    atoms = validation.integer("atoms", atoms, at_least=1)
    return Spectrum(np.arange(1.0, atoms + 1) ** -exponent)


def spiked(size: float, share: float) -> Spectrum:
    """Two eigenvalues: a share of the directions has `size` times the variance of the rest.

    Parameters
    ----------
    size : float
        Ratio of the two eigenvalues, > 0.
    share : float in (0, 1)
        Fraction of the directions in the spike, constant when d grows. A finite number of
        spikes has no effect in this limit.

    Examples
    --------
    >>> dp.spectrum.spiked(4.0, 0.1).values.shape
    (1, 2)
    """
    size = validation.number("size", size, above=0)
    share = validation.number("share", share, above=0, at_most=1)
    if share == 1:
        return Spectrum([1.0])
    return Spectrum([size, 1.0], [share, 1 - share])


def from_data(tokens: Any, atoms: int = 32) -> Spectrum:
    """Spectrum of the empirical covariance of tokens.

    Parameters
    ----------
    tokens : (n, d) array
        The tokens, whose mean is subtracted.
    atoms : int
        Number of groups of neighboring eigenvalues, as equal in size as possible, that are
        averaged; with d or more groups each eigenvalue is its own group.

    Examples
    --------
    >>> import numpy as np
    >>> tokens = np.random.default_rng(0).normal(size=(200, 20))
    >>> measured = dp.spectrum.from_data(tokens, atoms=4)
    >>> measured.values.shape
    (1, 4)
    """
    atoms = validation.integer("atoms", atoms, at_least=1)
    table = np.asarray(tokens, dtype=np.float64)
    if table.ndim != 2 or len(table) < 2 or not np.all(np.isfinite(table)):
        raise InvalidInput("tokens", tokens, "must be finite numbers of shape (n >= 2, d)")
    centered = table - table.mean(axis=0)
    values = np.maximum(np.linalg.eigvalsh(centered.T @ centered / len(table))[::-1], 0.0)
    groups = np.array_split(values, min(atoms, values.size))
    return Spectrum([group.mean() for group in groups], [group.size for group in groups])


def __dir__() -> list[str]:
    """List the public names, for completion."""
    return ["Spectrum", "from_data", "power_law", "spiked"]
