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
from collections.abc import Mapping, Sequence

import msgspec

MOST_BYTES = 64 * 1024
"""A longer envelope is left as it is."""
MOST_LINES = 200
"""Lines kept of one message, the first and the last: a traceback has fewer."""

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
_MOST_PARTS = 8
_PLACES = ("kubernetes", "resource", "labels", "jsonPayload")
"""Parts of an envelope in which the host and the pod may stand."""
_LINE_FEED = 10
_BEFORE = (b"Z ", b"F ", b"| ", b": ")
"""How what stands before an envelope ends."""
SIGNS = (_OPENING, _QUOTED)
"""What every envelope holds one of."""
_KEY = re.compile("|".join(f'"{name}" ?:' for name in _MESSAGES).encode())
_EPOCH = re.compile(r"1\d{9}(?:\.\d{1,9})?")
_LOGFMT = re.compile(
    r"(?P<before>.{0,200}?)(?:(?:time|ts)=\"?(?P<time>20[\dT:.Z+-]{8,40})\"?[ ])?"
    r"(?:level|lvl|severity)=\"?\w{1,10}\"? (?:[\w.]{1,40}=\S{1,100} ){0,4}"
    r"msg=\"(?P<message>(?:[^\"\\]|\\.)*)\"(?P<rest>.*)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))")
_MEANT = {"n": "\n", "t": "\t", "r": "\r"}
_ENDS = re.compile(r"\r*\n|\r+")


def may_open(text: bytes, at: int) -> bool:
    """Return whether an envelope may open where one of ``SIGNS`` stands in ``text``."""
    if text.startswith(_QUOTED, at):
        return True
    return at == 0 or text[at - 1] == _LINE_FEED or text[max(at - 2, 0) : at] in _BEFORE


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
    envelope = _decoded(line[at:])
    message = None if envelope is None else _message(envelope)
    if envelope is None or message is None or (at and not line[:at].endswith(_BEFORE)):
        return [line]
    exception = next((envelope[key] for key in _EXCEPTIONS if envelope.get(key)), None)
    if isinstance(exception, str):
        message = f"{message}\n{exception}"
    return _lines(line[:at].decode(errors="replace") + _head(envelope), message)


def _decoded(text: bytes) -> dict[str, object] | None:
    """Return the record that JSON tells, None when it is none; Python's own writes ``NaN`` too."""
    for read in (msgspec.json.decode, json.loads):
        try:
            found = read(text)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def _message(envelope: Mapping[str, object]) -> str | None:
    for key in _MESSAGES:
        value = envelope.get(key)
        if isinstance(value, str) and value:
            return value
        if key == "jsonPayload" and isinstance(value, dict):
            return next((one for name in _INSIDE if isinstance(one := value.get(name), str)), None)
    return None


def _of_logfmt(line: bytes) -> list[bytes]:
    match = _LOGFMT.fullmatch(line.decode(errors="replace"))
    if match is None:
        return [line]
    message = _ESCAPED.sub(_meant, match["message"])
    head = match["before"] + (f"{match['time']} " if match["time"] else "")
    return _lines(head, message + match["rest"].rstrip())


def _meant(escaped: re.Match[str]) -> str:
    code = escaped[1] or escaped[2]
    return chr(int(code, 16)) if code else _MEANT.get(escaped[3], escaped[3])


def _lines(head: str, message: str) -> list[bytes]:
    """Return the lines of a message; what a bar wrote over itself is a line too."""
    lines = _ENDS.split(message.strip("\r\n"))
    if len(lines) > MOST_LINES:
        lines = lines[: MOST_LINES // 2] + lines[-MOST_LINES // 2 :]
    return [(head + one).encode(errors="surrogatepass") for one in lines]


def _head(envelope: Mapping[str, object]) -> str:
    parts = []
    time = next((envelope[key] for key in _TIMES if key in envelope), None)
    if isinstance(time, str) and time[:2] == "20":
        parts.append(time[:40])
    elif time is not None and _EPOCH.fullmatch(str(time)):
        parts.append(f"[{float(str(time)):.6f}]")
    sources = _sources(envelope)
    host = _name(sources, _HOSTS)
    if host:
        parts.append(f"{host[:100]}:")
    elif pod := _name(sources, _PODS):
        parts.append(f"[pod/{pod[:200]}/container]")
    rank = next((one[key] for one in sources for key in _RANKS if key in one), None)
    if str(rank).isdecimal() and not isinstance(rank, bool):
        parts.append(f"[rank{rank}]:")
    return " ".join([*parts, ""])


def _sources(envelope: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the envelope and those of its parts that may tell who wrote."""
    found = [envelope]
    for one in found:
        if len(found) < _MOST_PARTS:
            found += [part for key in _PLACES if isinstance(part := one.get(key), dict)]
    return found


def _name(sources: Sequence[Mapping[str, object]], names: Sequence[str]) -> str:
    for one in sources:
        for name in names:
            value = one.get(name)
            if value and isinstance(value, str):
                return value
    return ""
