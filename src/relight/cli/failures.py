"""How a failure ends: which ones are told in one sentence, and with which exit code."""

from __future__ import annotations

from relight.cli.screens import plain

FAILED = 1
NOT_FOUND = 4
UNREACHABLE = 5

_CODES = {"NotFound": NOT_FOUND, "BackendUnreachable": UNREACHABLE}
"""By name: importing the classes would load their libraries for ``relight --help`` too."""


def is_told(error: Exception) -> bool:
    """Return whether an error is one of relight's own, whose message says all a person needs."""
    return type(error).__module__.partition(".")[0] == "relight"


def code_of(error: Exception) -> int:
    """Return the exit code of an error."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((_CODES[name] for name in names if name in _CODES), FAILED)


def message_of(error: Exception) -> str:
    """Return the message of an error as it may be shown on a terminal."""
    return "\n".join(plain(line) for line in str(error).split("\n"))
