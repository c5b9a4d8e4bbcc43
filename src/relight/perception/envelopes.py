"""Lines that a container runtime or a structured logger wrapped up, unwrapped.

Docker's json-file driver and log shippers write ``{"log": "...", "time": "..."}``, structured
loggers ``{"message": "...", "level": "..."}``, Google's exporter ``{"textPayload": "..."}`` or
a ``jsonPayload`` with the message in it, others ``time=... level=error msg="..."``. Such a line
is read as its message, behind the time, the host and the rank that the envelope tells, as if
these had been printed as prefixes. What stands before an envelope, as a container runtime's
own time, stays. A message of several lines becomes several. What is no such envelope stays as
it is: a record of metrics is content, not an envelope.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

MOST_BYTES = 64 * 1024
"""A longer envelope is left as it is."""
MOST_LINES = 200
"""Lines kept of one message: a traceback has fewer."""

_OPENING = b'{"'
_QUOTED = b' msg="'
_MOST_BEFORE = 200
"""Bytes before an envelope: prefixes are shorter."""
_MESSAGES = ("log", "message", "msg", "MESSAGE", "textPayload", "jsonPayload")
_INSIDE = ("log", "message", "msg", "MESSAGE")
_TIMES = ("time", "timestamp", "@timestamp", "asctime", "ts")
_EXCEPTIONS = ("exc_info", "exception", "stack_trace")
_HOSTS = ("hostname", "host", "node", "node_name", "_HOSTNAME")
_PODS = ("pod", "pod_name")
_RANKS = ("rank", "global_rank")
_PLACES = ("kubernetes", "resource", "labels", "jsonPayload")
"""Parts of an envelope in which the host and the pod may stand."""
_BEHIND = tuple(end + _OPENING for end in (b"\n", b"Z ", b" F ", b"| ", b": "))
"""How a line that is an envelope, or the prefix before it, ends before the envelope opens."""
_KEY = re.compile("|".join(f'"{name}" ?:' for name in _MESSAGES).encode())
_EPOCH = re.compile(r"1\d{9}(?:\.\d{1,9})?")
_LOGFMT = re.compile(
    r"(?P<before>.{0,200}?)(?:(?:time|ts)=\"?(?P<time>20[\dT:.Z+-]{8,40})\"?[ ])?"
    r"(?:level|lvl|severity)=\"?\w{1,10}\"? (?:[\w.]{1,40}=\S{1,100} ){0,4}"
    r"msg=\"(?P<message>(?:[^\"\\]|\\.)*)\"(?P<rest>.*)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)")
_MEANT = {"n": "\n", "t": "\t", "r": " "}


def may_hold_envelopes(text: bytes) -> bool:
    """Return whether a line of ``text`` may be an envelope: quick, and never wrongly no."""
    if text.startswith(_OPENING) or _QUOTED in text:
        return True
    return _OPENING in text and any(one in text for one in _BEHIND)


def unwrapped(line: bytes) -> list[bytes]:
    """Return the lines that ``line`` carries, at least one; the line itself if it is none."""
    if len(line) > MOST_BYTES:
        return [line]
    at = line.find(_OPENING, 0, _MOST_BEFORE)
    if at >= 0 and line.rstrip().endswith(b"}") and _KEY.search(line, at):
        return _of_json(line, at)
    if _QUOTED in line:
        return _of_logfmt(line)
    return [line]


def _of_json(line: bytes, at: int) -> list[bytes]:
    try:
        envelope = json.loads(line[at:])
    except (ValueError, RecursionError):
        return [line]
    message = _message(envelope) if isinstance(envelope, dict) else None
    if message is None or (at and not _is_prefix(line[:at])):
        return [line]
    exception = next((envelope[key] for key in _EXCEPTIONS if envelope.get(key)), None)
    if isinstance(exception, str):
        message = f"{message}\n{exception}"
    return _lines(line[:at].decode(errors="replace") + _head(envelope), message)


def _is_prefix(before: bytes) -> bool:
    """Return whether what stands before a brace ends as prefixes do, and not as a sentence."""
    return before.endswith(tuple(one[: -len(_OPENING)] for one in _BEHIND[1:]))


def _message(envelope: Mapping[str, object]) -> str | None:
    for key in _MESSAGES:
        value = envelope.get(key)
        if isinstance(value, str) and value:
            return value
        if key == "jsonPayload" and isinstance(value, dict):
            return next((one for name in _INSIDE if isinstance(one := value.get(name), str)), None)
    return None


def _of_logfmt(line: bytes) -> list[bytes]:
    match = _LOGFMT.fullmatch(line.decode(errors="surrogateescape"))
    if match is None:
        return [line]
    message = _ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), match["message"])
    head = match["before"] + (f"{match['time']} " if match["time"] else "")
    lines = (message + match["rest"].rstrip()).rstrip("\n").split("\n")[:MOST_LINES]
    return [(head + one).encode(errors="surrogateescape").replace(b"\r", b" ") for one in lines]


def _lines(head: str, message: str) -> list[bytes]:
    lines = message.rstrip("\n").split("\n")[:MOST_LINES]
    return [(head + one).encode(errors="replace").replace(b"\r", b" ") for one in lines]


def _head(envelope: Mapping[str, object]) -> str:
    parts = []
    for key in _TIMES:
        value = envelope.get(key)
        if isinstance(value, str) and value[:2] == "20":
            parts.append(value[:40])
            break
        if isinstance(value, int | float | str) and _EPOCH.fullmatch(str(value)):
            parts.append(f"[{float(value):.6f}]")
            break
    host = _told(envelope, _HOSTS)
    if host is not None:
        parts.append(f"{host[:100]}:")
    pod = _told(envelope, _PODS)
    if pod is not None and host is None:
        parts.append(f"[pod/{pod[:200]}/container]")
    rank = _told(envelope, _RANKS)
    if rank is not None and rank.isdecimal():
        parts.append(f"[rank{rank}]:")
    return " ".join([*parts, ""])


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _told(envelope: Mapping[str, object], names: tuple[str, ...], depth: int = 2) -> str | None:
    """Return what an envelope, or one of its parts, tells under the first of ``names``."""
    for name in names:
        value = envelope.get(name)
        if _is_name(value) or (names is _RANKS and isinstance(value, int)):
            return str(value)
    parts = [part for key in _PLACES if isinstance(part := envelope.get(key), dict)]
    found = (_told(part, names, depth - 1) for part in parts if depth)
    return next((one for one in found if one is not None), None)
