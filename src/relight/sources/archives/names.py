"""What the names of logs tell: job, rank, node, attempt.

Little is guessed from a number alone. A bare number is a rank only where all files of one
kind in one folder bear one and count from 0. torchrun numbers the folders below
``attempt_0`` by local rank, which is the global one on a single node only.

Sources: Slurm's "filename pattern" (sbatch(1), srun(1)) and its default
``slurm-%A_%a.out``; torchrun's ``--log-dir`` (``<run>/attempt_<n>/<local rank>/stdout.log``);
Open MPI's ``--output-filename`` (``rank.0/stdout``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from relight.model.jobs import Allocation
from relight.model.records import Record

_PARTS = 4
"""The last parts of a path that are looked at: what lies above names no writer."""
_LONGEST = 255
"""Characters of one part, Linux' NAME_MAX."""
_FEWEST_ALIKE = 2
_MOST_DASHES = 12

_JOB = re.compile(
    r"(?:^|[^a-z0-9])(?:slurm|job|jobid)[-_.]?(?P<named>\d{1,10}(?:_\d{1,7})?)(?![0-9a-z])"
    r"|[-_.](?P<bare>\d{5,8}(?:_\d{1,7})?)\.(?:out|err|log)$"
    r"|\.[oe](?P<pbs>\d{4,10})$",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_RANK = re.compile(
    r"(?:^|[^a-z])(?:(?P<of>local|node|machine|group)[-_]?)?"
    r"(?:rank|task|proc)(?:id)?[-_.=]?(?P<number>\d{1,6})(?!\d)",
    re.IGNORECASE,
)
_TORCHRUN = re.compile(r"(?P<launch>.*?)/?attempt_(?P<attempt>\d{1,6})/(?P<local>\d{1,6})/[^/]*")
_BARE = re.compile(
    r"(?:std(?:out|err)|out(?:put)?|err(?:or)?|log)?[-_.]?(?P<number>\d{1,6})",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"(?<![a-z0-9])(?:ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}"
    r"|(?:node|nid|host|hgx|dgx|compute)[a-z0-9]*(?:-[a-z0-9]+)*)(?![a-z0-9])",
    re.IGNORECASE,
)
_NO_HOST = re.compile(r"-(?:rank|task|proc|attempt|std|out|err|log)", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:\.(?:log|out|err|txt|stdout|stderr|jsonl?))+$", re.IGNORECASE)
_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2)$", re.IGNORECASE)


class Named(Record, frozen=True, kw_only=True):
    """What one name tells; None and empty where it tells nothing.

    ``job`` is a scheduler's id, with ``_`` and the task in an array. ``attempt`` counts
    torchrun's attempts, ``local_rank`` is the rank within one node, ``node_index`` the place
    of the node in its job, ``launch`` the folder of the launcher that made the file.
    """

    job: str = ""
    rank: int | None = None
    node: str | None = None
    attempt: int | None = None
    local_rank: int | None = None
    node_index: int | None = None
    launch: str = ""


def named(paths: Sequence[str], allocation: Allocation) -> list[Named]:
    """Return what the names of the logs of one or several jobs tell, in their order.

    With the nodes of the allocation a name may hold any of them; without, only what is
    called like a host. A local rank becomes a rank where there is one launch and at most one
    node, or where the node's place and the ranks of each node are known.
    """
    hosts = _Hosts(allocation.nodes)
    alone = [_told(path, hosts) for path in paths]
    counted = _counted(paths)
    launches = {one.launch for one in alone if one.local_rank is not None}
    is_single = len(launches) == 1 and len(allocation.nodes) <= 1
    return [
        _settled(one, counted.get(place), allocation, is_single=is_single)
        for place, one in enumerate(alone)
    ]


