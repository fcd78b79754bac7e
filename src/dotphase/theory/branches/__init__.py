"""The families of fixed points that the solver knows by name: one file for each.

A branch is a `Branch` called `BRANCH`: the overlaps it is started from, those that vanish on it,
and from which end of alpha it is followed. The names are known without importing JAX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Registry

if TYPE_CHECKING:
    from dotphase.theory.branch import Branch

#: Aligned with the teacher, with the positions, with neither, with both.
BRANCHES: Registry[Branch] = Registry(
    "branch", __name__, "BRANCH", order=("semantic", "positional", "uninformed", "mixed")
)
