"""Where a command finds the token that the backend wants to see."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from relight.settings.loading import load
from relight.settings.problems import SettingsError

TOKEN = "RELIGHT_TOKEN"  # noqa: S105 - the name of a variable
FILE = "RELIGHT_TOKEN_FILE"

_SHAPE = re.compile(r"[!-~]{1,200}")
_MOST_BYTES = 1_024
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


class NoToken(Exception):  # noqa: N818 - named by what it says
    """What was named as a token is none: correct the variable or the file."""


def token_for(url: str, environ: Mapping[str, str]) -> str:
    """Return the token for the backend at ``url``, empty when none is found.

    RELIGHT_TOKEN, else the file that RELIGHT_TOKEN_FILE names, else the file of the state
    folder of the settings in their usual places: that one belongs to the ``relight serve`` of
    this machine and is sent nowhere else.

    Raises:
        NoToken: a variable is set, and what it says is no token.

    """
    if given := environ.get(TOKEN):
        return _checked(given, TOKEN)
    if named := environ.get(FILE):
        try:
            return _checked(_text(Path(named)), named)
        except OSError as error:
            raise NoToken(
                f"{named}, which {FILE} names, cannot be read ({error.strerror or error}): it is "
                "the file token in the state folder of relight serve; ask who runs it"
            ) from error
    return _of_settings(environ) if _is_here(url) else ""


def _of_settings(environ: Mapping[str, str]) -> str:
    """Return what the state folder holds; by default that of one's own, then root's service's."""
    for is_root in (None, True):
        try:
            folder = load(None, environ, is_root=is_root).store.path
            text = _text(Path(folder) / "token").strip()
        except (SettingsError, OSError):
            continue  # the backend says where its token is, and what to do
        if _SHAPE.fullmatch(text):
            return text
    return ""


def _text(file: Path) -> str:
    """Read a small regular file, and nothing that could block.

    Raises:
        OSError: it cannot be opened, or is no regular file.

    """
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(None, "it is not a regular file")
        return opened.read(_MOST_BYTES).decode("ascii", "replace")


def _checked(text: str, source: str) -> str:
    if not _SHAPE.fullmatch(text.strip()):
        raise NoToken(f"{source} holds no token: it is one word of at most 200 letters")
    return text.strip()


def _is_here(url: str) -> bool:
    try:
        return urlsplit(url).hostname in _HERE
    except ValueError:
        return False
