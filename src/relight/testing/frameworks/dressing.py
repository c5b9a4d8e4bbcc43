"""What stands around the lines of a log: who launched it, and on what it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from relight.model.records import Record


class Prefix(StrEnum):
    """What launchers and log shippers write in front of each line."""

    NONE = "none"
    SRUN = "srun"
    TORCHRUN = "torchrun"
    RANK = "rank"
    RAY = "ray"
    HOST = "host"
    SHIPPED = "shipped"
    MPIRUN = "mpirun"


_PREFIXES = {
    Prefix.NONE: "",
    Prefix.SRUN: "  0: ",
    Prefix.TORCHRUN: "[default0]:",
    Prefix.RANK: "[rank0]:",
    Prefix.RAY: "\x1b[36m(TaskRunner pid=54569)\x1b[0m ",
    Prefix.HOST: "node-001: ",
    Prefix.SHIPPED: "2026-01-31T10:00:00.123456789Z ",
    Prefix.MPIRUN: "[1,0]<stdout>:",
}

NOISE = (
    "NCCL version 2.21.5+cuda12.4",
    "node-001:4211:4711 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)",
    "node-001:4211:4711 [0] NCCL INFO Connected all rings",
    (
        "/usr/lib/python3/dist-packages/torch/amp.py:12: FutureWarning: `autocast(args...)` is"
        " deprecated. Please use `autocast('cuda', args...)` instead."
    ),
    "UserWarning: The given buffer is not writable, and this backend does not support it.",
    "[W reducer.cpp:1251] Warning: find_unused_parameters=True was specified in DDP constructor",
    "Loading checkpoint shards: 100%|##########| 3/3 [00:05<00:00,  1.70s/it]",
    "Map (num_proc=8): 100%|##########| 5000/5000 [00:01<00:00, 4021.11 examples/s]",
    "number of errors so far: 0",
    "max_steps: 100000, save_steps: 500, eval_steps: 250",
)
"""Lines of healthy logs that look like failures or like progress and are neither."""


class Dress(Record, frozen=True, kw_only=True):
    """What is put around a log's lines; ``noise`` is a line of ``NOISE`` after so many."""

    prefix: Prefix = Prefix.NONE
    colours: bool = False
    crlf: bool = False
    noise: int = 0


def dressed(lines: Iterable[str], dress: Dress) -> Iterator[str]:
    """Yield the lines of a log as they stand in its file, line ends included."""
    end = "\r\n" if dress.crlf else "\n"
    prefix = _PREFIXES[dress.prefix]
    for number, line in enumerate(lines):
        shown = f"\x1b[32m{line}\x1b[0m" if dress.colours else line
        yield prefix + shown + end
        if dress.noise and number % dress.noise == dress.noise - 1:
            yield prefix + NOISE[number // dress.noise % len(NOISE)] + end
