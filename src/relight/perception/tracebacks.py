"""Python tracebacks, followed line by line until the line that names the exception.

Several ranks may write theirs into one file at once, so each writer's lines are followed
apart. A traceback that never ends is given up after a bounded number of lines.
"""

from __future__ import annotations

import re

import msgspec

from relight.model.records import Record
from relight.perception.fingerprints import Frame

HEADLINE = r"Traceback \(most recent call last\)"
"""The expression that opens a traceback."""

KEPT_HEAD = 5
KEPT_TAIL = 15
MOST_STRANGE = 50
"""Lines of the same writer that fit no traceback, after which it is given up."""
MOST_LINES = 5_000
"""Lines of the whole file, after which it is given up."""

_FRAME = re.compile(
    r"\u2502 (?P<boxed>\S{1,200}):\d{1,9} in (?P<caller>[\w.<>]{1,100})|"
    r'\s*(?:\|\s*)?File "(?P<file>[^"]{1,400})", line \d{1,9}, in (?P<function>.{1,100})'
)
_LAST = re.compile(r"(?P<name>(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Za-z_]\w{0,80})(?P<colon>:(?= |$))?")
_KNOWN_ENDING = re.compile(r"(?:Error|Exception|Interrupt|Exit|Iteration|Expired|Warning|Group)$")
_BOX = frozenset("|\u2502\u256d\u2570\u276e")
_IGNORED = re.compile(
    r"Exception ignored in|--- Logging error ---|WON'T CONVERT|[Ff]alling back to|[Ww]ill retry"
)
"""What Python or a library says above the traceback of an exception that it has caught."""
_REASON = re.compile(r"\bdue to:? ?(?:[\"\\]|$)")
"""Stands between what torch's compiler says of an exception and its traceback."""
_RAISE = re.compile(r"\s*raise [A-Za-z_][\w.]{0,160}(?:\(|$)")


class Traceback(Record, frozen=True, kw_only=True):
    """A traceback that has begun: its first and last lines and the frames that matter."""

    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    users_frame: Frame | None = None
    frame: Frame | None = None
    strange: int = 0
    began: int = 0
    """The number of the line that opened it."""
    is_noise: bool = False
    """Python itself, or a library, says that it has caught this exception."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines kept, first ones and last ones."""
        return self.head + self.tail

    @property
    def blamed(self) -> Frame | None:
        """Return the innermost frame of the user's own code, else the innermost one."""
        return self.users_frame or self.frame


def opened(line: str, before: tuple[str, ...], number: int) -> Traceback:
    """Return the traceback that ``line`` begins; ``before`` are the lines above it."""
    above = list(before)
    if above and _REASON.search(above[-1]):
        above.pop()
    is_noise = bool(above) and _IGNORED.search(above[-1]) is not None
    return Traceback(head=(line,), began=number, is_noise=is_noise)


def followed(traceback: Traceback, body: str, shown: str) -> Traceback | None:
    """Return the traceback with one more line of its writer, None when it is given up."""
    frame = traceback.frame
    users_frame = traceback.users_frame
    strange = traceback.strange
    if match := _FRAME.match(body):
        frame = Frame(
            file=match["file"] or match["boxed"],
            function=(match["function"] or match["caller"]).strip(),
        )
        users_frame = frame if frame.is_users else users_frame
    elif body.strip() and not is_inside(body):
        strange += 1
    if strange > MOST_STRANGE:
        return None
    head, tail = traceback.head, traceback.tail
    if body.strip() and len(head) < KEPT_HEAD:
        head = (*head, shown)
    elif body.strip():
        tail = (*tail, shown)[-KEPT_TAIL:]
    return msgspec.structs.replace(
        traceback, head=head, tail=tail, frame=frame, users_frame=users_frame, strange=strange
    )


def is_code(body: str) -> bool:
    """Return whether a line shows code rather than what it said: a frame, or who raises."""
    return _FRAME.match(body) is not None or _RAISE.match(body) is not None


def is_inside(body: str) -> bool:
    """Return whether a line is indented, or stands in the box that the rich library draws."""
    return body[:1].isspace() or body[:1] in _BOX


def exception_named(body: str) -> str | None:
    """Return the exception's name when ``body`` is the last line of a traceback.

    Lines of other loggers in between (``INFO: …``, ``done``) name none: a name without dots
    is taken only when it is written as class names are.
    """
    match = _LAST.match(body)
    if match is None or not (match["colon"] or match.end() == len(body.rstrip())):
        return None
    name = match["name"]
    last = name.rpartition(".")[2]
    if _KNOWN_ENDING.search(last):
        return name
    looks_like_a_class = last[0].isupper() and not last.isupper()
    is_dotted = "." in name
    return name if match["colon"] and (looks_like_a_class or is_dotted) else None
