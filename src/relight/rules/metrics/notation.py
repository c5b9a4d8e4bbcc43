"""A series in one short line, as promtool's unit tests write it.

Values are separated by spaces, one for each scrape. ``5`` is a sample, ``_`` a missing one,
``5x3`` a value and three more like it, ``_x3`` three missing ones, ``0+10x6`` a value and six
more that each rise by 10, ``100-5x2`` likewise falling.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

MOST_SAMPLES = 10_000
"""Scrapes that one series may hold."""

_NUMBER = r"-?(?:\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?)"
_ITEM = re.compile(
    rf"(?P<gap>_)(?:x(?P<gaps>\d{{1,5}}))?"
    rf"|(?P<first>{_NUMBER})(?:(?P<step>[+-]{_NUMBER.removeprefix('-?')})?x(?P<more>\d{{1,5}}))?",
    re.ASCII,
)


def read_series(text: str) -> tuple[float | None, ...]:
    """Return the values that ``text`` writes, None for a missing one.

    Raises:
        ValueError: it holds something else, or too many samples.

    """
    values: list[float | None] = []
    for item in text.split():
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(
                f'"{item}" is no sample; write 5, _, 5x3 (5 and three more), _x3, or 0+10x6'
            )
        values += _values(match)
        if len(values) > MOST_SAMPLES:
            raise ValueError(f"the series holds more than {MOST_SAMPLES} samples; shorten it")
    return tuple(values)


def _values(match: re.Match[str]) -> Iterator[float | None]:
    if match["gap"]:
        yield from [None] * int(match["gaps"] or 1)
        return
    first, step = float(match["first"]), float(match["step"] or 0)
    for count in range(int(match["more"] or 0) + 1):
        value = first + step * count
        yield value if math.isfinite(value) else None
