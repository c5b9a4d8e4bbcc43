"""Pulses: the moments at which an attempt's log shows that work goes on, in their order."""

from __future__ import annotations

from enum import StrEnum

from relight.model.findings import Place
from relight.model.instants import Instant
from relight.model.records import Record


class Beat(StrEnum):
    """What a pulse tells.

    Only ``step`` and ``saved`` are progress (law 8); ``evaluated`` and ``set_up`` extend patience,
    ``saving`` and ``evaluating`` say what is being waited for, ``moved`` that another counter than
    the believed one went on (an evaluation's bar, shards being read).
    """

    STEP = "step"
    SAVING = "saving"
    SAVED = "saved"
    EVALUATING = "evaluating"
    EVALUATED = "evaluated"
    SET_UP = "set_up"
    RESUMED = "resumed"
    MOVED = "moved"
    SKIPPED = "skipped"
    FINISHED = "finished"


class Pulse(Record, frozen=True, kw_only=True):
    """One such moment.

    ``at`` is the instant that the line prints, None when it prints none; ``heard_at`` when it was
    read. ``step`` counts completed steps over epochs. ``seconds`` is the time of one step as the
    line prints it, ``data_seconds`` the part of it that was spent waiting for data. ``loss`` and
    ``grad_norm`` may be NaN or infinite; ``scale`` is the loss scale.
    """

    what: Beat
    heard_at: Instant
    at: Instant | None = None
    step: int | None = None
    seconds: float | None = None
    data_seconds: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    scale: float | None = None
    total: int | None = None
    epoch: int | None = None
    place: Place | None = None
    text: str = ""
