"""Keeps in the user's own cache folder what would take long to make again.

Compiled expressions are run, not read. So a file is taken only when it, and the folder that
holds it, belong to the user who runs relight and nobody else may write there, and when its
bytes have the checksum that it begins with, which tells what was cut or damaged. Everything
else is treated as not there.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path

LARGEST = 64 * 1024 * 1024
"""Bytes of one file; seven hundred expressions take 4 MB."""
MOST_FILES = 12
"""Files that are kept, the newest first: two a set of rules, version and kind of processor."""

_MAGIC = b"relight kept\x01"
_CHECKSUM = 12
_SUFFIX = ".kept"
_HALF = ".new"


class FileShelf:
    """Implements ``relight.perception.matching.Shelf`` in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> bytes | None:
        """Return what was put under ``key``, None when it is not there or not to be trusted."""
        if not _is_ours(self._folder):
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(self._path(key), flags), "rb") as opened:
                found = os.fstat(opened.fileno())
                if not stat.S_ISREG(found.st_mode) or not _is_private(found):
                    return None
                content = opened.read(LARGEST)
        except OSError:
            return None
        head, data = content[: len(_MAGIC) + _CHECKSUM], content[len(_MAGIC) + _CHECKSUM :]
        return data if head == _MAGIC + _checksum(data) else None

    def put(self, key: str, data: bytes) -> bool:
        """Keep ``data`` in place of what was there; False when the folder does not let us."""
        path = self._path(key)
        new = path.with_suffix(f".{os.getpid()}{_HALF}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        if not self.can_put():
            return False
        try:
            with os.fdopen(os.open(new, flags, 0o600), "wb") as opened:
                opened.write(_MAGIC + _checksum(data) + data)
            new.replace(path)
            self._tidy()
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
            return False
        return True

    def can_put(self) -> bool:
        """Return whether the folder lets us; makes it where it is not there."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return False
        return _is_ours(self._folder) and os.access(self._folder, os.W_OK | os.X_OK)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"

    def _tidy(self) -> None:
        # What a start that was interrupted left half written goes the same way.
        ours = [*self._folder.glob(f"*{_SUFFIX}"), *self._folder.glob(f"*{_HALF}")]
        kept = sorted(ours, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in kept[MOST_FILES:]:
            path.unlink(missing_ok=True)


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the user's cache folder of relight, None when the environment names none.

    Source: XDG Base Directory Specification: XDG_CACHE_HOME, absolute, else ~/.cache.
    """
    for base, below in ((environ.get("XDG_CACHE_HOME"), ""), (environ.get("HOME"), ".cache")):
        if base and base.startswith("/"):
            return Path(base, below, "relight")
    return None


def shelf_of_user(environ: Mapping[str, str]) -> FileShelf | None:
    """Return the shelf of the user who runs this, None where there is no place for one."""
    folder = cache_folder(environ)
    return None if folder is None else FileShelf(folder)


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_private(found)


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big") + len(data).to_bytes(8, "big")
