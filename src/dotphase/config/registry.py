"""One list for each choice: the files of a package, and what a program registers besides.

A package that offers a choice (optimizers, starts, branches, models, items of the report,
commands) has one file for each option, which defines it under a name that all of them share.
The list of options is the list of files: it is known without importing any of them, so that the
command line can name the options before anything heavy is loaded, and a new option is one new file.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Generic, TypeVar

from dotphase.config import validation
from dotphase.errors import InvalidInput

T = TypeVar("T")


def _folder(path: str) -> tuple[str, int]:
    """A folder and when its list of files last changed."""
    return path, os.stat(path).st_mtime_ns if os.path.isdir(path) else 0


@lru_cache(maxsize=64)
def _files(*folders: tuple[str, int]) -> tuple[str, ...]:
    """Names of the modules in folders; to list them at every use would take longer than a step of
    a solver."""
    found = pkgutil.iter_modules([path for path, _ in folders])
    return tuple(info.name for info in found if not info.name.startswith("_"))


class Registry(Mapping[str, T], Generic[T]):
    """Options by name, each imported when it is first asked for.

    Parameters
    ----------
    what : str
        What is chosen, as errors call it.
    package : str
        Name of the package whose files are the options; names with a hyphen have files with
        an underscore.
    attribute : str
        What each file defines.
    first : iterable of str
        Names in the order in which they are listed; others follow in alphabetical order.
    """

    def __init__(self, what: str, package: str, attribute: str, first: Iterable[str] = ()) -> None:
        self.what, self.package, self.attribute = what, package, attribute
        self._first = tuple(first)
        self._registered: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """Names of all options; nothing is imported."""
        found = set(self._registered)
        for name in _files(*map(_folder, import_module(self.package).__path__)):
            hyphened = name.replace("_", "-")
            found.add(hyphened if hyphened in self._first else name)
        known = [name for name in self._first if name in found]
        return (*known, *sorted(found - set(known)))

    def register(self, name: str, option: T) -> None:
        """Offer another option in this process, under a name that is not taken."""
        if name in self.names():
            validation.refuse(self.what, name, f"is taken; known are {', '.join(self)}")
        self._registered[name] = option

    def forget(self, name: str) -> None:
        """Withdraw an option that was registered."""
        del self._registered[name]

    def check(self, value: object, field: str | None = None) -> str:
        """`value` if it is the name of an option, or `InvalidInput`."""
        return validation.choice(field or self.what, value, self.names())

    def __getitem__(self, name: str) -> T:
        if name in self._registered:
            return self._registered[name]
        if name not in self.names():
            raise KeyError(name)
        home = f"{self.package}.{name.replace('-', '_')}"
        try:
            option: T = getattr(import_module(home), self.attribute)
        except (AttributeError, ImportError, SyntaxError, TypeError) as error:
            reason = " ".join(str(error).split())
            rule = f"has a file {home} that does not define {self.attribute} ({reason})"
            raise InvalidInput(self.what, name, rule) from error
        return option

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())
