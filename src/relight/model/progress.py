"""How far an attempt has come, in completed steps and durable checkpoints (law 8)."""

from __future__ import annotations

from relight.model.instants import Instant
from relight.model.records import Record


class Progress(Record, frozen=True, kw_only=True):
    """How far an attempt has come; None where its log has not told.

    ``last_step`` is the step told last, which is below ``best_step`` after a restart in
    place. ``best_checkpoint`` is the step of the newest durable checkpoint, ``resumed_from``
    that of the one it began from, 0 when it began from the start. ``step_seconds`` is the
    time of one step, ``report_seconds`` the usual time between two progress lines, which may
    tell of many steps.
    """

    best_step: int | None = None
    last_step: int | None = None
    best_checkpoint: int | None = None
    resumed_from: int | None = None
    first_step: int | None = None
    first_step_at: Instant | None = None
    last_step_at: Instant | None = None
    step_seconds: float | None = None
    report_seconds: float | None = None
