"""What stands in front of a line: launchers and log shippers say who wrote it.

``srun -l`` writes the task number, torch's exception hook ``[rank3]:``, torchrun
``[default3]:`` (a number inside the node, so no global rank), pdsh and DeepSpeed the host,
Ray ``(Worker pid=7, ip=10.0.0.3)``, syslog the host, NCCL ``host:pid:thread [gpu]``, and
shippers the time. The order varies, so prefixes are peeled one at a time.
"""

from __future__ import annotations

import re

from relight.model.records import Record

MOST_PREFIXES = 6
_TIME = (
    r"\[?20\d\d[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:Z|[+-]\d\d:?\d\d)?\]?:?(?: \||:)?"
)
_PREFIX = re.compile(
    r" {0,8}(?:"
    r"(?P<task>\d{1,6}):(?= |$)"
    r"|\[rank(?P<rank>\d{1,7})\]:"
    r"|\[(?P<local>default\d{1,4})\]:"
    r"|\((?P<actor>[A-Za-z_]\w{0,60}(?:\([\w ]{0,40}\))? (?:rank=\d{1,7} )?pid=\d{1,9})"
    r"(?:, ip=(?P<ip>[\w.:-]{1,60}))?\)"
    r"|(?P<host>(?!c10d|python\d|slurm)[a-z][a-z0-9.-]{0,80}\d[a-z0-9.-]{0,80}):(?= |$)"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<syslog>[\w.-]{1,100}) kernel:"
    r"|(?:\|\s{0,3}){1,2}"
    r"|" + _TIME + r"(?: (?P<shipped>[\w.-]{1,100}) kernel:)?"
    r") ?"
)
_NCCL = re.compile(r"(?P<host>[A-Za-z][\w.-]{0,100}):\d{1,9}:\d{1,9} \[(?P<gpu>\d{1,3})\] ")
_INNER_RANK = re.compile(r"\[(?:Rank|rank) (\d{1,7})\]|\brank=(\d{1,7})[,\]]")


class Voice(Record, frozen=True, kw_only=True):
    """Who wrote a line: ``key`` tells writers of one file apart, ``body`` is the line itself.

    ``task`` is Slurm's task number and ``rank`` what torch calls the global rank.
    """

    body: str
    key: str = ""
    rank: int | None = None
    task: int | None = None
    node: str | None = None
    device: str | None = None

    @property
    def best_rank(self) -> int | None:
        """Return the global rank; without one, the task number, which srun's ranks equal."""
        return self.task if self.rank is None else self.rank


def listen(line: str) -> Voice:
    """Return who wrote ``line`` and what is left of it without prefixes."""
    at = 0
    keys: list[str] = []
    rank: int | None = None
    task: int | None = None
    node: str | None = None
    for _ in range(MOST_PREFIXES):
        match = _PREFIX.match(line, at)
        if match is None or match.end() == at:
            break
        at = match.end()
        named = match.groupdict()
        if named["rank"]:
            rank = int(named["rank"])
        if named["task"]:
            task = int(named["task"])
        node = named["host"] or named["ip"] or named["syslog"] or named["shipped"] or node
        keys += [f"{name}={named[name]}" for name in _WHO if named[name]]
    body = line[at:]
    device: str | None = None
    if match := _NCCL.match(body):
        node, device = node or match["host"], match["gpu"]
    if rank is None and (match := _INNER_RANK.search(body, 0, 200)):
        rank = int(match[1] or match[2])
    return Voice(body=body, key=" ".join(keys), rank=rank, task=task, node=node, device=device)


_WHO = ("task", "rank", "local", "actor", "ip", "host")
