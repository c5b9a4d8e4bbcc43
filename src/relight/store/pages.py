"""Pages of a listing: some items, and a token for the next ones."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from relight.store.errors import StoreRefused

Item = TypeVar("Item")
Row = TypeVar("Row")

_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Items in order; ``next`` is the cursor of the page after, empty on the last one."""

    items: tuple[Item, ...]
    next: str = ""


def to_cursor(*numbers: int) -> str:
    """Return an opaque text for the place of a row in its order."""
    return base64.urlsafe_b64encode(".".join(map(str, numbers)).encode()).decode().rstrip("=")


def from_cursor(cursor: str, count: int) -> tuple[int, ...]:
    """Return the ``count`` numbers that ``to_cursor`` was given.

    Raises:
        StoreRefused: the text came from somewhere else.

    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        words = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").split(".")
        numbers = tuple(int(word) for word in words if word.isdigit() and len(word) <= 19)  # noqa: PLR2004 - digits of a 64-bit number
    except (binascii.Error, ValueError):
        numbers = ()
    if len(numbers) != count or any(number > _HIGHEST for number in numbers):
        raise StoreRefused(f'"{cursor[:80]}" is not a page token: start without one')
    return numbers


def page(
    rows: Sequence[Row], limit: int, read: Callable[[Row], Item], place: Callable[[Row], str]
) -> Page[Item]:
    """Return the first ``limit`` of ``rows``, of which one more was asked than is shown."""
    shown = rows[:limit]
    following = place(shown[-1]) if len(rows) > limit else ""
    return Page(tuple(read(row) for row in shown), following)
