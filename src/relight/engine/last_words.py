"""What the last lines of logs show where no rule speaks: who wrote, who died, who only waited."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relight.diagnosis.courses import Course
from relight.diagnosis.deaths import root_text
from relight.diagnosis.showing import last_progress_line, root_line
from relight.diagnosis.sifting import Sifted
from relight.engine.own_clocks import bare, own_time
from relight.model.findings import Finding, Kind, Role
from relight.model.reports import FileReport, Shown
from relight.perception.likely import death_in
from relight.perception.prefixes import listen

_AT_EXIT = re.compile(r"Error in atexit\._run_|Exception ignored in atexit callback").search
"""CPython's words before the traceback of a function that runs once the program has ended."""
_SAVES = re.compile(
    r"(?i)\b(?:sav(?:e|ed|ing)|wr(?:ite|ote|iting|itten))\b.{0,40}\bcheck ?point"
    r"|check ?point\S{0,40} (?:was |is |has been )?(?:saved|written|complete)"
    r"|exit(?:ing|ed)? (?:cleanly|gracefully)|graceful(?:ly)? (?:exit|shut|stop)"
).search
_RANK_ON = re.compile(
    r"(?i)\brank[ :=]{0,2}(?P<rank>\d{1,7})[ ,:]{0,2}(?:\(|on |node[ =:]|host[ =:]){1,2}"
    r"(?P<node>[a-z][\w.-]{0,100})"
).finditer
_FEWEST_TIMES = 2
_ONE_VOICE_EACH = 64
"""Lines below an exception in which other ranks may print the same one without its traceback."""
_MOST_FILES_HEARD = 64
"""Files whose last lines are searched for the names of hosts: a file a rank has one host."""


def hosts_heard(files: Sequence[FileReport]) -> frozenset[str]:
    """Return the hosts whose prefix stands before any of the last lines, or in a file's name."""
    named = {file.node for file in files}
    lines = [line for file in files[:_MOST_FILES_HEARD] for line in file.tail]
    voices = {listen(bare(line.text)).node for line in lines}
    return frozenset(node for node in voices | named if node)


def after_progress(
    files: Sequence[FileReport], course: Course
) -> tuple[tuple[Shown, ...], tuple[Shown, ...]]:
    """Return the last lines of all files from the last told step on, and of its file alone."""
    progress = last_progress_line(files, course)
    lines: list[Shown] = []
    own: list[Shown] = []
    for file in files:
        is_own = progress is not None and progress.file == file.file
        begins = progress.line if progress is not None and is_own else 0
        after = [line for line in file.tail if line.line >= begins]
        lines += after
        own += after[1:] if is_own else ()
    return tuple(lines), tuple(own)


def left_by_itself(files: Sequence[FileReport]) -> Shown | None:
    """Return the line that shows that a program had come to its end, None where none does."""
    lines = (line for file in files for line in file.tail)
    return next((line for line in lines if _AT_EXIT(line.text)), None)


def saves_itself(word: Finding, files: Sequence[FileReport]) -> bool:
    """Tell whether a run that was told to stop says that it saves its state and leaves."""
    place = word.place
    if place is None:
        return False
    tail = next((file.tail for file in files if file.file == place.file), ())
    return any(_SAVES(line.text) for line in tail if line.line >= place.line)


def nodes_named_below(
    root: Finding | None, ranks: tuple[int, ...], files: Sequence[FileReport]
) -> tuple[str, ...]:
    """Return the nodes that the lines just below a report of slow ranks name for them."""
    shown = root_line(root, files)
    if root is None or root.kind is not Kind.SLOW or shown is None:
        return ()
    named = (match for line in shown.after for match in _RANK_ON(line))
    return tuple(dict.fromkeys(one["node"] for one in named if int(one["rank"]) in ranks))


def ranks_alike(
    root: Finding | None, ranks: tuple[int, ...], files: Sequence[FileReport]
) -> tuple[int, ...]:
    """Return ranks with those whose lines just below say word for word the same as the root's."""
    if root is None or root.place is None or not ranks or root.role is Role.SYMPTOM:
        return ranks
    place, said = root.place, listen(bare(root_text(root))).body.strip()
    if root.kind is not Kind.CRASH or ": " not in said:
        return ranks
    tail = next((file.tail for file in files if file.file == place.file), ())
    below = [line for line in tail if 0 < line.line - place.line <= _ONE_VOICE_EACH]
    voices = [listen(bare(line.text)) for line in below]
    alike = {one.rank for one in voices if one.rank is not None and one.body.strip() == said}
    return ranks if alike <= {*ranks} else tuple(sorted({*ranks, *alike}))


def death_after(lines: Sequence[Shown], sifted: Sifted) -> Shown | None:
    """Return the line that shows that a process died after the last step was told.

    What is known to be harmless, or was survived, shows none.
    """
    known = {
        (one.place.file, one.place.line)
        for one in (*sifted.benign, *sifted.recovered, *sifted.teardown)
        if one.place is not None
    }
    heard = [line for line in lines if (line.file, line.line) not in known]
    left = next((number for number, line in enumerate(heard) if _AT_EXIT(line.text)), len(heard))
    return death_in(heard[:left])


def spoke_on(lines: Sequence[Shown], course: Course) -> bool:
    """Tell whether the lines after the last step print times that are far apart."""
    told = [one for line in lines if (one := own_time(line.text)) is not None]
    best = course.best
    if best is None or len(told) < _FEWEST_TIMES:
        return False
    times = [at for at, dress in told if dress == told[0][1]]
    return max(times) - min(times) > best.longest_pause
