"""Named branches of fixed points, one file for each.

Each file defines a `Branch` called `BRANCH`: its initialization, the overlaps that vanish on it,
and the direction in which it is followed in alpha. The registry lists the names without importing
JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Registry

if TYPE_CHECKING:
    from dotphase.theory.branch import Branch

#: Aligned with the teacher, with the positions, with neither, with both.
BRANCHES: Registry[Branch] = Registry(
    "branch",
    __name__,
    "BRANCH",
    order=("semantic", "positional", "uninformed", "mixed", "first_layer", "last_layer"),
)
