"""The time that a line itself prints, where it prints one with a date."""

from __future__ import annotations

import re

from relight.model.instants import Instant, from_iso

_ISO = re.compile(
    r"(?<![\d.:/-])(20\d\d)[-/](\d\d)[-/](\d\d)[T ,](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r" ?(Z\b|UTC|[+-]\d\d:?\d\d)?(?!\d)"
)
_C_TIME = re.compile(
    r"\b([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (?:([A-Z]{3,4}) )?(20\d\d)\b"
)
"""``Sun Mar 30 08:24:00 2025``, as ctime, date and dmesg -T write it."""
_AMERICAN = re.compile(r"(?<![\d/])(\d\d)/(\d\d)/(20\d\d) (\d\d):(\d\d):(\d\d)(?!\d)")
"""``01/31/2025 12:00:00``: the date format of Hugging Face's examples, the month first."""
_EPOCH = re.compile(r"^(?:\S{1,40} ){0,2}\[(1\d{9})\.(\d{6})\]|\"ts\": ?(1\d{9})\.(\d{1,6})")
"""UCX writes ``[1714560000.123456]``, structured loggers ``"ts"``: seconds since 1970."""
_SLURM = re.compile(r"CANCELLED AT (20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)")
_MLLOG = re.compile(r'"time_ms": (1\d{12})\b')
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HEAD = 160
"""Characters from the start of a line in which its own time stands; later ones are content."""
_ALL = 400


def printed_time(line: str) -> Instant | None:
    """Return the instant that ``line`` prints of itself, None without a full date.

    A time without a zone is read as UTC. Read are ISO 8601 and its usual cousins at the
    start of the line, ``Sun Mar 30 08:24:00 2025``, month-first dates, seconds since 1970 as
    UCX and structured loggers write them, MLPerf's ``time_ms`` and slurmstepd's
    ``CANCELLED AT``; a time of day or a date without year is no time.
    """
    if match := _SLURM.search(line, 0, _ALL):
        return _instant(match[1])
    head = line[:_HEAD]
    if match := _ISO.search(head):
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        shown = f"{year}-{month}-{day}T{hour}:{minute}:{second}.{(fraction or '0')[:6]:0<6}"
        return _instant(shown + ("" if zone in (None, "Z", "UTC") else zone))
    if match := _C_TIME.search(head):
        name, day, hour, minute, second, _, year = match.groups()
        if name in _MONTHS:
            month = f"{_MONTHS.index(name) + 1:02d}"
            return _instant(f"{year}-{month}-{int(day):02d}T{hour}:{minute}:{second}")
    if match := _AMERICAN.search(head):
        month, day, year, hour, minute, second = match.groups()
        return _instant(f"{year}-{month}-{day}T{hour}:{minute}:{second}")
    if match := _EPOCH.search(line, 0, _ALL):
        whole, fraction = match[1] or match[3], match[2] or match[4]
        return Instant(int(whole) * 1_000_000 + int(f"{fraction:0<6}"))
    if match := _MLLOG.search(line, 0, _ALL):
        return Instant(int(match[1]) * 1000)
    return None


def _instant(text: str) -> Instant | None:
    try:
        return from_iso(text)
    except ValueError:
        return None
