"""Generated training logs: the same size and share give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

MATCHING_EVERY = 1000
"""One line in so many holds a failure's words."""

_SPREAD = 2_654_435_761
"""Knuth's multiplier: spreads consecutive numbers over 32 bits."""

_BATCH = 200
"""Lines written at once; hundreds, so that the share of progress holds."""


def write_log(
    path: Path,
    *,
    size: int,
    matching: Sequence[str],
    progress: int,
    matching_every: int = MATCHING_EVERY,
) -> tuple[int, int]:
    """Write at least ``size`` bytes; return how many lines there are and how many should match.

    ``matching`` are lines that rules match, taken in turn, one in ``matching_every``; of the
    others ``progress`` in a hundred are Megatron's report of a step.
    """
    lines = planted = written = 0
    with path.open("wb") as file:
        while written < size:
            numbers = range(lines, lines + _BATCH)
            batch = [_line(number, matching, progress, matching_every) for number in numbers]
            planted += sum(1 for number in numbers if _is_planted(number, matching_every))
            lines += len(batch)
            written += file.write(("\n".join(batch) + "\n").encode())
    return lines, planted


def _line(number: int, matching: Sequence[str], progress: int, matching_every: int) -> str:
    if _is_planted(number, matching_every):
        return matching[number // matching_every % len(matching)]
    if _scattered(number) < progress:
        before = sum(1 for other in range(number % 100) if _scattered(other) < progress)
        return _step(number // 100 * progress + before + 1)
    return _chatter(number)


def _is_planted(number: int, matching_every: int) -> bool:
    return number % matching_every == matching_every - 1


def _scattered(number: int) -> int:
    """Return each of the numbers below a hundred once in a hundred, neighbours far apart."""
    return number * 37 % 100


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
