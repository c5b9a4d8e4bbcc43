"""What stands before a kernel's message in a gathered log: the time, the host and the program.

Read are what rsyslog, journald and dmesg write::

    2026-03-30T08:24:00.123456+02:00 gpu-7 kernel: NVRM: ...      rsyslog, journalctl -o short-iso
    <3>1 2026-03-30T06:24:00Z gpu-7 kernel - - - NVRM: ...        as sent (RFC 5424)
    Mar 30 08:24:00 gpu-7 kernel: [1234.567890] NVRM: ...         the classic form (RFC 3164)
    [Sun Mar 30 08:24:00 2026] NVRM: ...                          dmesg -T
    2026-03-30T08:24:00,123456+02:00 NVRM: ...                    dmesg --time-format iso
    [1234.567890] NVRM: ...                                       dmesg: no time of day

The last form counts from a start of the machine that the line does not tell, so it has no time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from relight.model.instants import Instant, from_unix, in_seconds, later, seconds

HEAD = 200
"""Characters of a line in which its head ends."""
KERNEL = "kernel"

_PARTS = ("day", "hour", "minute", "second")
_LARGEST_OFFSET = timedelta(hours=24)
_AHEAD = seconds(86_400)
"""How far a clock may go ahead before a date without a year is taken for last year's."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = "|".join(_MONTHS)
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_WHO = r"(?P<host>[A-Za-z0-9][\w.:-]{0,254}) (?P<tag>[\w./()@-]{1,80})(?:\[\d{1,10}\])?:(?: |$)"
_SENT_BY = r"(?P<host>\S{1,255}) (?P<tag>\S{1,48}) \S{1,128} \S{1,32} (?:-|\[[^\]\n]{0,100}\]) ?"
_PRIORITY = r"(?:<\d{1,3}>)?"
_UPTIME = r"\[ {0,8}\d{1,10}\.\d{3,9}\]"
_ISO = (
    r"(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)[T ]"
    + _CLOCK
    + r"(?P<zone> ?Z| ?[+-]\d\d:?\d\d| UTC)?"
)
_FORMS = (
    re.compile(rf"{_PRIORITY}1 {_ISO} {_SENT_BY}", re.ASCII),
    re.compile(rf"{_PRIORITY}\[?{_ISO}\]?:? ?(?:(?<= ){_WHO})?", re.ASCII),
    re.compile(
        rf"\[(?:[A-Z][a-z]{{2}} )?(?P<name>{_MONTH}) {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}"
        r" (?P<year>20\d\d)\] ?",
        re.ASCII,
    ),
    re.compile(
        rf"{_PRIORITY}(?P<name>{_MONTH}) (?P<day>[ \d]\d) {_CLOCK} (?:(?P<year>20\d\d) )?{_WHO}",
        re.ASCII,
    ),
)
_COUNTED = re.compile(rf"{_PRIORITY}(?:\S{{1,100}} kernel: ?)?{_UPTIME}", re.ASCII)


class Head(NamedTuple):
    """What stands before a message.

    ``at`` is None where no time can be told; ``is_zoned`` says that the line tells its zone.
    ``host`` and ``tag`` are empty where the line has none. ``message`` is where what the kernel
    said begins.
    """

    at: Instant | None = None
    is_zoned: bool = False
    host: str = ""
    tag: str = ""
    message: int = 0
    is_counted: bool = False
    """The line counts from the machine's start."""


def head_of(line: str, now: Instant, zone: tzinfo) -> Head:
    """Return what stands before the message of ``line``.

    A time without a zone is one of ``zone``; a date without a year is the latest one that is not
    more than a day after ``now``.
    """
    start = line[:HEAD]
    for form in _FORMS:
        match = form.match(start)
        if match is not None:
            return _head(match, now, zone)
    if match := _COUNTED.match(start):
        return Head(message=match.end(), is_counted=True)
    return Head()


def _head(match: re.Match[str], now: Instant, zone: tzinfo) -> Head:
    found = match.groupdict()
    offset = _offset(found.get("zone"))
    at = _instant(found, offset or zone, now)
    return Head(
        at=at,
        is_zoned=offset is not None,
        host=found.get("host") or "",
        tag=found.get("tag") or "",
        message=match.end(),
    )


def _offset(zone: str | None) -> tzinfo | None:
    if zone is None:
        return None
    text = zone.strip()
    if text in ("Z", "UTC"):
        return UTC
    span = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    if span >= _LARGEST_OFFSET:
        return None
    return timezone(-span if text[0] == "-" else span)


def _instant(found: dict[str, str | None], zone: tzinfo, now: Instant) -> Instant | None:
    year = found.get("year")
    if year is not None:
        return _in_year(int(year), found, zone)
    latest = later(now, _AHEAD)
    this_year = datetime.fromtimestamp(in_seconds(latest), tz=zone).year
    for guess in (this_year, this_year - 1):
        at = _in_year(guess, found, zone)
        if at is not None and at <= latest:
            return at
    return None


def _in_year(year: int, found: dict[str, str | None], zone: tzinfo) -> Instant | None:
    name = found.get("name")
    month = _MONTHS.index(name) + 1 if name else int(found.get("month") or 0)
    day, hour, minute, second = (int(found[part] or 0) for part in _PARTS)
    leap, second = divmod(second, 60)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
    except ValueError:
        return None
    micros = int(f"{found.get('fraction') or '0':0<6}"[:6])
    return Instant(from_unix(moment.timestamp() + 60 * leap) + micros)
