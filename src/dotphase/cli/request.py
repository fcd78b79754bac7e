"""The options that most commands share, as one object, and the output of their results."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from dotphase.cli.options import ModelSpec, json_option, model_options, out_option, plot_option
from dotphase.cli.output import Files, print_json

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Request:
    """Options that most commands share."""

    #: chosen model and root seed
    model: ModelSpec
    seed: int
    files: Files  #: dataset and figure to write
    as_json: bool  #: True to print JSON

    def print(
        self,
        result: Any,
        figure: str,
        values: Callable[[], dict[str, Any]],
        text: Callable[[], None],
    ) -> None:
        """Print values as JSON, or the text, and write the dataset and the figure of a result."""
        with self.files.written_after(result, figure):
            if self.as_json:
                print_json(values() | self.files.to_dict())
            else:
                text()
        if not self.as_json:
            self.files.echo_paths()


def request_options(function: F) -> F:
    """Add the options of `Request`, passed to the command as `request`."""

    @out_option
    @plot_option
    @model_options
    @json_option
    @wraps(function)
    def wrapped(
        model: ModelSpec, seed: int, out: str | None, plot: str | None, as_json: bool, **values: Any
    ) -> Any:
        return function(request=Request(model, seed, Files(out, plot), as_json), **values)

    return wrapped  # type: ignore[return-value]
