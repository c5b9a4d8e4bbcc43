"""Loads rules, and keeps what was loaded: reading them from TOML takes longer than their use.

What is kept is named by every byte of the rules and of the code that loads them. So a changed
file, another directory or another version never meets what is stale.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from relight.perception.matching import Shelf
from relight.rules.schema import Rule

_MOST_BYTES = 64 * 1024 * 1024
"""More than that is not worth a name: it is loaded, and the loader says what is wrong."""
_CODE = (".py", ".toml")
_DIGEST = 16


def rules_of(directories: Sequence[Path], shelf: Shelf | None) -> tuple[Rule, ...]:
    """Return the packaged rules and those of ``directories``, as ``relight.rules.loading`` does.

    Raises:
        RuleError: a file cannot be read or a rule is wrong; every problem at once.

    """
    key = _key(directories) if shelf is not None else ""
    kept = shelf.get(key) if shelf is not None and key else None
    if kept is not None:
        try:
            return msgspec.msgpack.decode(kept, type=tuple[Rule, ...])
        except msgspec.MsgspecError:
            pass  # as if it were not there: it is made anew below, and replaced
    from relight.rules.loading import load  # noqa: PLC0415 - what is kept does not need it

    rules = load(directories)
    if shelf is not None and key:
        shelf.put(key, msgspec.msgpack.encode(rules))
    return rules


def _key(directories: Sequence[Path]) -> str:
    """Return what names all that the rules are made from, empty when that cannot be read."""
    made = hashlib.blake2b(digest_size=_DIGEST)
    left = _MOST_BYTES
    try:
        for name, content in _contents(directories):
            left -= len(content)
            if left < 0:
                return ""
            made.update(f"{name}\x00{len(content)}\x00".encode(errors="backslashreplace"))
            made.update(content)
    except OSError:
        return ""
    return made.hexdigest()


def _contents(directories: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    package = resources.files("relight.rules")
    for folder in (package, package / "signatures"):
        for entry in sorted(folder.iterdir(), key=_name):
            if entry.name.endswith(_CODE) and entry.is_file():
                yield entry.name, entry.read_bytes()
    for path in directories:
        for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
            yield str(file), _bytes(file)


def _bytes(file: Path) -> bytes:
    """Read a regular file, and nothing that could block; raises OSError for anything else."""
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError("it is not a regular file")
        return opened.read(_MOST_BYTES)


def _name(entry: Traversable) -> str:
    return entry.name
