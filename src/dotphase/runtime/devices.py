"""What JAX computes on."""

from __future__ import annotations

import os

import jax

from dotphase.errors import InvalidInput


def devices() -> list[jax.Device]:
    """The devices of JAX; `InvalidInput` where it was told to use what is not there."""
    try:
        return jax.devices()
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:200] or "there is none of these"
        rule = f"must name a device of this machine, as cpu ({reason})"
        raise InvalidInput("JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS"), rule) from None
