"""Where something can be written, found out before it is computed. Light."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from dotphase.errors import InvalidInput

#: Endings of figures.
FIGURES = (".png", ".svg", ".pdf")


def as_path(field: str, path: Any) -> Path:
    """`path` as a path, or `InvalidInput`."""
    try:
        return Path(path)
    except TypeError:
        raise InvalidInput(field, path, "must be the path of a file or folder") from None


def check_writable(field: str, path: str | Path, endings: tuple[str, ...]) -> Path:
    """A path that can be written later, checked before any work is done: by writing beside it."""
    target = as_path(field, path)
    if target.suffix.lower() not in endings:
        raise InvalidInput(field, str(path), "must end in " + " or ".join(endings))
    try:
        if target.is_dir() or not target.parent.is_dir():
            raise InvalidInput(field, str(path), "must be a file in a folder that exists")
        _try_writing(target)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(field, str(path), f"cannot be written ({_why(error)})") from None
    return target


def check_folder(field: str, path: str | Path, *, parents: bool = False) -> Path:
    """A folder that is there or can be made, and can be written to later.

    With `parents` the folders around it can be made as well.
    """
    target = as_path(field, path)
    if not str(path).strip():
        raise InvalidInput(field, str(path), "must be the name of a folder")
    try:
        around = [target, *target.absolute().parents]
        level = next(k for k, folder in enumerate(around) if folder.exists())
        if not around[level].is_dir():
            raise InvalidInput(field, str(path), "must be a folder, or a new name for one")
        if level > 1 and not parents:
            raise InvalidInput(field, str(path), "must be in a folder that exists")
        _try_writing(around[level - 1] if level else target / "file")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(field, str(path), f"cannot be written to ({_why(error)})") from None
    return target


def _try_writing(target: Path) -> None:
    """Raise what writing `target` would; leaves nothing behind and `target` as it is."""
    target.exists()  # refuses names that are too long
    tried = beside(target)
    tried.open("xb").close()
    tried.unlink()


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def beside(path: Path) -> Path:
    """A name in the same folder that nobody else uses, and that is short enough."""
    stem = path.stem.encode()[:100].decode(errors="ignore")
    return path.with_name(f".{stem}-{uuid.uuid4().hex}{path.suffix}")
