"""Check before a computation that its results can be written. Imports quickly."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dotphase.errors import InvalidInput

#: Suffixes of figures.
FIGURES = (".png", ".svg", ".pdf")


def as_path(field: str, path: Any) -> Path:
    """Convert `path` to a path; `InvalidInput` if that is impossible."""
    try:
        return Path(path)
    except TypeError:
        raise InvalidInput(field, path, "must be the path of a file or folder") from None


def check_writable(field: str, path: str | Path, endings: tuple[str, ...]) -> Path:
    """Return a path in which a file can be written; `InvalidInput` otherwise.

    A temporary file in the same folder is written and removed.
    """
    target = as_path(field, path)
    if target.suffix.lower() not in endings:
        raise InvalidInput(field, str(path), "must end in " + " or ".join(endings))
    with _explain_errors(field, path):
        if target.is_dir() or not target.parent.is_dir():
            raise InvalidInput(field, str(path), "must be a file in a folder that exists")
        _try_writing(target)
    return target


def check_folder(field: str, path: str | Path, *, parents: bool = False) -> Path:
    """Return a folder that exists or can be created, and is writable; `InvalidInput` otherwise.

    Its parent must exist, unless `parents` is True.
    """
    target = as_path(field, path)
    if not str(path).strip():
        raise InvalidInput(field, str(path), "must be the name of a folder")
    with _explain_errors(field, path):
        folders = [target, *target.absolute().parents]
        level = next(k for k, folder in enumerate(folders) if folder.exists())
        if not folders[level].is_dir():
            raise InvalidInput(field, str(path), "must be a folder, or a new name for one")
        if level > 1 and not parents:
            raise InvalidInput(field, str(path), "must be in a folder that exists")
        _try_writing(folders[level - 1] if level else target / "file")
    return target


@contextmanager
def _explain_errors(field: str, path: str | Path) -> Iterator[None]:
    """Turn errors of the file system into `InvalidInput`."""
    try:
        yield
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(field, str(path), f"cannot be written ({reason})") from None


def _try_writing(target: Path) -> None:
    """Raise the error of writing `target`, which is not changed."""
    target.exists()  # raises an error for a name that is too long
    temporary = temporary_path(target)
    temporary.open("xb").close()
    temporary.unlink()


def temporary_path(path: Path) -> Path:
    """Return a unique path in the same folder, with a name of allowed length."""
    stem = path.stem.encode()[:100].decode(errors="ignore")
    return path.with_name(f".{stem}-{uuid.uuid4().hex}{path.suffix}")
