"""Generated training logs: the same size and share give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

MATCHING_EVERY = 1000
"""One line in so many holds a failure's words."""

_SPREAD = 2_654_435_761
"""Knuth's multiplier: spreads consecutive numbers over 32 bits."""

_BATCH = 20_000
"""Lines written at once."""


def write_log(
    path: Path, *, size: int, matching: Sequence[str], progress_every: int
) -> tuple[int, int]:
    """Write at least ``size`` bytes; return how many lines there are and how many should match.

    ``matching`` are lines that rules match, taken in turn; one line in ``progress_every`` is
    Megatron's report of a step.
    """
    lines = planted = written = 0
    with path.open("wb") as file:
        while written < size:
            batch = list(_lines(lines, matching, progress_every))
            planted += sum(1 for number in range(lines, lines + _BATCH) if _is_planted(number))
            lines += len(batch)
            written += file.write(("\n".join(batch) + "\n").encode())
    return lines, planted


def _lines(first: int, matching: Sequence[str], progress_every: int) -> Iterator[str]:
    for number in range(first, first + _BATCH):
        if _is_planted(number):
            yield matching[number // MATCHING_EVERY % len(matching)]
        elif number % progress_every == 0:
            yield _step(number // progress_every + 1)
        else:
            yield _chatter(number)


def _is_planted(number: int) -> bool:
    return number % MATCHING_EVERY == MATCHING_EVERY - 1


def _clock(number: int) -> str:
    seconds = number // 50
    return f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _step(step: int) -> str:
    wobble = step * _SPREAD % 1000
    return (
        f" [2026-01-31 {_clock(step * 500)}.{wobble:03d}417] iteration {step:8d}/ 5000000 | "
        f"consumed samples: {step * 1024:12d} | elapsed time per iteration (ms): 10{wobble:03d}.4 "
        f"| throughput per GPU (TFLOP/s/GPU): 4{wobble % 100:02d}.1 | learning rate: 2.997E-04 | "
        f"global batch size:  1024 | lm loss: 2.{wobble:03d}117E+00 | loss scale: 1.0 | "
        f"grad norm: 0.{wobble:03d} | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |"
    )


def _chatter(number: int) -> str:
    spread = number * _SPREAD & 0xFFFFFFFF
    rank, pid, value = spread % 256, 40_000 + spread % 9973, spread >> 8
    host, device = f"gpu-node-{rank // 8:03d}", rank % 8
    match spread >> 29:
        case 0 | 1:
            text = (
                f"{host}:{pid}:{pid + 512} [{device}] NCCL INFO Channel {value % 32:02d}/0 : "
                f"{rank}[{device}] -> {(rank + 8) % 256}[{device}] [send] via NET/IB/{device}"
            )
        case 2:
            text = (
                f"{host}:{pid}:{pid + 512} [{device}] NCCL INFO Connected all rings, use ring "
                f"PXN 0 GDR 1, {value % 24} coll channels, 0 collnet channels, 32 p2p channels"
            )
        case 3:
            text = (
                f"2026-01-31 {_clock(number)},{value % 1000:03d} - megatron.core.datasets."
                f"gpt_dataset - INFO - > loading document index from /data/c4/shard_"
                f"{value % 1024:05d}.npy took 0.{value % 997:03d} seconds"
            )
        case 4:
            text = (
                f"    forward-backward ...............................: "
                f"({value % 9000 + 1000}.{value % 100:02d}, {value % 9000 + 1010}.{value % 89:02d})"
            )
        case 5:
            text = (
                f"INFO 2026-01-31 {_clock(number)} [loader.py:{value % 400}] prefetched batch "
                f"{value % 65536} from worker {value % 16}, queue depth {value % 77}"
            )
        case 6:
            text = json.dumps(
                {"level": "info", "host": host, "msg": "telemetry flushed", "points": value % 8192}
            )
        case _:
            text = (
                f"[2026-01-31 {_clock(number)},{value % 1000:03d}] [INFO] [logging.py:107:"
                f"log_dist] [Rank {rank}] time (ms) | fwd: {value % 700}.31 | bwd: "
                f"{value % 900}.57 | allreduce: {value % 90}.02"
            )
    return text if number % 5 else f"{rank:3d}: {text}"
