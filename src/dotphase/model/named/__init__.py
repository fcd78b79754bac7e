"""Named models, for the command line, studies and the explorer.

Each file defines a `MODEL`: its factory and the table of its parameters. The registry and the
tables are read without importing JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dotphase.config.parameters import Parameter, fill_defaults
from dotphase.config.registry import Registry

if TYPE_CHECKING:
    from dotphase.model.definition import Model


@dataclass(frozen=True)
class NamedModel:
    """A family of models with a name."""

    #: function of the parameters that returns a `Model` and imports JAX itself
    factory: Callable[..., Model]
    #: table of the parameters by name
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    help: str = ""  #: description in one line
    #: checks of several parameters: their names, and a function of them that raises `InvalidInput`,
    #: so that a study is refused before its first point
    rules: tuple[tuple[tuple[str, ...], Callable[..., Any]], ...] = ()

    def build(self, **parameters: Any) -> Model:
        """Make the model of these parameters; the others have their defaults."""
        return self.factory(**fill_defaults(parameters, self.parameters, "the model"))


#: Default model of commands, studies and the explorer.
PAPER = "positional-semantic"

MODELS: Registry[NamedModel] = Registry(
    "model",
    "dotphase.model.named",
    "MODEL",
    order=(
        PAPER, "ridge-regression", "logistic", "hinge", "least-absolute", "phase-retrieval",
        "committee", "causal-attention", "multi-head", "attention-temperature",
        "attention-classes", "correlated-attention", "deep-attention", "single-location",
        "sparse-token",
    ),
)  # fmt: skip
