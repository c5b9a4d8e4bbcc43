r"""What the service writes to its standard error: a line an event, for people and for journald.

Sentences hold names and lines of users: a file name with a newline could forge a line, one
with an escape could act on the terminal. All are shown as what they are (``\n``, ``\x1b``);
lines of a traceback are indented, so that none of them begins as an event does.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

_TRACEBACK = "exception"


def set_up_logging() -> None:
    """Send every event to standard error; colours only on a terminal."""
    lines = _Lines(sys.stderr)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            make_printable,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )


def make_printable(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Show everything in an event that cannot be printed as an escape; keep tracebacks' lines."""
    return {
        _printable(key): _indented(str(value)) if key == _TRACEBACK else _shown(value)
        for key, value in event.items()
    }


class _Lines:
    """Writes lines to a stream that may fail: a full disk or a reader that left ends no work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        # One write a line, so that lines of several threads do not mix.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")
            self._stream.flush()

    debug = info = warning = warn = error = critical = exception = msg


def _shown(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return _printable(value if isinstance(value, str) else repr(value))


def _indented(text: str) -> str:
    return "\n".join(f"    {_printable(line)}" for line in text.split("\n"))


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
