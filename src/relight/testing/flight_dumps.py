"""Dumps of NCCL's flight recorder as PyTorch writes them, for jobs that hang in a given way.

``Recorders`` stands for all ranks of a job: let them call collectives, complete some, and write.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Table = dict[str, object]

DEFAULT_GROUP = "0"
_STEP_NS = 1_000_000
_STACK = (
    ("all_reduce", "/opt/env/lib/python3.11/site-packages/torch/distributed/c10d.py", 2806),
    ("wrapper", "/opt/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", 81),
    ("backward_step", "/srv/app/train/steps.py", 88),
    ("main", "/srv/app/train/main.py", 240),
)


@dataclass(slots=True)
class _Rank:
    entries: list[Table] = field(default_factory=list)
    status: dict[str, list[int]] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    records: int = 0
    pairs: int = 0


@dataclass(slots=True)
class Recorders:
    """All ranks of a job of ``world`` ranks; ``start`` is when it began, in nanoseconds.

    ``groups`` are the members by name, besides the default group of all, in the order in which
    they are created: each rank numbers those it is in by itself, as PyTorch does. ``is_timed``
    is ``TORCH_NCCL_ENABLE_TIMING``, ``ring`` how many entries one recorder keeps.
    """

    world: int
    groups: dict[str, Sequence[int]] = field(default_factory=dict)
    start: int = 1_790_000_000_000_000_000
    is_timed: bool = True
    ring: int = 2_000
    clock: int = 0
    ranks: list[_Rank] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = {DEFAULT_GROUP: range(self.world), **self.groups}
        self.ranks = [_Rank() for _ in range(self.world)]
        for name, members in self.groups.items():
            for rank in members:
                self.ranks[rank].ids[name] = len(self.ranks[rank].ids)

    def call(  # noqa: PLR0913 - an entry has as many sides
        self,
        group: str = DEFAULT_GROUP,
        *,
        ranks: Iterable[int] | None = None,
        name: str = "all_reduce",
        size: int = 1024,
        dtype: str = "Float",
        state: str = "completed",
        stack: Sequence[tuple[str, str, int]] = _STACK,
    ) -> None:
        """Let ranks of a group (all by default) call its next collective."""
        self.clock += _STEP_NS
        for rank in self.groups[group] if ranks is None else ranks:
            one = self.ranks[rank]
            status = one.status.setdefault(group, [-1, -1, -1])
            sequence = max(status[0], 0) + 1
            status[0] = sequence
            if self.is_timed and state != "scheduled":
                status[1] = sequence
            if state == "completed":
                status[2] = sequence
            shape: list[object] = [[size, size]]
            told = {
                "collective_seq_id": sequence,
                "p2p_seq_id": 0,
                "profiling_name": f"nccl:{name}",
                "input_sizes": shape,
                "output_sizes": shape,
                "input_dtypes": [dtype],
                "output_dtypes": [dtype],
                "is_p2p": False,
            }
            self._record(rank, group, told, state, stack)

    def pair(
        self, group: str, rank: int, kind: str, ends: tuple[int, int], state: str = "started"
    ) -> None:
        """Let a rank send or receive; ``ends`` are sender and receiver as places in the group."""
        self.clock += _STEP_NS
        one = self.ranks[rank]
        one.pairs += 1
        source, target = ends
        arrow = f"{source}->{target}" if kind == "send" else f"{target}<-{source}"
        told = {
            "collective_seq_id": 0,
            "p2p_seq_id": one.pairs,
            "profiling_name": f"nccl:{kind} {arrow}",
            "input_sizes": [[64]],
            "output_sizes": [[64]],
            "input_dtypes": ["BFloat16"],
            "output_dtypes": ["BFloat16"],
            "is_p2p": True,
        }
        self._record(rank, group, told, state, _STACK)
        status = one.status.setdefault(group, [-1, -1, -1])
        status[0] = one.pairs

    def _record(
        self,
        rank: int,
        group: str,
        told: Table,
        state: str,
        stack: Sequence[tuple[str, str, int]],
    ) -> None:
        one = self.ranks[rank]
        at = self.start + self.clock + rank
        entry: Table = {
            "frames": [
                {"name": function, "filename": file, "line": line} for function, file, line in stack
            ],
            "record_id": one.records,
            "pg_id": one.ids[group],
            "process_group": (group, "default_pg" if group == DEFAULT_GROUP else group),
            "thread_name": "pt_main_thread",
            "thread_id": "140142",
            "op_id": one.records,
            **told,
            "time_created_ns": at,
            "state": state,
            "time_discovered_started_ns": at + 10 if state != "scheduled" else None,
            "time_discovered_completed_ns": at + 20 if state == "completed" else None,
            "retired": state == "completed",
            "timeout_ms": 600_000,
        }
        one.records += 1
        one.entries = [*one.entries, entry][-self.ring :]

    def dump(self, rank: int) -> Table:
        """Return what the recorder of a rank holds."""
        one = self.ranks[rank]
        words = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
        return {
            "version": "2.9",
            "pg_config": {
                name: {
                    "name": name,
                    "desc": "default_pg" if name == DEFAULT_GROUP else name,
                    "ranks": f"[{', '.join(map(str, members))}]",
                }
                for name, members in self.groups.items()
                if rank in members
            },
            "comm_lib_version": "2.26.2",
            "pg_status": {
                str(one.ids[name]): dict(zip(words, status, strict=True))
                for name, status in one.status.items()
            },
            "entries": list(one.entries),
        }

    def pickled(self, rank: int) -> bytes:
        """Return the dump of a rank as PyTorch pickles it."""
        return torch_pickle(self.dump(rank))


def as_json(dump: Table) -> bytes:
    """Return a dump as PyTorch's JSON: ``pg_status`` in texts, no frames, 0 for no time."""
    status = dump["pg_status"]
    entries = dump["entries"]
    assert isinstance(status, dict)
    assert isinstance(entries, list)
    told = {
        **dump,
        "pg_status": {
            name: {word: str(number) for word, number in one.items()}
            for name, one in status.items()
        },
        "entries": [
            {key: 0 if value is None else value for key, value in entry.items() if key != "frames"}
            for entry in entries
        ],
    }
    return json.dumps(told).encode()


