"""Exceptions of the public functions."""

from __future__ import annotations

#: Longest text of a value in an error message.
MAX_VALUE_LENGTH = 120


class InvalidInput(ValueError):
    """A value that is not allowed; the message has the field, the value and the rule.

    Parameters
    ----------
    field : str
        Name of the argument or option.
    value : object
        The rejected value.
    allowed : str
        Rule that a value must satisfy.

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
            text = " ".join(repr(value).split())
        except Exception:  # an integer of thousands of digits, or an object with a broken repr
            text = f"({type(value).__name__} without a printable value)"
        if len(text) > MAX_VALUE_LENGTH:
            text = text[: MAX_VALUE_LENGTH - 3] + "..."
        super().__init__(f"{field} = {text}: {allowed}")

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, object, str]]:
        return type(self), (self.field, self.value, self.allowed)


class Interrupted(KeyboardInterrupt):
    """A keyboard interrupt that carries the finished part of a result.

    Parameters
    ----------
    finished : object
        Result of the finished work, of the type that the function returns.

    Examples
    --------
    >>> try:
    ...     raise dp.Interrupted(3)
    ... except KeyboardInterrupt as interrupt:
    ...     print(interrupt.finished)
    ...
    3
    """

    def __init__(self, finished: object) -> None:
        self.finished = finished
        super().__init__("interrupted; finished runs are in .finished")


def describe_error(error: BaseException) -> str:
    """Describe an exception in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, InvalidInput):
        return text
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__
