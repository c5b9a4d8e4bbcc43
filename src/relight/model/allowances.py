"""How long an attempt may go without a completed step, and what is told as slow or as a spike."""

from __future__ import annotations

from relight.model.instants import Span, seconds
from relight.model.records import Record


class Allowances(Record, frozen=True, kw_only=True):
    """What detectors of silence, slowness and numeric trouble allow; a policy fills it.

    ``floor`` is the least limit, ``steps`` how many of the usual steps may be missing. The pauses
    are the most that is waited for before the job's own are known: ``startup`` from the start to
    the first steps, ``checkpoint`` while one is written, ``evaluation`` while one runs.
    ``slow_percent`` is by how much the throughput must have dropped, and ``slow_for`` for how
    long, before it is told. Sources: PyTorch (watchdog 600 s), NVRx
    (factor 5 after 5 warm-up steps) and DLRover (15 minutes for a checkpoint).
    """

    floor: Span = seconds(120)
    steps: int = 5
    startup: Span = seconds(1_800)
    checkpoint: Span = seconds(900)
    evaluation: Span = seconds(1_800)
    slow_percent: int = 15
    slow_for: Span = seconds(300)
