"""What a framework's log is made of: templates in the order in which they are written."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.model.records import Record


class Framework(Record, frozen=True, kw_only=True):
    """Templates of one framework's lines, filled in with the fields of ``writing.Moment``.

    ``head`` and ``tail`` stand once, ``step`` for every report, ``saved`` after each
    checkpoint and ``evaluated`` after each evaluation. The counter begins at ``first``, and a
    report comes each ``every`` steps. ``per_epoch`` is set where the counter starts again each
    epoch; the first epoch has the number ``epoch_from``. ``is_bar`` says that reports overwrite
    each other in one line. ``shows_epoch_steps`` says that the step shown last is the one
    inside the epoch. ``tells_time`` is False where neither a time of a step nor a clock is
    printed.
    """

    name: str
    step: tuple[str, ...]
    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()
    evaluated: tuple[str, ...] = ()
    unit: StepUnit = StepUnit.STEP
    first: int = 1
    every: int = 1
    per_epoch: int = 0
    epoch_from: int = 0
    is_bar: bool = False
    shows_epoch_steps: bool = False
    tells_time: bool = True
    finishes: bool = False
    """The tail says that training is over."""
    stands_at_nought: bool = False
    """The bar is shown before the first step."""
    samples_a_step: int = 1
    """What the counter gains by one step: more than one where it counts samples or tokens."""
