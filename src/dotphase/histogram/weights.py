"""Files with networks, and two trained networks that come with the package.

A file is an .npz with one float32 array per parameter. `dotphase histogram --weights DIR` writes
such files. The two in the folder `trained` come from
``dotphase histogram --mechanism both --runs 1 --epochs 200 --weights DIR``.
"""

from dataclasses import fields
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.histogram.network import MECHANISMS, Network
from dotphase.storage.files import read_arrays, write_arrays
from dotphase.storage.paths import as_path

#: Names of the parameters.
NAMES = tuple(field.name for field in fields(Network))


def save_network(network: Network, path: str | Path) -> Path:
    """Write the parameters of a network as an .npz file.

    Examples
    --------
    >>> network = dp.histogram.shipped("semantic")
    >>> path = dp.histogram.save_network(network, "network.npz")
    >>> dp.histogram.load_network(path).length
    10
    """
    target = Path(path)
    write_arrays(target, {name: np.asarray(getattr(network, name), np.float32) for name in NAMES})
    return target


def load_network(path: str | Path) -> Network:
    """Read a network from an .npz file with its parameters.

    Examples
    --------
    >>> network = dp.histogram.shipped("semantic")
    >>> path = dp.histogram.save_network(network, "network.npz")
    >>> dp.histogram.load_network(path).length
    10
    """
    arrays = read_arrays(as_path("weights", path), "weights")
    if not set(NAMES) <= arrays.keys():
        raise InvalidInput("weights", str(path), "must contain the arrays " + ", ".join(NAMES))
    try:
        network = Network(**{name: np.asarray(arrays[name], np.float32) for name in NAMES})
    except (TypeError, ValueError):
        network = None
    if network is None or not _is_consistent(network):
        raise InvalidInput("weights", str(path), "must contain finite arrays of matching shapes")
    return network


def _is_consistent(network: Network) -> bool:
    """Return True if the shapes match and all numbers are finite."""
    square = network.tokens.shape[-1:] * 2
    hidden, classes = network.hidden_bias.shape, network.output_bias.shape
    expected = {
        "tokens": network.tokens.shape[:1] + square[:1],
        "positions": network.positions.shape[:1] + square[:1],
        **dict.fromkeys(("query", "key", "value"), square),
        **dict.fromkeys(("norm_scale", "norm_shift"), square[:1]),
        "hidden_weight": square[:1] + hidden,
        "output_weight": hidden + classes,
    }
    return (
        len(hidden) == len(classes) == 1
        and len(square) == 2
        and all(getattr(network, name).shape == shape for name, shape in expected.items())
        and all(np.isfinite(getattr(network, name)).all() for name in NAMES)
    )


def shipped(mechanism: str) -> Network:
    """Return a trained network that comes with the package: ``semantic`` or ``positional``.

    Examples
    --------
    >>> dp.histogram.shipped("semantic").query.shape
    (64, 64)
    """
    name = validation.choice("mechanism", mechanism, MECHANISMS)
    with as_file(files("dotphase.histogram") / "trained" / f"{name}.npz") as path:
        return load_network(path)
