"""How far an attempt has come, in completed steps and durable checkpoints (law 8)."""

from __future__ import annotations

from enum import StrEnum

from relight.model.instants import Instant
from relight.model.records import Record


class StepUnit(StrEnum):
    """What the counter counts."""

    STEP = "step"
    ITERATION = "iteration"
    BATCH = "batch"
    UPDATE = "update"
    SAMPLE = "sample"
    TOKEN = "token"  # noqa: S105 - a unit of text
    EPOCH = "epoch"


class Progress(Record, frozen=True, kw_only=True):
    """How far an attempt has come; None where its log has not told.

    ``last_step`` is the step told last, as printed: below ``best_step`` after a restart in
    place, and where the counter starts again each epoch, for ``first_step`` and ``best_step``
    count on over the epochs. Only where a log holds a run from its first epoch on over more
    than one does ``last_step`` count on too. ``total`` is that of the whole run, as printed. A
    bar that stands at nought tells a ``last_step`` of 0 and no ``best_step``; it is the
    ``first_step`` when the next one shown is 1. The instants are None where the lines print
    none, unless whoever read them alive says when it did. ``best_checkpoint`` is
    the step of the newest durable checkpoint, ``resumed_from`` that of the one it began from, 0
    when it began from the start. ``step_seconds`` is the usual time of one step,
    ``report_seconds`` the usual time between two progress lines, which may tell of many steps.
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
    unit: StepUnit = StepUnit.STEP
    total: int | None = None
    epoch: int | None = None
    throughput: str = ""
    """As printed, with its unit: ``412.3 TFLOP/s/GPU``."""
    loss: float | None = None
    grad_norm: float | None = None
    skipped: int = 0
    """Steps whose update was skipped: overflow, exhausted loss scale."""
    nan_losses: int = 0
    """Lines that told a loss or gradient norm that is no number or infinite."""
    last_evaluation_at_step: int | None = None
    saving: int | None = None
    """The step of a checkpoint that was begun and not seen completed."""
    is_finished: bool = False
    """The framework itself says that training is over."""
