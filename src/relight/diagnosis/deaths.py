"""What launchers print of a process's death: where it ran, who it was, how it ended and when.

torchelastic prints a box of several lines, of which each matched line is a finding of its own;
srun prints one line for all tasks that ended alike. Both are read back from the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from relight.model.findings import Finding
from relight.model.hostlists import HostlistError, expand
from relight.model.instants import Instant, from_iso
from relight.model.records import Record

_FIELD = re.compile(r"\b(?P<name>time|host|rank|exitcode) {1,10}: (?P<value>.{1,200})")
_BOX_LINES = 6
"""Lines within which one entry of torchelastic's box tells all its fields."""
_RANK = re.compile(r"(\d{1,7}) \(local_rank: \d{1,4}\)")
_CODE = re.compile(r"(-?\d{1,3}) \(pid: (\d{1,9})\)")
_SRUN = re.compile(
    r"srun: error: (?P<hosts>[\w.\[\],-]{1,300}): tasks? (?P<tasks>[\d,-]{1,200}): (?P<how>.{1,80})"
)
_PDSH = re.compile(
    r"pdsh@[\w.-]{1,100}: (?P<host>[\w.-]{1,100}): ssh exited with exit code (?P<code>\d{1,3})"
)
_EXIT = re.compile(r"Exited with exit code (\d{1,3})")
_KILLED = re.compile(r"Killed process (\d{1,9})|task=[^,]{0,80},pid=(\d{1,9})")
_TOLD_TO_STOP = frozenset({-15, 143, -2, 130})
_MOST_TASKS = 4_096
TASK_RULES = frozenset({"slurm-task-exited", "slurm-task-died", "slurm-task-terminated"})
"""Rules of srun's own lines, which name a node and the numbers of tasks on it."""
ELASTIC_RULE = "child-failed"
"""The rule of torchelastic's report, which names host and rank on lines of their own."""


class Death(Record, frozen=True, kw_only=True):
    """One process, or the tasks that srun tells of in one line; None where it is not told.

    ``first_line`` to ``last_line`` of ``file`` are the lines that tell it. ``at`` is the time
    that the launcher printed as the process's end, by the clock of its own node.
    """

    file: str
    first_line: int
    last_line: int
    hosts: tuple[str, ...] = ()
    rank: int | None = None
    tasks: tuple[int, ...] = ()
    code: int | None = None
    pid: int | None = None
    how: str = ""
    at: Instant | None = None

    @property
    def was_told_to_stop(self) -> bool:
        """Return whether it died of another's death, or of a person's word."""
        return self.code in _TOLD_TO_STOP or "erminated" in self.how


def deaths_in(findings: Sequence[Finding]) -> tuple[Death, ...]:
    """Return the deaths that launchers tell of, in the order of files and lines."""
    lines = _known_lines(findings)
    found = [*_boxes(lines), *_exit_lines(lines)]
    return tuple(sorted(found, key=lambda one: (one.file, one.first_line)))


def pids_in(finding: Finding) -> tuple[int, ...]:
    """Return the processes that a kernel's line says it killed."""
    found = [match[1] or match[2] for match in _KILLED.finditer(root_text(finding))]
    return tuple(int(pid) for pid in dict.fromkeys(found))


def root_text(finding: Finding) -> str:
    """Return the line that matched."""
    return next((one.text for one in finding.evidence if one.is_root), "")


def _known_lines(findings: Sequence[Finding]) -> dict[tuple[str, int], str]:
    """Return the text of every line that is known, by file and number.

    Only the lines before a box's own are counted back: those before others may be a
    traceback, which does not stand line by line above them.
    """
    known: dict[tuple[str, int], str] = {}
    for one in findings:
        if one.place is None:
            continue
        text = _as_printed(one)
        known[one.place.file, one.place.line] = text
        if " : " not in text or _FIELD.search(text) is None:
            continue
        before = [line.text for line in one.evidence if not line.is_root]
        for back, line in enumerate(reversed(before), 1):
            if _FIELD.search(line):
                known.setdefault((one.place.file, one.place.line - back), line)
    return known


def _as_printed(one: Finding) -> str:
    """Return the line; where it was not kept, what its rule took from it, as it is printed."""
    text = root_text(one)
    if one.rule == ELASTIC_RULE and _FIELD.search(text) is None:
        if one.nodes:
            return f"host      : {one.nodes[0]}"
        return f"rank      : {one.ranks[0]} (local_rank: 0)" if one.ranks else text
    if one.rule in TASK_RULES and one.nodes and one.ranks and _SRUN.search(text) is None:
        tasks = ",".join(str(rank) for rank in one.ranks)
        return f"srun: error: {','.join(one.nodes)}: tasks {tasks}: {text or 'gone'}"
    return text


def _boxes(lines: dict[tuple[str, int], str]) -> Iterator[Death]:
    fields: dict[str, str] = {}
    begun: tuple[str, int] | None = None
    last = 0
    fields_only = [(place, text) for place, text in lines.items() if " : " in text]
    for (file, number), text in sorted(fields_only):
        match = _FIELD.search(text)
        if match is None:
            continue
        name = match["name"]
        is_next = begun is None or file != begun[0] or number - begun[1] >= _BOX_LINES
        if begun is not None and (is_next or name in fields):
            yield from _box(fields, begun, last)
            fields, begun = {}, None
        begun = begun or (file, number)
        fields[name] = match["value"]
        last = number
    if begun is not None:
        yield from _box(fields, begun, last)


def _box(fields: dict[str, str], begun: tuple[str, int], last: int) -> Iterator[Death]:
    rank = _RANK.search(fields.get("rank", ""))
    code = _CODE.search(fields.get("exitcode", ""))
    if rank is None and code is None:
        return
    host = fields.get("host", "").strip()
    yield Death(
        file=begun[0],
        first_line=begun[1],
        last_line=last,
        hosts=(host,) if host else (),
        rank=int(rank[1]) if rank else None,
        code=int(code[1]) if code else None,
        pid=int(code[2]) if code else None,
        at=_time(fields.get("time", "")),
    )


def _time(text: str) -> Instant | None:
    try:
        return from_iso(text.strip().replace("_", "T", 1))
    except ValueError:
        return None


def _exit_lines(lines: dict[tuple[str, int], str]) -> Iterator[Death]:
    told_by_launchers = [
        (place, text) for place, text in lines.items() if "srun: " in text or "pdsh@" in text
    ]
    for (file, number), text in sorted(told_by_launchers):
        if told := _PDSH.search(text):
            yield Death(
                file=file,
                first_line=number,
                last_line=number,
                hosts=(told["host"],),
                code=int(told["code"]),
            )
        match = _SRUN.search(text)
        if match is None:
            continue
        code = _EXIT.search(match["how"])
        yield Death(
            file=file,
            first_line=number,
            last_line=number,
            hosts=_hosts(match["hosts"]),
            tasks=_tasks(match["tasks"]),
            code=int(code[1]) if code else None,
            how=match["how"].strip(),
        )


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except HostlistError:
        return (text,)


def _tasks(text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit() and len(last or first) < 8:  # noqa: PLR2004 - more than any job has tasks
            room = _MOST_TASKS - len(numbers)
            numbers += range(int(first), min(int(last or first) + 1, int(first) + room))
    return tuple(numbers)
