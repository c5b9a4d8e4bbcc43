"""One clock for each file: that of its progress lines, where its last lines keep to it.

Collectors put a time in front of lines that print one of their own, programs of one job write
by local time and by UTC, and a log that was joined or copied wears one time on every line. So
only times of the same dress as the progress line's are compared, and a clock that stands still
or runs back is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from relight.diagnosis.courses import Stretch
from relight.diagnosis.showing import progress_line_in
from relight.model.instants import Instant, Span, later, seconds
from relight.model.reports import FileReport
from relight.perception.envelopes import unwrapped
from relight.perception.times import printed_time

_STAMP = re.compile(
    r"20\d\d([-/])\d\d[-/]\d\d([T ])\d\d:\d\d:\d\d([.,]\d{1,9})?( ?(?:Z\b|UTC|[+-]\d\d:?\d\d))?"
)
_HEAD = 160
"""Characters from the start of a line in which its own time stands."""
_SLACK = seconds(60)
"""Writers of one file may be this far apart: buffers are flushed late."""
_LOOKED_AT = 100
"""Last lines of a file by which its clock is judged."""
_FEWEST = 3
"""Equal times that show that a clock stands still; two lines may share a second."""


def bare(line: str) -> str:
    """Return the first line of what an envelope carries, the line itself where it is none."""
    if not line.startswith('{"'):
        return line
    return unwrapped(line.encode(errors="replace"))[0].decode(errors="replace")


def own_time(line: str) -> tuple[Instant, str] | None:
    """Return the time in front of a line and its dress, None where it prints none.

    What slurmstepd says of the time inside its message is not in front.
    """
    text = bare(line).partition("CANCELLED AT")[0]
    at = printed_time(text)
    if at is None:
        return None
    stamp = _STAMP.search(text, 0, _HEAD)
    if stamp is None:
        return at, ""
    date, middle, fraction, zone = stamp.groups(default="")
    return at, f"{date}{middle}{len(fraction)}{'z' if zone else ''}"


def by_own_clock(stretch: Stretch, file: FileReport) -> Stretch:
    """Return a stretch whose times can be compared; without times where they cannot.

    A step without a printed time was given the time at which it was read, which tells nothing.
    """
    line = progress_line_in(file.tail, stretch.progress)
    shown = own_time(line.text) if line is not None else None
    dress = shown[1] if shown is not None else ""
    last_at = _last_of(file, dress) if shown is not None else file.last_at
    step_at = stretch.step_at
    is_untimed = line is not None and shown is None
    if last_at is None or step_at is None or is_untimed or step_at > later(last_at, _SLACK):
        return msgspec.structs.replace(stretch, step_at=None, last_at=None)
    return msgspec.structs.replace(stretch, last_at=last_at, dress=dress)


def _last_of(file: FileReport, dress: str) -> Instant | None:
    """Return the last time of that dress in a file, None where it is no clock."""
    found = [told for line in file.tail[-_LOOKED_AT:] if (told := own_time(line.text)) is not None]
    return _if_running([at for at, worn in found if worn == dress])


def _if_running(times: Sequence[Instant]) -> Instant | None:
    if not times or (len(times) >= _FEWEST and min(times) == max(times)):
        return None
    latest = times[0]
    for at in times:
        if at < later(latest, Span(-_SLACK)):
            return None
        latest = max(latest, at)
    return latest
