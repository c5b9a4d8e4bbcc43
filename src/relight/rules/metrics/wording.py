"""Names and values from a metrics server, as they may be shown: bounded and printable."""

from __future__ import annotations

MOST_TEXT = 60
"""Characters kept of a name that a metrics server gave."""
_SMALL = 10
_HUGE = 1e15
"""Above it nobody counts digits."""


def shown_name(text: str) -> str:
    """Return a name as it may be shown: printable characters only, at most sixty of them."""
    kept = "".join(
        character if character.isprintable() else "?" for character in text[: MOST_TEXT + 1]
    )
    return kept if len(kept) <= MOST_TEXT else kept[: MOST_TEXT - 1] + "…"


def number(value: float) -> str:
    """Return a value for a person: ``1,155``, ``0.41``."""
    if value and abs(value) < _SMALL:
        return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) >= 1e-2 else f"{value:.1e}"  # noqa: PLR2004 - two decimals show nothing below it
    return f"{value:,.0f}" if abs(value) < _HUGE else f"{value:.2e}"