def _told(path: str, hosts: _Hosts) -> Named:
    *folders, name = (part[:_LONGEST] for part in _PACKED.sub("", path).split("/")[-_PARTS:])
    torchrun = _TORCHRUN.fullmatch(_PACKED.sub("", path)) if len(folders) > 1 else None
    numbers: dict[str, int] = {}
    # A folder tells something with its whole name only: what it holds may be anything.
    founds = [_RANK.fullmatch(folder) for folder in folders] + list(_RANK.finditer(name))
    for found in founds:
        if found is not None:
            numbers[(found["of"] or "").lower()] = int(found["number"])
    if torchrun is not None:
        numbers["local"] = int(torchrun["local"])
    index = numbers.get("node", numbers.get("machine", numbers.get("group")))
    return Named(
        job=_job(folders, name),
        rank=numbers.get(""),
        node=hosts.named_by(folders, name),
        attempt=int(torchrun["attempt"]) if torchrun is not None else None,
        local_rank=numbers.get("local"),
        node_index=index,
        launch=torchrun["launch"] if torchrun is not None else "",
    )


def _settled(one: Named, counted: int | None, allocation: Allocation, *, is_single: bool) -> Named:
    nodes = allocation.nodes
    node, rank = one.node, one.rank
    if node is None and one.node_index is not None and one.node_index < len(nodes):
        node = nodes[one.node_index]
    if rank is None and one.local_rank is not None:
        if is_single:
            rank = one.local_rank
        elif node in nodes and one.local_rank < allocation.tasks_per_node:
            rank = nodes.index(node) * allocation.tasks_per_node + one.local_rank
    elif rank is None:
        rank = counted
    return msgspec.structs.replace(one, node=node, rank=rank)


def _job(folders: Sequence[str], name: str) -> str:
    job = ""
    founds = [_JOB.fullmatch(folder) for folder in folders] + list(_JOB.finditer(name))
    for found in founds:
        if found is not None:
            if found["bare"] and _RANK.search(name):
                continue
            number = found["named"] or found["bare"] or found["pbs"]
            if found["named"] or not _DATE.fullmatch(number):
                job = number
    return job


def _counted(paths: Sequence[str]) -> dict[int, int]:
    """Return place and number of files whose names are numbers that count from 0."""
    alike: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for place, path in enumerate(paths):
        folder, _, name = _PACKED.sub("", path).rpartition("/")
        suffix = _SUFFIX.search(name)
        stem = name[: suffix.start()] if suffix else name
        found = _BARE.fullmatch(stem)
        if found is not None:
            kind = f"{stem[: found.start('number')]}*{suffix[0] if suffix else ''}"
            alike[folder, kind][int(found["number"])] = place
    return {
        place: number
        for numbers in alike.values()
        if len(numbers) >= _FEWEST_ALIKE and set(numbers) == set(range(len(numbers)))
        for number, place in numbers.items()
    }


class _Hosts:
    """Finds a node's name inside a file's name."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = frozenset(nodes)
        short: dict[str, list[str]] = defaultdict(list)
        for node in nodes:
            short[node.partition(".")[0]].append(node)
        self._by_short = {name: alike[0] for name, alike in short.items() if len(alike) == 1}

    def named_by(self, folders: Sequence[str], name: str) -> str | None:
        """Return the node that the name tells, else that of the nearest folder called so."""
        found = list(self._candidates(name))
        for folder in reversed(folders):
            if found:
                break
            found = list(self._candidates(folder)) if self._is_whole(folder) else []
        return found[-1] if found else None

    def _is_whole(self, folder: str) -> bool:
        if self._nodes:
            return folder in self._nodes or folder in self._by_short
        return _HOST.fullmatch(folder) is not None

    def _candidates(self, part: str) -> Iterator[str]:
        stem = _SUFFIX.sub("", part)
        if self._nodes:
            for word in _words(stem):
                if word in self._nodes:
                    yield word
                elif word in self._by_short:
                    yield self._by_short[word]
            return
        for found in _HOST.finditer(stem):
            host = _NO_HOST.split(found[0], maxsplit=1)[0]
            if host[-1].isdigit():
                yield host


def _words(stem: str) -> Iterator[str]:
    """Yield every stretch of a name that a host's name could be, longer ones last."""
    for piece in (stem, *stem.split("_")):
        dashed = piece.split("-")[:_MOST_DASHES]
        for length in range(1, len(dashed) + 1):
            for start in range(len(dashed) - length + 1):
                yield "-".join(dashed[start : start + length])
