"""What an alarm is worth against the truth of a life."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from accuracy.lives import Life
from accuracy.living import Pause, longest
from accuracy.traits import Told
from accuracy.troubles import HANGS, NUMERIC, SLOWDOWNS, Trouble
from accuracy.watching import ALLOWANCES, Alarm
from accuracy.written import BEGUN
from relight.model.findings import Kind
from relight.model.instants import between, in_seconds
from relight.model.pulses import Beat
from relight.model.records import Record

_SLACK = 70.0
"""Seconds by which a reader may hear late that steps go on."""
_LEAST_REPORTS = 20
_LEAST_SECONDS = 600.0
_ANNOUNCED = (Told.BOTH, Told.BEGIN, Told.COUNTED)
_NORMAL = {
    Trouble.NOT_A_NUMBER: "loss-not-a-number",
    Trouble.SPIKE: "loss-spike",
    Trouble.OVERFLOWS: "loss-scale-floor",
}


class Worth(StrEnum):
    """What an alarm is where nothing is wrong."""

    FALSE = "false"
    BRIEF = "for less than policy asks for"
    UNTOLD = "first pause that the log does not announce"
    RECORD = "pause that is not announced, longer than each of its kind before"
    LONGER = "start or announced pause that is longer than policy allows"


class Outcome(Record, frozen=True, kw_only=True):
    """What became of one life.

    ``hours`` are those without trouble; ``alarms`` what was told in them. ``found`` is the alarm
    that told the trouble; the rest is true at that moment. ``is_known`` says that the job had
    run long enough before for its ways to be learned. Times are in seconds, ``lost`` in minutes.
    """

    seed: int
    trouble: Trouble
    drop: float
    report: float
    hours: float
    alarms: tuple[tuple[Worth, Alarm], ...] = ()
    untold: int = 0
    """Pauses of their kind that are the first and not announced, and longer than the floor."""
    found: Alarm | None = None
    delay: float = 0.0
    is_known: bool = True
    bound: float = 0.0
    """The limit that is aimed at: the floor, or five steps and the longest pause seen."""
    bound_by_reports: float = 0.0
    """The same with five reports in place of five steps."""
    lost: float = 0.0


def outcome(life: Life, alarms: Sequence[Alarm]) -> Outcome:
    """Return what became of a life that raised ``alarms``."""
    kind, wrong = life.traits, life.injected
    is_well = wrong.trouble is Trouble.NONE
    until = life.watched if is_well else wrong.at
    report = kind.step * kind.every * kind.buffered
    seen = [one for one in life.pauses if one.ended <= until and one.kind != "start-up"]
    found = None if is_well else _found(life, alarms)
    healthy = [one for one in alarms if _is_untroubled(one, life)]
    return Outcome(
        seed=life.seed,
        trouble=wrong.trouble,
        drop=wrong.drop,
        report=report,
        hours=until / 3600,
        alarms=tuple((_worth(one, life), one) for one in healthy),
        untold=sum(_is_untold(one, life) and one.ended - one.began > _floor() for one in seen),
        found=found,
        delay=max(found.at - wrong.reached, 0.0) if found is not None else 0.0,
        is_known=_is_known(life),
        bound=max(_floor(), 5 * kind.step + longest(seen)),
        bound_by_reports=max(_floor(), 5 * report + longest(seen)),
        lost=wrong.minutes_lost(found.at) if found is not None else 0.0,
    )


def _floor() -> float:
    return in_seconds(ALLOWANCES.floor)


def _is_untroubled(alarm: Alarm, life: Life) -> bool:
    """Tell whether nothing was wrong of the kind that an alarm tells of."""
    wrong = life.injected
    if alarm.at < wrong.at or wrong.trouble is Trouble.NONE:
        return True
    if wrong.trouble in HANGS or wrong.trouble in NUMERIC:
        return False
    return alarm.kind is not Kind.SLOW


def _found(life: Life, alarms: Sequence[Alarm]) -> Alarm | None:
    wrong = life.injected
    for alarm in alarms:
        if alarm.at < wrong.at:
            if alarm.kind is Kind.HANG and wrong.trouble in HANGS and _goes_on(life, alarm):
                return alarm
            continue
        if wrong.trouble in HANGS and alarm.kind is Kind.HANG:
            return alarm
        if wrong.trouble in SLOWDOWNS and alarm.kind is Kind.SLOW:
            return alarm
        if alarm.rule == _NORMAL.get(wrong.trouble):
            return alarm
    return None


def _goes_on(life: Life, alarm: Alarm) -> bool:
    """Tell whether no step came between an alarm and where the life stopped."""
    return not any(
        alarm.at < in_seconds(between(BEGUN, one.heard_at)) and one.what is Beat.STEP
        for one in reversed(life.pulses)
    )


def _is_known(life: Life) -> bool:
    since = life.injected.at - life.first_step
    reports = since / (life.traits.step * life.traits.every)
    return since >= _LEAST_SECONDS and reports >= _LEAST_REPORTS


def _worth(alarm: Alarm, life: Life) -> Worth:
    if alarm.kind is Kind.SLOW:
        return Worth.BRIEF if _is_brief(alarm, life) else Worth.FALSE
    if alarm.kind is not Kind.HANG:
        return Worth.FALSE
    kind = life.traits
    slack = _SLACK + 2 * kind.step * kind.every * kind.buffered
    around = [one for one in life.pauses if one.began - slack <= alarm.at <= one.ended + slack]
    if any(_is_untold(one, life) for one in around):
        return Worth.UNTOLD
    if any(_is_record(one, life) for one in around):
        return Worth.RECORD
    if alarm.at < life.first_step or any(_is_longer(one) for one in around):
        return Worth.LONGER
    return Worth.FALSE


def _is_brief(alarm: Alarm, life: Life) -> bool:
    """Tell whether steps were slow a moment ago, though not for as long as policy wants."""
    lately = in_seconds(ALLOWANCES.slow_for) + _SLACK + life.traits.step * life.traits.every
    return any(one.began <= alarm.at <= one.ended + lately for one in life.bursts)


def _is_untold(pause: Pause, life: Life) -> bool:
    """Tell whether a log cannot have shown that such a pause is usual, nor that it began."""
    if _is_announced(pause, life):
        return False
    return next(one for one in life.pauses if one.kind == pause.kind) is pause


def _is_record(pause: Pause, life: Life) -> bool:
    """Tell whether no pause of its kind was as long before.

    Whoever allows five steps and the longest such pause seen, and no more, must tell it.
    """
    if _is_announced(pause, life):
        return False
    before = [one for one in life.pauses if one.ended <= pause.began and one.kind == pause.kind]
    return pause.ended - pause.began > longest(before)


def _is_announced(pause: Pause, life: Life) -> bool:
    """Tell whether a reader hears that a pause began; not while the line waits in a buffer."""
    is_heard = pause.told in _ANNOUNCED and life.traits.buffered == 1
    return is_heard or pause.kind in ("start-up", "compile")


def _is_longer(pause: Pause) -> bool:
    if pause.told not in _ANNOUNCED:
        return False
    allowed = ALLOWANCES.checkpoint if pause.kind == "checkpoint" else ALLOWANCES.evaluation
    return pause.ended - pause.began > in_seconds(allowed)
