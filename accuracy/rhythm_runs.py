"""``python -m accuracy --rhythms``: replay real logs, let generated lives be lived, print both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from accuracy.answers import ears
from accuracy.judging import Outcome
from accuracy.replays import Replayed, log_of, replayed, runs_of
from accuracy.rhythm_tables import (
    false_table,
    hang_table,
    misses,
    numeric_table,
    replay_table,
    slow_table,
)
from accuracy.rhythms import HOURS, cores, live_all, tasks

LIVES = 600
"""Lives of the default size: with two cores the whole takes less than three minutes."""
_SHOWN = 12


class Size(NamedTuple):
    """How much is measured: lives, of about so many hours, on so many cores (0: all)."""

    lives: int = LIVES
    hours: float = HOURS
    seed: int = 1
    workers: int = 0


def run(folders: Sequence[Path], size: Size, *, as_json: bool) -> None:
    """Measure and print.

    Folders without ``timelines/index.jsonl`` hold no long runs.

    Raises:
        LabelError: an index cannot be read, or a log is missing.

    """
    replays = _replays(folders)
    workers = size.workers or cores()
    outcomes = live_all(tasks(size.lives, size.seed, size.hours), workers)
    if as_json:
        whole = {"replays": replays, "lives": outcomes, "size": size}
        sys.stdout.write(msgspec.json.encode(whole).decode() + "\n")
    else:
        sys.stdout.write(_page(replays, outcomes, size.seed, workers) + "\n")


def _replays(folders: Sequence[Path]) -> list[Replayed]:
    listening = ears()
    return [
        replayed(one, log_of(folder, one).read_bytes(), listening)
        for folder in folders
        for one in runs_of(folder)
        if one.is_whole
    ]


def _page(replays: Sequence[Replayed], outcomes: Sequence[Outcome], seed: int, workers: int) -> str:
    head = (
        f"Rhythms: {len(replays)} logs replayed; {len(outcomes):,} lives of seed {seed} on "
        f"{workers} cores."
    )
    parts = [
        head,
        replay_table(replays) if replays else "No timelines of real logs lie beside the checkout.",
        misses(outcomes, _SHOWN),
        false_table(outcomes),
        hang_table(outcomes),
        slow_table(outcomes),
        numeric_table(outcomes),
    ]
    return "\n\n".join(part for part in parts if part)
