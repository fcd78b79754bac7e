"""A model by its name, or from a file of the user's: ``FILE.py:NAME``.

Loading a file runs it. `NAME` is a function with named parameters that returns a `Model`, whose
parameters are read from its signature, or a `Model` itself. A file is run once for each text it has
had, so that its functions are compiled once.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dotphase.config.parameters import (
    REQUIRED,
    Flag,
    Integer,
    Number,
    Parameter,
    ParameterType,
    Text,
)
from dotphase.errors import InvalidInput
from dotphase.model.named import MODELS, NamedModel

if TYPE_CHECKING:
    from dotphase.model.definition import Model

#: Kinds of parameters by their annotation, or by the type of their default.
KINDS: dict[type, ParameterType] = {
    float: Number(),
    int: Integer(at_least=-(2**53), at_most=2**53),
    bool: Flag(),
    str: Text(),
}
ALLOWED = "must be a registered model ({}) or FILE.py:NAME"


def load_model(reference: str, **parameters: Any) -> Model:
    """A model by its name, or from a file, which is run.

    Parameters
    ----------
    reference : str
        Name of a model that comes with the package, or ``FILE.py:NAME``: a function of named
        parameters that returns a `Model`, or a `Model`.
    **parameters
        What is not given has its default.

    Examples
    --------
    >>> import dotphase as dp
    >>> dp.load_model("positional-semantic", omega=0.1).length
    2
    """
    return find_model(reference).build(**parameters)


@dataclass(frozen=True)
class Reference:
    """Where a model is: its name, or a file, a name in it and what the file said.

    Attributes
    ----------
    name : name of the model, in the list or in the file
    file : absolute path, or None for a registered model
    digest : hash of the file's text
    """

    name: str
    file: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, text: Any, beside: Path | None = None) -> Reference:
        """A reference from text; files are looked for in the folder `beside`. Runs nothing."""
        if isinstance(text, str) and text in MODELS:
            return cls(text)
        file, colon, name = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        if not colon or not file.endswith(".py"):
            near = get_close_matches(text, MODELS, n=1) if isinstance(text, str) else ()
            meant = "".join(f"; did you mean {name}?" for name in near)
            raise InvalidInput("model", text, ALLOWED.format(", ".join(MODELS)) + meant)
        path = (beside or Path()) / file
        return cls(name, str(path.absolute()), _digest(_read(path, text)))

    def __str__(self) -> str:
        return self.name if self.file is None else f"{Path(self.file).name}:{self.name}"

    def find(self) -> NamedModel:
        """The family; runs the file if there is one, and refuses one that has changed."""
        if self.file is None:
            return MODELS[MODELS.check(self.name)]
        source = _read(Path(self.file), str(self))
        if _digest(source) != self.digest:
            raise InvalidInput("model", str(self), "has changed since it was read")
        return _family(self, source)


def find_model(reference: str) -> NamedModel:
    """The family of models that a name or ``FILE.py:NAME`` stands for; runs the file."""
    return Reference.parse(reference).find()


def _read(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
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
        known = ", ".join(_models(module)) or "no model"
        raise InvalidInput("model", shown, f"no such name, the file has {known}")
    return _as_family(vars(module)[reference.name], shown)


@lru_cache(maxsize=16)
def _execute(file: str, source: str) -> ModuleType:
    """Run the text of a file as a module of its own."""
    module = ModuleType(f"dotphase_user_{_digest(file + source)}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # classes of the file look for their module there
    folder = str(Path(file).parent)
    sys.path.insert(0, folder)  # as for a program: what lies beside the file can be imported
    try:
        exec(compile(source, file, "exec"), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    finally:
        sys.path.remove(folder)
    return module


def _models(module: ModuleType) -> list[str]:
    """Names of a file that may be models: what it defines itself and does not hide."""
    from dotphase.model.definition import Model

    def may_be(value: Any) -> bool:
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        return own or isinstance(value, Model)

    shown = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [name for name, value in shown.items() if may_be(value)]


def _as_family(value: Any, shown: str) -> NamedModel:
    from dotphase.model.definition import Model

    if isinstance(value, Model):
        return NamedModel(lambda: value)
    if not callable(value) or isinstance(value, type):
        rule = f"must be a function that returns a Model, or a Model, not {type(value).__name__}"
        raise InvalidInput("model", shown, rule)
    first = (inspect.getdoc(value) or "").partition("\n")[0]
    return NamedModel(_guarded(value, shown), _table(value, shown), first)


def _guarded(function: Callable[..., Any], shown: str) -> Callable[..., Model]:
    """The function; what it raises and what it returns instead of a model are told in one line."""
    from dotphase.model.definition import Model

    def build(**parameters: Any) -> Model:
        try:
            model = function(**parameters)
        except InvalidInput:
            raise
        except Exception as error:
            raise _raised(shown, error) from error
        if not isinstance(model, Model):
            rule = f"must return a Model, but it returned {type(model).__name__}"
            raise InvalidInput("model", shown, rule)
        return model

    return build


def _table(function: Callable[..., Any], shown: str) -> dict[str, Parameter]:
    """Parameters of a function from its signature; those with a default of another kind keep it."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError):
        signature = inspect.signature(function)
    parameters = {}
    for name, one in signature.parameters.items():
        if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise InvalidInput("model", shown, f"must have named parameters only, not {one}")
        given = one.default is not one.empty
        annotated = KINDS.get(one.annotation) if isinstance(one.annotation, type) else None
        kind = annotated or (KINDS.get(type(one.default)) if given else None)
        if kind is None and not given:
            rule = f"parameter {name} must be annotated with float, int, bool or str"
            raise InvalidInput("model", shown, rule)
        if kind is not None:
            default = one.default if given else REQUIRED
            if isinstance(kind, Number) and type(default) is int:
                default = float(default)
            parameters[name] = Parameter(name, kind, default)
    return parameters


def _raised(shown: str, error: BaseException) -> InvalidInput:
    parts = [type(error).__name__, " ".join(str(error).split())]
    return InvalidInput("model", shown, "raised " + ": ".join(filter(None, parts)))
