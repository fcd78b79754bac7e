"""Options by name: the modules of a package, and options that a program registers.

A package that offers a choice (optimizers, initializers, branches, models, commands, tasks) has one
module for each option, which defines the option under an attribute name that all modules share. The
list of options is the list of files. Nothing is imported to list names, so the command line can
print the options quickly, and a new option is one new file.
"""

import os
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Generic, TypeVar

from dotphase.config import validation
from dotphase.errors import InvalidInput

T = TypeVar("T")


@lru_cache(maxsize=64)
def _module_names(*folders: tuple[str, int]) -> tuple[str, ...]:
    """List the modules in folders; cached by modification time."""
    modules = pkgutil.iter_modules([path for path, _ in folders])
    return tuple(module.name for module in modules if not module.name.startswith("_"))


def _modification_time(path: str) -> int:
    return os.stat(path).st_mtime_ns if os.path.isdir(path) else 0


class Registry(Mapping[str, T], Generic[T]):
    """Options by name, each imported at its first use.

    Parameters
    ----------
    label : name of the choice in error messages, such as "optimizer"
    package : its modules are the options, with an underscore for a hyphen
    attribute : name under which each module defines its option
    order : names in the order of listing; the others follow alphabetically
    """

    def __init__(self, label: str, package: str, attribute: str, order: Iterable[str] = ()) -> None:
        self.label, self.package, self.attribute = label, package, attribute
        self._order = tuple(order)
        self._registered: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """List all options without importing them."""
        names = set(self._registered)
        paths = import_module(self.package).__path__
        for name in _module_names(*((path, _modification_time(path)) for path in paths)):
            hyphenated = name.replace("_", "-")
            names.add(hyphenated if hyphenated in self._order else name)
        ordered = [name for name in self._order if name in names]
        return (*ordered, *sorted(names - set(ordered)))

    def register(self, name: str, option: T) -> None:
        """Add an option in this process under an unused name."""
        if name in self.names():
            rule = f"is already registered; known are {', '.join(self)}"
            raise InvalidInput(self.label, name, rule)
        self._registered[name] = option

    def unregister(self, name: str) -> None:
        """Remove a registered option."""
        del self._registered[name]

    def check(self, value: object, field: str | None = None) -> str:
        """Return `value` if it is the name of an option, or raise `InvalidInput`."""
        return validation.choice(field or self.label, value, self.names())

    def __getitem__(self, name: str) -> T:
        if name in self._registered:
            return self._registered[name]
        if name not in self.names():
            raise KeyError(name)
        module = f"{self.package}.{name.replace('-', '_')}"
        try:
            option: T = getattr(import_module(module), self.attribute)
        except (AttributeError, ImportError, SyntaxError, TypeError) as error:
            reason = " ".join(str(error).split())
            rule = f"has a file {module} that does not define {self.attribute} ({reason})"
            raise InvalidInput(self.label, name, rule) from error
        return option

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())
