"""Devices that JAX computes on."""

import os

import jax

from dotphase.errors import InvalidInput


def devices() -> list[jax.Device]:
    """Return the devices of JAX; `InvalidInput` if JAX_PLATFORMS names one that is missing."""
    try:
        return jax.devices()
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:200] or "no such device was found"
        rule = f"must name a device of this machine, such as cpu ({reason})"
        raise InvalidInput("JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS"), rule) from None
