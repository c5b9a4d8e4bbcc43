"""The time that a line itself prints, where it prints one with a date."""

from __future__ import annotations

import re

from relight.model.instants import Instant, from_iso

_ISO = re.compile(
    r"(?<![\d.:/-])(20\d\d)[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r" ?(Z|UTC|[+-]\d\d:?\d\d)?(?!\d)"
)
_KERNEL = re.compile(
    r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (20\d\d)\]"
)
_SLURM = re.compile(r"CANCELLED AT (20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)")
_MLLOG = re.compile(r'"time_ms": (1\d{12})\b')
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HEAD = 120
"""Characters from the start of a line in which its own time stands; later ones are content."""


def printed_time(line: str) -> Instant | None:
    """Return the instant that ``line`` prints of itself, None without a full date.

    A time without a zone is read as UTC. Read are ISO 8601 and its usual cousins at the
    start of the line, the kernel's ``[Sun Mar 30 08:24:00 2025]``, MLPerf's ``time_ms`` and
    slurmstepd's ``CANCELLED AT``; a time of day or a date without year is no time.
    """
    if match := _SLURM.search(line, 0, 400):
        return _instant(match[1])
    head = line[:_HEAD]
    if match := _ISO.search(head):
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        shown = f"{year}-{month}-{day}T{hour}:{minute}:{second}.{(fraction or '0')[:6]:0<6}"
        return _instant(shown + ("" if zone in (None, "Z", "UTC") else zone))
    if match := _KERNEL.search(head):
        name, day, hour, minute, second, year = match.groups()
        if name in _MONTHS:
            month = _MONTHS.index(name) + 1
            return _instant(f"{year}-{month:02d}-{int(day):02d}T{hour}:{minute}:{second}")
    if match := _MLLOG.search(line, 0, 400):
        return Instant(int(match[1]) * 1000)
    return None


def _instant(text: str) -> Instant | None:
    try:
        return from_iso(text)
    except ValueError:
        return None
