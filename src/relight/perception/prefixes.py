"""What stands in front of a line: launchers, log shippers and loggers say who wrote it.

``srun -l`` writes the task number, torch's exception hook ``[rank3]:``, torchrun
``[default3]:`` (a number inside the node, so no global rank), Open MPI ``[1,3]<stderr>:``,
SageMaker ``[1,mpirank:3,algo-2]<stderr>:``, pdsh and DeepSpeed the host, docker compose and
dshbak the host and a bar, Ray ``(Worker pid=7, ip=10.0.0.3)``, SkyPilot
``(worker1, rank=1, pid=7)``, syslog and journald the host, NCCL ``host:pid:thread [gpu]``, UCX
``[host:pid:0]``, kubectl ``[pod/name/container]``, container runtimes ``stderr F``, Determined
the container and two bars, and shippers the time. Behind these stand what loggers write:
Python's ``- INFO -`` and ``INFO:name:``, loguru's ``| INFO | module:function:88 -``, the
``[INFO] [file.py:12:f]`` of DeepSpeed, the ``E1210 02:31:05.123456 123 file.cc:12]`` of glog.
The order varies, so prefixes are peeled one at a time.
"""

from __future__ import annotations

import re

from relight.model.records import Record

MOST_PREFIXES = 12
"""Prefixes peeled off one line."""
_DATE = r"(?:20\d\d[-/]\d\d[-/]\d\d|\d\d/\d\d(?:/(?:20)?\d\d)?)"
_DAYTIME = r"\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_ZONE = r"(?: ?(?:Z|UTC)| ?[+-]\d\d:?\d\d)?"
_TIME = rf"\[?{_DATE}[T ,]{{1,2}}{_DAYTIME}{_ZONE}\]?:?"
_CLOCK = r"(?:\[\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?= ))"
_SHORT_TIME = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
_LONG_TIME = rf"\[?(?:[A-Z][a-z]{{2}} )?{_SHORT_TIME}(?: [A-Z]{{3,4}})? 20\d\d\]?"
_UPTIME = r"\[ {0,8}\+?\d{1,10}\.\d{6}\]"
"""Seconds since the kernel started, or since its line before."""
_HOST = r"[A-Za-z0-9][\w.-]{0,100}"
_DAEMON = r"(?:kernel|[A-Za-z][\w./@()-]{0,60}\[\d{1,9}\]):"
"""Who wrote a line of syslog on its host: ``kernel:``, ``slurmd[123]:``; no module's name."""
_DEVICE = (
    r"(?:nvidia(?:-nvswitch)?|mlx|hl|md|dm-|nvme|eth|ens|eno|enp|ib|bond|loop|cuda)\d\w{0,20}:"
)
"""What the kernel and frameworks call devices, which stand before a colon as hosts do."""
_COUNTED = (
    r"(?i:(?:steps?|epochs?|ep|it|iter|batch|update|loss|val|layer)[-_]?\d|(?:gpu|cuda|v)\d )"
)
"""What lines of figures begin with, as hosts do; a bar or a colon follows."""
_STREAM = r" [\w.-]{1,80}(?:/[\w.=-]{1,80}){2,6}"
"""A stream of logs as CloudWatch names them, ``job/default/0a1b``."""
_LEVELS = "DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SUCCESS|TRACE|EXCEPTION"
_LEVEL = rf"(?:{_LEVELS}|{_LEVELS.lower()})"
_PADDED = (
    r"(?:(?:INFO|WARN) {0,4}|(?:DEBUG|ERROR|FATAL|TRACE) {0,3}|(?:NOTICE) {0,2}"
    r"|(?:WARNING|SUCCESS) {0,1}|CRITICAL|EXCEPTION)"
)
"""A level in a column of eight, so that an indentation behind it is kept."""
_LOGGER = r"(?: [a-z_][a-z0-9_.]{0,60}:(?= ))?"
"""The name of a logger, which no exception has: those without a capital letter are few."""
_SOURCE = r"[\w./<>@-]{1,160}\.(?:py|cpp|cc|cu|hpp|h|c|rs|go):\d{1,6}"
_RANKED = r"\[(?:rank|Rank|RANK)[ =:]{0,2}(?P<rank>\d{1,7})\]:?"
_PREFIX = re.compile(
    r" {0,8}(?:"
    r"(?P<task>\d{1,6}):(?= |$)"
    rf"|{_RANKED}"
    r"|rank[-_ ]?(?P<barred>\d{1,7}) {0,8}\|(?= |$)"
    r"|(?:\[(?:[\w.-]{1,80}@)?\d{1,6},(?P<mpi>\d{1,7})\]|\[(?P<horovod>\d{1,7})\]"
    r"|\[\d{1,6},mpirank:(?P<sage>\d{1,7}),(?P<algo>[\w.-]{1,60})\])"
    r"<std(?:out|err|diag)>:"
    r"|\[[A-Za-z][A-Za-z_-]{0,30}\d{1,4}\|(?P<both>\d{1,7})\]:"
    r"|\[(?P<local>[A-Za-z][A-Za-z_-]{0,30}\d{1,4})\]:"
    r"|\((?P<actor>[A-Za-z_][\w.]{0,80}(?:\([\w ]{0,40}\))? (?:rank=\d{1,7} )?pid=\d{1,9})"
    r"(?:, ip=(?P<ip>[\w.:-]{1,60}))?\)"
    r"|\((?P<sky>[A-Za-z][\w.-]{0,80}), (?:rank=(?P<skyrank>\d{1,7}), )?pid=\d{1,9}"
    r"(?:, ip=(?P<skyip>[\w.:-]{1,60}))?\)"
    r"|\[pod/(?P<pod>[a-z0-9][\w.-]{0,252})/[\w.-]{1,64}\]"
    r"|(?P<address>\d{1,3}(?:\.\d{1,3}){3}):(?= |$)"
    rf"|(?P<host>(?!c10d|python\d|slurm|{_DEVICE}|{_COUNTED})"
    r"[a-z][a-z0-9.-]{0,80}\d[a-z0-9.-]{0,80}):(?= |$)"
    rf"|(?P<service>(?!{_COUNTED}|rank)[a-zA-Z][\w.-]{{0,80}}\d[\w.-]{{0,80}}) {{1,20}}\|(?= |$)"
    rf"|(?:{_SHORT_TIME} |{_UPTIME} )(?P<syslog>{_HOST}) {_DAEMON}"
    rf"|{_LONG_TIME}(?=$|[ \[])"
    rf"|{_UPTIME}"
    r"|std(?:out|err) [FP](?= |$)"
    r"|\[(?P<ucx>[A-Za-z][\w.-]{0,100}):\d{1,9}:\d{1,3}\]"
    r"|\[(?P<mpihost>[A-Za-z][\w.-]{0,100}):\d{1,9}\](?= |$)"
    r"|(?P<container>[0-9a-f]{6,64}) \|\|(?= |$)"
    rf"|{_TIME}(?: (?P<shipped>{_HOST}) {_DAEMON}|{_STREAM}(?= |$))?"
    rf"|{_CLOCK}"
    rf"|- (?:[\w.:/<>-]{{1,100}} - )?{_LEVEL} -(?: [\w.:/<>-]{{1,100}} -)?(?= |$)"
    rf"|\| {_LEVEL} {{0,8}}\|(?: [\w.:<>-]{{1,120}} [|-](?= |$))?"
    rf"|\[ {{0,4}}{_LEVEL} {{0,4}}\](?:{_LOGGER}|(?=:))"
    rf"|{_LEVEL}:(?:[\w.-]{{1,100}}:)?"
    rf"|{_PADDED}(?=[ \t]){_LOGGER}"
    rf"|[\t ]{{0,4}}{_SOURCE} --(?= |$)"
    rf"|\[{_SOURCE}(?::[\w.<>-]{{1,80}})?\]"
    rf"|\[[\w.]{{1,100}}:\d{{1,6}}(?:, rank=(?P<olmo>\d{{1,7}}))?\](?= |$)"
    r"|\[?[DIWEFC]\d{3,4} \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    r"(?: {1,8}\d{1,20})? [\w./<>-]{1,160}:\d{1,6}\]"
    r"|[DIWEF] [\w./<>-]{1,160}:\d{1,6}\]"
    r"|\|{1,2}"
    r")[ \t]?"
)
_NCCL = re.compile(r"(?P<host>[A-Za-z][\w.-]{0,100}):\d{1,9}:\d{1,9} \[(?P<gpu>\d{1,3})\] ")
_INNER_RANK = re.compile(r"\[(?:PG [^\]\n]{1,80} )?(?:Rank|rank) (\d{1,7})\]|\brank=(\d{1,7})[,\]]")
_ALL_RANKS = ("rank", "barred", "mpi", "horovod", "sage", "both", "skyrank", "olmo")
_HOSTS = (
    "host",
    "address",
    "ip",
    "skyip",
    "algo",
    "pod",
    "syslog",
    "shipped",
    "ucx",
    "mpihost",
    "service",
)


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
    """Return who wrote ``line`` and what is left of it without prefixes.

    A Kubernetes pod stands for the node: it is what the log knows of where a line was written.
    The outermost rank is the global one: ``[Rank 1]`` behind ``[rank13]:`` counts in a group.
    """
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
        ranked = next((named[name] for name in _ALL_RANKS if named[name]), None)
        rank = int(ranked) if rank is None and ranked is not None else rank
        task = int(named["task"]) if named["task"] else task
        node = next((named[name] for name in _HOSTS if named[name]), node)
        keys += [f"{name}={named[name]}" for name in _WHO if named[name]]
    body = line[at:]
    device: str | None = None
    if match := _NCCL.match(body):
        node, device = node or match["host"], match["gpu"]
    if rank is None and (match := _INNER_RANK.search(body, 0, 200)):
        rank = int(match[1] or match[2])
    return Voice(body=body, key=" ".join(keys), rank=rank, task=task, node=node, device=device)


_WHO = (
    "task",
    *_ALL_RANKS,
    "local",
    "actor",
    "sky",
    "pod",
    "container",
    "ip",
    "address",
    "host",
    "service",
    "syslog",
    "shipped",
)
