"""The lines that follow the root: a second look at the place where it stands."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relight.model.reports import FileReport, Report, RootLine
from relight.perception.lines import last_seen
from relight.sources.archives.compressed import kind_of
from relight.sources.archives.jobs import Wanted
from relight.sources.archives.opening import RefusedError, is_handed_over, part_of

LINES_AFTER = 3

_LOOK = 64 * 1024


def with_lines_after(
    report: Report, files: Sequence[FileReport], wanted: Sequence[Wanted]
) -> Report:
    """Return a report whose root has the lines that follow it, where they can be had.

    Those among the last lines of the file are at hand; a plain file is looked into again.
    """
    root = report.root
    if root is None or root.after:
        return report
    file = next((one for one in files if one.file == root.file), None)
    if file is None:
        return report
    after = _at_hand(root, file)
    if after is None:
        path = next((one.path for one in wanted if one.log.file == root.file), "")
        after = _looked_up(root, file, path)
    return msgspec.structs.replace(report, root=msgspec.structs.replace(root, after=after))


def _at_hand(root: RootLine, file: FileReport) -> tuple[str, ...] | None:
    if not file.tail or file.tail[0].line > root.line + 1:
        return None
    after = [line.text for line in file.tail if line.line > root.line]
    return tuple(after[:LINES_AFTER])


def _looked_up(root: RootLine, file: FileReport, path: str) -> tuple[str, ...]:
    offset = next(
        (
            one.place.offset
            for one in file.findings
            if one.place is not None and one.place.line == root.line
        ),
        None,
    )
    if offset is None or not path or is_handed_over(path):
        return ()
    try:
        if kind_of(part_of(path, 0, _LOOK)):
            return ()
        part = part_of(path, offset, _LOOK)
    except (RefusedError, OSError):
        return ()  # it could be read a moment ago: the report stands without these lines
    lines = part.split(b"\n")[1:-1]
    return tuple(last_seen(line) for line in lines[:LINES_AFTER])
