"""Rows of results, as a table for a person and as JSON for a program."""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.records import Record


class Measured(Record, frozen=True, kw_only=True):
    """One number with its unit, and in ``of`` what was measured."""

    of: str
    value: float
    unit: str

    @property
    def shown(self) -> str:
        """Return the number with three figures at least, and what it is of."""
        return f"{_figures(self.value)} {self.unit} ({self.of})"


class Row(Record, frozen=True, kw_only=True):
    """One comparison. ``ratio`` is how many times better ours is: above 1 is in our favour.

    ``theirs`` None means that there is nothing to compare with; ``note`` says why, or what
    else a reader has to know.
    """

    what: str
    ours: Measured
    theirs: Measured | None = None
    ratio: float | None = None
    note: str = ""


class Result(Record, frozen=True, kw_only=True):
    """What one part found: rows, and facts that hold for all of them, a sentence each."""

    part: str
    rows: tuple[Row, ...]
    facts: tuple[str, ...] = ()


def faster(what: str, ours: Measured, theirs: Measured | None, note: str = "") -> Row:
    """Return a row of two speeds, of which the higher is the better."""
    ratio = ours.value / theirs.value if theirs is not None and theirs.value else None
    return Row(what=what, ours=ours, theirs=theirs, ratio=ratio, note=note)


def cheaper(what: str, ours: Measured, theirs: Measured | None, note: str = "") -> Row:
    """Return a row of two costs, of which the lower is the better."""
    ratio = theirs.value / ours.value if theirs is not None and ours.value else None
    return Row(what=what, ours=ours, theirs=theirs, ratio=ratio, note=note)


def table(results: Sequence[Result]) -> str:
    """Return Markdown: a heading, a table and the facts of each part."""
    return "\n\n".join(_part(result) for result in results)


def _part(result: Result) -> str:
    lines = ["| what | ours | theirs | ratio |", "| --- | --- | --- | --- |"]
    for row in result.rows:
        theirs = row.theirs.shown if row.theirs is not None else "none"
        ratio = f"{_figures(row.ratio)}x" if row.ratio is not None else ""
        note = f" ({row.note})" if row.note else ""
        lines.append(f"| {row.what}{note} | {row.ours.shown} | {theirs} | {ratio} |")
    facts = "\n".join(f"- {fact}" for fact in result.facts)
    return f"## {result.part}\n\n" + "\n".join(lines) + (f"\n\n{facts}" if facts else "")


def _figures(value: float) -> str:
    size = abs(value)
    if size >= 100:  # noqa: PLR2004 - three figures
        return f"{value:,.0f}"
    if size >= 10:  # noqa: PLR2004 - likewise
        return f"{value:.1f}"
    return f"{value:.2f}"
