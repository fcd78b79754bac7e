"""Folder of compiled functions whose entries are checked when they are read."""

import hashlib
import os
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from dotphase.runtime.progress import LOGGER

#: End of the names of all entries, and of those with a checksum.
ENTRY, CHECKED = "-cache", "-checked-cache"
#: Largest size of a folder; the entries that were not used for the longest time are deleted.
MAX_BYTES = 2**30
#: Bytes written between two measurements of the folder.
MEASURE_BYTES = 2**26
DIGEST_SIZE = 16


class CheckedCache:
    """Entries of JAX's compilation cache, each followed by a checksum of its key and its data.

    A truncated entry, and one under the name of another, is deleted and compiled again. JAX itself
    never replaces an entry. Errors of the disk count as missing entries.
    """

    def __init__(self, folder: str | Path, max_bytes: int = MAX_BYTES) -> None:
        self._path, self._max_bytes = Path(folder), max_bytes
        self._unmeasured = MEASURE_BYTES

    def get(self, key: str) -> bytes | None:
        """Return the data of an entry; None if there is none or it is damaged."""
        file = self._path / f"{key}{CHECKED}"
        try:
            content = file.read_bytes()
        except OSError:
            return None
        data, checksum = content[:-DIGEST_SIZE], content[-DIGEST_SIZE:]
        if checksum == _checksum(key, data):
            with suppress(OSError):
                os.utime(file)
            return data
        with suppress(OSError):
            file.unlink()
        _warn_once(self._path)
        return None

    def put(self, key: str, value: bytes) -> None:
        """Write an entry, atomically; delete old ones if the folder is too large."""
        temporary = self._path / f".{uuid.uuid4().hex}{ENTRY}"
        try:
            temporary.write_bytes(value + _checksum(key, value))
            temporary.replace(self._path / f"{key}{CHECKED}")
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        self._unmeasured += len(value)
        if self._unmeasured > MEASURE_BYTES:
            self._unmeasured = 0
            self._delete_oldest()

    def _delete_oldest(self) -> None:
        entries = []
        for file in self._path.glob(f"*{ENTRY}"):
            with suppress(OSError):
                entries.append((file.stat().st_mtime, file.stat().st_size, file))
        excess = sum(size for _, size, _ in entries) - self._max_bytes
        for _, size, file in sorted(entries):
            if excess <= 0:
                break
            with suppress(OSError):
                file.unlink()
                excess -= size


@cache
def _warn_once(folder: Path) -> None:
    # No Python warning: where warnings are errors, it would end the computation.
    LOGGER.warning("damaged compiled functions in %s are deleted and compiled again", folder)


def _checksum(key: str, data: bytes) -> bytes:
    return hashlib.blake2b(data, key=key.encode()[-64:], digest_size=DIGEST_SIZE).digest()
