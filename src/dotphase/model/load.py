"""Load a model by its name, or from a user's file: ``FILE.py:NAME``.

Loading a file runs it. `NAME` is a `Model`, or a function with named parameters that returns one;
the parameters are read from its signature. A file runs again only if its text changes, so that its
functions are compiled once.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dotphase import model as models
from dotphase.config.parameters import (
    REQUIRED,
    Flag,
    Integer,
    Number,
    Parameter,
    ParameterType,
    Text,
)
from dotphase.errors import InvalidInput, describe_error
from dotphase.model.named import MODELS, NamedModel

#: Kinds of parameters by their annotation, or by the type of their default.
KINDS: dict[type, ParameterType] = {
    float: Number(),
    int: Integer(at_least=-(2**53), at_most=2**53),
    bool: Flag(),
    str: Text(),
}
ALLOWED = "must be a registered model ({}) or FILE.py:NAME"


def load_model(reference: str, **parameters: Any) -> models.Model:
    """Load a model by its name, or run a file that defines it.

    Parameters
    ----------
    reference : str
        Name of a model of the package, or ``FILE.py:NAME``: a `Model`, or a function of named
        parameters that returns one.
    **parameters
        Parameters of the model; the others have their defaults.

    Examples
    --------
    >>> import dotphase as dp
    >>> dp.load_model("positional-semantic", omega=0.1).length
    2
    """
    return find_model(reference).build(**parameters)


@dataclass(frozen=True)
class Reference:
    """Reference to a model: its name, and the file that defines it."""

    name: str  #: name of the model, in the registry or in the file
    file: str | None = None  #: absolute path, or None for a registered model
    digest: str | None = None  #: hash of the file's text

    @classmethod
    def parse(cls, text: Any, beside: Path | None = None) -> Reference:
        """Parse a reference without running it; paths are relative to the folder `beside`."""
        if isinstance(text, str) and text in MODELS:
            return cls(text)
        file, colon, name = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        if not colon or not file.endswith(".py"):
            near = get_close_matches(text, MODELS, n=1) if isinstance(text, str) else ()
            hint = "".join(f"; did you mean {name}?" for name in near)
            raise InvalidInput("model", text, ALLOWED.format(", ".join(MODELS)) + hint)
        path = (beside or Path()) / file
        return cls(name, str(path.absolute()), _digest(_read(path, text)))

    def __str__(self) -> str:
        return self.name if self.file is None else f"{Path(self.file).name}:{self.name}"

    def find(self) -> NamedModel:
        """Return the family of models; run its file, and refuse a file that has changed."""
        if self.file is None:
            return MODELS[MODELS.check(self.name)]
        source = _read(Path(self.file), str(self))
        if _digest(source) != self.digest:
            raise InvalidInput("model", str(self), "has changed since it was read")
        return _family(self, source)


def find_model(reference: str) -> NamedModel:
    """Return the family of models of a name or of ``FILE.py:NAME``; run the file."""
    return Reference.parse(reference).find()


def _read(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput("model", shown, "no such file") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput("model", shown, f"must be a file to read ({reason})") from None
    except UnicodeDecodeError:
        raise InvalidInput("model", shown, "must be a Python file in UTF-8") from None


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:16]


@lru_cache(maxsize=16)
def _family(reference: Reference, source: str) -> NamedModel:
    assert reference.file is not None
    shown = str(reference)
    try:
        module = _execute(reference.file, source)
    except (Exception, SystemExit) as error:
        raise _raised(shown, error) from error
    if reference.name not in vars(module):
        names = ", ".join(_models(module)) or "no model"
        raise InvalidInput("model", shown, f"no such name, the file has {names}")
    return _as_family(vars(module)[reference.name], shown)


@lru_cache(maxsize=16)
def _execute(file: str, source: str) -> ModuleType:
    """Run the text of a file as a module of its own."""
    module = ModuleType(f"dotphase_user_{_digest(file + source)}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # needed by the classes of the file
    folder = str(Path(file).parent)
    sys.path.insert(0, folder)  # as for a script, which can import its neighbors
    try:
        with _keep_recursion_limit():
            exec(compile(source, file, "exec"), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    finally:
        sys.path.remove(folder)
    return module


@contextmanager
def _keep_recursion_limit() -> Iterator[None]:
    """Undo a lower recursion limit that a user's code sets: JAX calls deeply."""
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))


def _models(module: ModuleType) -> list[str]:
    """Public names of a file that may be models: its own functions, and models."""

    def may_be(value: Any) -> bool:
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        return own or isinstance(value, models.Model)

    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [name for name, value in public.items() if may_be(value)]


def _as_family(value: Any, shown: str) -> NamedModel:

    if isinstance(value, models.Model):
        return NamedModel(lambda: value)
    if not callable(value) or isinstance(value, type):
        rule = f"must be a function that returns a Model, or a Model, not {type(value).__name__}"
        raise InvalidInput("model", shown, rule)
    first = (inspect.getdoc(value) or "").partition("\n")[0]
    return NamedModel(_guarded(value, shown), _table(value, shown), first)


def _guarded(function: Callable[..., Any], shown: str) -> Callable[..., models.Model]:
    """Wrap a function so that its errors, and results that are no models, are `InvalidInput`."""

    def build(**parameters: Any) -> models.Model:
        try:
            with _keep_recursion_limit():
                model = function(**parameters)
        except InvalidInput:
            raise
        except (Exception, SystemExit) as error:
            raise _raised(shown, error) from error
        if not isinstance(model, models.Model):
            rule = f"must return a Model, but it returned {type(model).__name__}"
            raise InvalidInput("model", shown, rule)
        return model

    return build


def _table(function: Callable[..., Any], shown: str) -> dict[str, Parameter]:
    """Parameters of a function from its signature.

    Those with a default of an unsupported type cannot be changed.
    """
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError):
        signature = inspect.signature(function)
    parameters = {}
    for name, item in signature.parameters.items():
        if item.kind in (item.POSITIONAL_ONLY, item.VAR_POSITIONAL, item.VAR_KEYWORD):
            raise InvalidInput("model", shown, f"must have named parameters only, not {item}")
        has_default = item.default is not item.empty
        annotated = KINDS.get(item.annotation) if isinstance(item.annotation, type) else None
        kind = annotated or (KINDS.get(type(item.default)) if has_default else None)
        if kind is None and not has_default:
            rule = f"parameter {name} must be annotated with float, int, bool or str"
            raise InvalidInput("model", shown, rule)
        if kind is not None:
            default = item.default if has_default else REQUIRED
            if isinstance(kind, Number) and type(default) is int:
                default = float(default)
            parameters[name] = Parameter(name, kind, default)
    return parameters


def _raised(shown: str, error: BaseException) -> InvalidInput:
    return InvalidInput("model", shown, f"raised {describe_error(error)}")
