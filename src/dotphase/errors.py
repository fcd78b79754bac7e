"""Errors a user can act on."""

from __future__ import annotations


class InvalidInput(ValueError):
    """A value outside what is allowed; the message names the field, the value and the rule.

    Parameters
    ----------
    field : str
        Name of the argument or option as the user wrote it.
    value : object
        What was given.
    allowed : str
        What is allowed, in words.

    Examples
    --------
    >>> try:
    ...     dp.positional_semantic(omega=2.0)
    ... except dp.InvalidInput as error:
    ...     print(error.field, error.value)
    ...
    omega 2.0
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        try:
            shown = " ".join(repr(value).split())
        except Exception:  # a number with thousands of digits, or an object with faults
            shown = f"(a {type(value).__name__} that cannot be shown)"
        if len(shown) > 120:
            shown = shown[:117] + "..."
        super().__init__(f"{field} = {shown}: {allowed}")

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, object, str]]:
        return type(self), (self.field, self.value, self.allowed)


class Interrupted(KeyboardInterrupt):
    """An interrupt from the keyboard that came when part of the work was done.

    Parameters
    ----------
    finished : object
        The result of what was finished, of the type that would have been returned.

    Examples
    --------
    >>> try:
    ...     raise dp.Interrupted(3)
    ... except KeyboardInterrupt as stopped:
    ...     print(stopped.finished)
    ...
    3
    """

    def __init__(self, finished: object) -> None:
        self.finished = finished
        super().__init__("interrupted; finished runs are in .finished")