def torch_pickle(value: object) -> bytes:
    """Return a value in the opcodes that PyTorch's own pickler writes (protocol 2).

    Every text is remembered at its first use, small numbers take 1, 2 or 4 bytes and others 8,
    and every list and table has a mark, empty ones too.
    """
    writer = _TorchPickler()
    writer.push(value)
    return b"\x80\x02" + bytes(writer.out) + b"."


class _TorchPickler:
    def __init__(self) -> None:
        self.out = bytearray()
        self.texts: dict[str, int] = {}

    def push(self, value: object) -> None:
        match value:
            case None:
                self.out += b"N"
            case bool():
                self.out += b"\x88" if value else b"\x89"
            case int():
                self._number(value)
            case str():
                self._text(value)
            case tuple():
                self._tuple(value)
            case list():
                self._all(b"](", value, b"e")
            case dict():
                self._all(b"}(", [one for item in value.items() for one in item], b"u")
            case _:
                raise TypeError(f"{type(value).__name__} stands in no dump")

    def _all(self, start: bytes, values: Sequence[object], end: bytes) -> None:
        self.out += start
        for one in values:
            self.push(one)
        self.out += end

    def _tuple(self, value: tuple[object, ...]) -> None:
        for one in value:
            self.push(one)
        self.out += {1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(value)]

    def _number(self, value: int) -> None:
        if 0 <= value < 1 << 8:
            self.out += b"K" + struct.pack("<B", value)
        elif 0 <= value < 1 << 16:
            self.out += b"M" + struct.pack("<H", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def _text(self, value: str) -> None:
        known = self.texts.get(value)
        if known is not None:
            short = known < 1 << 8
            self.out += (
                b"h" + struct.pack("<B", known) if short else b"j" + struct.pack("<I", known)
            )
            return
        data = value.encode()
        number = self.texts[value] = len(self.texts)
        self.out += b"X" + struct.pack("<I", len(data)) + data
        short = number < 1 << 8
        self.out += b"q" + struct.pack("<B", number) if short else b"r" + struct.pack("<I", number)
