"""Models that have a name: on the command line, in studies, on the explorer's page.

One file for each, with a `MODEL`: how it is made, and the table of its parameters. Reading the
list and the tables imports nothing heavy.
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
    """A family of models that can be asked for by name.

    Attributes
    ----------
    factory : function of the parameters that returns a `Model`; imports what it needs itself
    parameters : by name
    help : what it is, in one line
    rules : light checks of parameters that belong together: their names, and a function of them
        that raises `InvalidInput`; so that a study is refused before its first point
    """

    factory: Callable[..., Model]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    help: str = ""
    rules: tuple[tuple[tuple[str, ...], Callable[..., Any]], ...] = ()

    def build(self, **given: Any) -> Model:
        """The model of these parameters; the others have their defaults."""
        return self.factory(**fill_defaults(given, self.parameters, "the model"))


#: The model that commands, studies and the page take if no other is named.
PAPER = "positional-semantic"

MODELS: Registry[NamedModel] = Registry(
    "model",
    "dotphase.model.named",
    "MODEL",
    order=(
        PAPER,
        "ridge-regression",
        "logistic",
        "hinge",
        "least-absolute",
        "phase-retrieval",
        "committee",
        "causal-attention",
        "multi-head",
        "attention-temperature",
        "attention-classes",
        "correlated-attention",
        "single-location",
        "sparse-token",
    ),
)
