"""The token: who can read its file may ask, nobody else.

Loopback alone keeps no local user out. The file does, by its owner, group and mode: 0640 in
the state folder, so that a group of administrators can be let in by the file system.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

FILE = "token"
MODE = 0o640

_SHAPE = re.compile(r"[\w-]{22,200}", re.ASCII)
"""At least 128 bits in the letters of base64url."""
_MOST_BYTES = 1_024
_OTHERS = 0o007
_BYTES = 32


class TokenUnusable(Exception):  # noqa: N818 - named by what it says
    """The token's file cannot be trusted or written: correct it, or delete it for a new one."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a request has to carry, and the file that holds it."""

    value: str = field(repr=False)
    path: str

    def is_in(self, header: str) -> bool:
        """Return whether an Authorization header carries this token; takes the same time always."""
        scheme, _, given = header.partition(" ")
        is_same = hmac.compare_digest(given.strip().encode(), self.value.encode())
        return is_same and scheme.lower() == "bearer"


def keep_token(folder: Path) -> Token:
    """Return the token of a state folder; make one at the first start.

    Raises:
        TokenUnusable: others may read or may have written the file, it holds no token, or it
            cannot be read or written.

    """
    path = folder / FILE
    try:
        value = _read(path)
    except FileNotFoundError:
        value = _made(path)
    except OSError as error:
        raise TokenUnusable(
            f"the token in {path} cannot be read ({error.strerror}): check its owner and rights"
        ) from error
    return Token(value=value, path=str(path.absolute()))


def _read(path: Path) -> str:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
            raise _unusable(path, "is not a regular file of the user who runs relight")
        if found.st_mode & _OTHERS:
            raise _unusable(path, "is open to every user of this machine")
        text = opened.read(_MOST_BYTES).decode("ascii", "replace").strip()
    if not _SHAPE.fullmatch(text):
        raise _unusable(path, "holds no token")
    return text


def _unusable(path: Path, what: str) -> TokenUnusable:
    return TokenUnusable(f"the token file {path} {what}: delete it, and the next start makes a new")


def _made(path: Path) -> str:
    """Write a new token beside its place and move it there: a crash leaves none, never half."""
    value = secrets.token_urlsafe(_BYTES)
    unfinished = path.with_name(f"{FILE}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, flags, MODE), "w") as opened:
            os.fchmod(opened.fileno(), MODE)
            opened.write(f"{value}\n")
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise TokenUnusable(
            f"the token cannot be written to {path} ({error.strerror}): make room there, or set "
            "store.path to another folder"
        ) from error
    return value
