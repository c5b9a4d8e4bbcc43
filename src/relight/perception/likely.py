"""Which lines are worth a look where no rule explains a death, and what shows that there was one.

Pure scoring of lines that were kept: nothing is concluded from them, and none is invented.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from relight.model.reports import Shown
from relight.perception.fingerprints import without_varying
from relight.perception.prefixes import listen
from relight.perception.tracebacks import exception_named, is_inside

MOST_LIKELY = 5
"""Lines worth a look that are told."""
LAST_LINES = 6
"""Lines before the end of a log in which a program says that it gives up."""
LAST_WORDS = 60
"""Lines before the end of a log in which a death shows."""

_DEATH = re.compile(
    r"(?i)\b(?:exit(?:ed|s)?|terminated|failed|returned|finished|died)\b.{0,40}"
    r"\b(?:exit[ _-]?(?:code|status)|status|code|rc)[ :=]{1,3}-?[1-9]\d{0,2}\b"
    r"|\bexit(?:ed)?[ _-]?(?:code|status)?[ :=]{1,3}-?[1-9]\d{0,2}\b"
    r"|\bnon-?zero (?:exit|status|return)"
    r"|\((?:core dumped|SIG(?:KILL|SEGV|ABRT|BUS|ILL|FPE))\)"
    r"|(?:^|: )(?:Killed|Aborted|Terminated|Segmentation fault|Bus error)(?: \(core dumped\))?\s*$"
    r"|\bterminate called (?:after|without)"
    r"|\b(?:job|training|run|task|step|process|worker|command|trial)\b.{0,60}\b(?:FAILED|failed|crashed)\b"
)
_NO_DEATH = re.compile(r"(?i)(?:exit|status|code|rc)[ _a-z]{0,8}[ :=]{1,3}0\b|warn|retry|retrying")
_LAST_WORD = re.compile(
    r"^.{0,80}?(?:^|[\s\]|:-])(?:FATAL|CRITICAL|PANIC)\b"
    r"|^\W{0,20}(?:\[?F\d{4}\b|[Ff]atal\b|panic:)"
    r"|^(?:\[?[\w./:-]{1,40}\]?[: ] ?){0,1}(?:ERROR|[Ee]rror)(?::| [a-z])"
    r"|\b[Gg]iving up\b|\b[Aa]bort(?:ing|ed)\b|^make(?:\[\d{1,3}\])?: \*\*\* |^SystemExit\b"
    r"|Traceback \(most recent call last\):\s*$"
)
_LEVEL = re.compile(r"^\W{0,8}(?:WARN(?:ING)?|INFO)\b")
"""What a logger or collector calls a line says nothing of a death that another program tells."""
_POINTS = (
    (
        re.compile(
            r"^\W{0,20}(?:\[?F\d{4}|FATAL\b|CRITICAL\b|PANIC\b)|\b(?:fatal|panic)\b", re.IGNORECASE
        ),
        6,
    ),
    (re.compile(r"\b[A-Z]\w{2,60}(?:Error|Exception)\b"), 5),
    (re.compile(r"(?i)\berror\b|\berrno\b|\[E[ \d]|^E\d{4} "), 4),
    (re.compile(r"(?i)\b(?:abort|assert|corrupt|crash|denied|invalid|killed|lost|refused)"), 3),
    (re.compile(r"(?i)\b(?:fail|cannot|could not|unable|unexpected|missing|time[d-]? ?out)"), 3),
)
_DULL = re.compile(
    r"(?i)\bwarn|\binfo\b|\bdebug\b|deprecat|0 errors?|no errors?"
    r"|_error[:=]|error[ _](?:rate|bars?)"
)
_ADVICE = re.compile(
    r"CUDA_LAUNCH_BLOCKING|TORCH_USE_CUDA_DSA|might be asynchronously reported"
    r"|To enable traceback see|Traceback \(most recent call last\)"
)


def death_in(lines: Sequence[Shown]) -> Shown | None:
    """Return the line that shows that a process died, None where the last lines show none.

    ``lines`` are the last of a file, the oldest first.
    """
    last = lines[-LAST_WORDS:]
    for line in last:
        words = _LEVEL.sub("", listen(line.text).body, count=1)
        if _DEATH.search(words) and not _NO_DEATH.search(words):
            return line
    end = last[-LAST_LINES:]
    raised = next((line for line in end if _ends_badly(listen(line.text).body)), None)
    return raised or next((line for line in end if _gives_up(line.text)), None)


def likely_lines(lines: Sequence[Shown]) -> tuple[Shown, ...]:
    """Return up to ``MOST_LIKELY`` lines that look most like a cause, the likeliest first.

    What is rare weighs more than what is repeated, and what came first of the same kind is
    shown for all.
    """
    alike = Counter(without_varying(line.text) for line in lines)
    scored: dict[str, tuple[float, int]] = {}
    for number, line in enumerate(lines):
        kind = without_varying(line.text)
        points = _points(line.text) / alike[kind] ** 0.5
        if points > 0 and kind not in scored:
            scored[kind] = (points, number)
    best = sorted(scored.values(), key=lambda one: (-one[0], one[1]))[:MOST_LIKELY]
    return tuple(lines[number] for _, number in best)


def _points(text: str) -> float:
    if not text.strip() or _ADVICE.search(text):
        return 0.0
    found = max((points for pattern, points in _POINTS if pattern.search(text)), default=0)
    if exception_named(text.strip()) is not None:
        found = max(found, 6)
    if is_inside(text):
        found = min(found, 2)
    return found / 4 if _DULL.search(text) else float(found)


def _gives_up(text: str) -> bool:
    """Tell whether a line says that a program does not go on; a log ends in it or just after."""
    return _LAST_WORD.search(text) is not None and not (
        _NO_DEATH.search(text) or _DULL.search(text) or is_inside(text)
    )


def _ends_badly(text: str) -> bool:
    """Tell whether a line is the last of a traceback: nothing was written after it."""
    name = exception_named(text)
    return name is not None and name.rpartition(".")[2].endswith(("Error", "Exception"))
