"""Findings and lines as a report shows them: with their place and what stands around them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relight.diagnosis.courses import Course
from relight.diagnosis.deaths import root_text
from relight.model.findings import Finding
from relight.model.progress import Progress
from relight.model.reports import FileReport, RootLine, SetAsideLine, Shown
from relight.model.verdicts import SetAside

_ONE_DIGIT = 9
_AROUND = 5
"""Lines before and after that are shown."""


def root_line(finding: Finding | None, files: Sequence[FileReport]) -> RootLine | None:
    """Return the line that a finding rests on, None where it has no place."""
    if finding is None or finding.place is None:
        return None
    place = finding.place
    before = [one.text for one in finding.evidence if not one.is_root]
    return RootLine(
        file=place.file,
        line=place.line,
        text=root_text(finding),
        before=tuple(before[-_AROUND:]),
        after=_after(place.file, place.line, files),
        at=finding.at,
        rank=finding.ranks[0] if len(finding.ranks) == 1 else None,
        node=finding.nodes[0] if len(finding.nodes) == 1 else None,
    )


def shown_as_root(line: Shown, files: Sequence[FileReport]) -> RootLine:
    """Return a line that no rule knows as the line to look at."""
    tail = next((one.tail for one in files if one.file == line.file), ())
    before = [one.text for one in tail if line.line - _AROUND <= one.line < line.line]
    return RootLine(
        file=line.file,
        line=line.line,
        text=line.text,
        before=tuple(before),
        after=_after(line.file, line.line, files),
    )


def last_progress_line(files: Sequence[FileReport], course: Course) -> RootLine | None:
    """Return the last line that tells the last step, where it is among the last lines kept."""
    best = course.best
    if best is None:
        return None
    tail = next((one.tail for one in files if one.file == best.file), ())
    line = progress_line_in(tail, best.progress)
    return shown_as_root(line, files) if line is not None else None


def progress_line_in(tail: Sequence[Shown], progress: Progress) -> Shown | None:
    """Return the last of a file's last lines that tells the last step, None where none does."""
    if progress.last_step is None:
        return None
    for expression in _told_as(progress):
        for line in reversed(tail):
            if expression.search(line.text):
                return line
    return None


def _told_as(progress: Progress) -> list[re.Pattern[str]]:
    """Return how a line may tell the last step, the surest way first.

    A number of one digit stands in many lines, so a word has to stand before it.
    """
    number = rf"{progress.last_step}(?!\d|\.[1-9])"
    found = [re.compile(rf"(?i)(?:step|iter\w*|batch|update|epoch)\W{{0,12}}{number}")]
    if progress.total is not None:
        found.insert(0, re.compile(rf"(?<![\d.]){progress.last_step} ?/ *{progress.total}(?!\d)"))
    found.append(re.compile(rf"(?<![\d.]){progress.last_step} ?/ *\d"))
    if (progress.last_step or 0) > _ONE_DIGIT:
        found.append(re.compile(rf"(?<![\d.]){number}"))
    return found


def set_aside_lines(
    told: Sequence[SetAside], findings: Sequence[Finding], most: int
) -> tuple[SetAsideLine, ...]:
    """Return what was set aside: one line for all that one rule says for one reason."""
    by_id = {one.id: one for one in findings}
    lines: dict[tuple[str, str], SetAsideLine] = {}
    for aside in told:
        finding = by_id.get(aside.finding)
        if finding is None or finding.place is None:
            continue
        key = (aside.rule, aside.why)
        known = lines.get(key)
        if known is None:
            lines[key] = SetAsideLine(
                rule=aside.rule,
                file=finding.place.file,
                line=finding.place.line,
                text=root_text(finding),
                why=aside.why,
                count=finding.count,
            )
        else:
            lines[key] = _counted(known, finding.count)
    return tuple(list(lines.values())[:most])


def _counted(line: SetAsideLine, more: int) -> SetAsideLine:
    return SetAsideLine(
        rule=line.rule,
        file=line.file,
        line=line.line,
        text=line.text,
        why=line.why,
        count=line.count + more,
    )


def _after(file: str, line: int, files: Sequence[FileReport]) -> tuple[str, ...]:
    tail = next((one.tail for one in files if one.file == file), ())
    return tuple(one.text for one in tail if line < one.line <= line + _AROUND)
