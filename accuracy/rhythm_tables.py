"""What was measured of hangs and slowdowns, as tables for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from accuracy.judging import Outcome, Worth
from accuracy.replays import Replayed
from accuracy.rhythms import false_alarms, of, quantile, upper_bound
from accuracy.troubles import HANGS, NUMERIC, SLOWDOWNS, Trouble
from relight.model.findings import Kind
from relight.perception.rhythm.states import Phase

WATCHDOG = 600
"""Seconds after which PyTorch's watchdog of NCCL gives up, by default."""
WITHIN = 600.0
"""Seconds within which a slowdown is to be found."""
_READ = 1.05
"""A pause is read from lines that are heard a poll later and hold steps of their own."""
_SMALL, _LARGE = 0.2, 0.3
_OFTEN = 60.0
"""Seconds between reports up to which a job reports often."""


def replay_table(replays: Sequence[Replayed]) -> str:
    """Return what replayed logs raised: by kind of log, and every alarm."""
    lines = ["| real logs | how many | hours | alarms | rate for 1,000 h, 95 % below |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for kind in sorted({one.run.kind for one in replays}):
        these = [one for one in replays if one.run.kind == kind and one.hours]
        hours = sum(one.hours for one in these)
        alarms = sum(len(one.alarms) for one in these)
        bound = f"{upper_bound(alarms, hours):.0f}" if kind == "healthy" and hours else ""
        lines.append(f"| {kind} | {len(these)} | {hours:.1f} | {alarms} | {bound} |")
    untimed = [one.run.id for one in replays if not one.hours]
    if untimed:
        lines += ["", f"Not replayed, for they tell no time: {', '.join(untimed)}."]
    for one in replays:
        for alarm in one.alarms:
            said = f"{one.run.kind} {one.run.id}, at {alarm.at:,.0f} s: {alarm.sentence}"
            lines += ["", said]
    return "\n".join(lines)


def false_table(outcomes: Sequence[Outcome]) -> str:
    """Return how often healthy times of generated lives raised an alarm."""
    hours = sum(one.hours for one in outcomes)
    lines = ["| alarms where nothing is wrong | count | per 1,000 h | 95 % below |"]
    lines.append("| --- | ---: | ---: | ---: |")
    for kind, worth in (
        (Kind.HANG, Worth.FALSE),
        (Kind.HANG, Worth.UNTOLD),
        (Kind.HANG, Worth.RECORD),
        (Kind.HANG, Worth.LONGER),
        (Kind.SLOW, Worth.FALSE),
        (Kind.SLOW, Worth.BRIEF),
        (Kind.NUMERIC, Worth.FALSE),
    ):
        count = false_alarms(outcomes, kind, worth)
        rate = f"{1000 * count / hours:.2f}" if hours else ""
        bound = f"{upper_bound(count, hours):.2f}"
        lines.append(f"| {kind.value}: {worth.value} | {count} | {rate} | {bound} |")
    untold = sum(one.untold for one in outcomes)
    told = false_alarms(outcomes, Kind.HANG, Worth.UNTOLD)
    said = (
        f"{hours:,.0f} hours of {len(outcomes):,} lives without trouble; {untold} pauses in them "
        f"were the first of their kind, longer than the floor, and not announced: {told} alarms."
    )
    return "\n".join([*lines, "", said])


def hang_table(outcomes: Sequence[Outcome]) -> str:
    """Return how many hangs were found and how soon."""
    heads = (
        "hang", "lives", "found %", "delay median s", "p95 s", "beyond limit median s", "p95 s",
        "steady limit in bound %", "by reports %", f"sooner than {WATCHDOG} s %",
    )  # fmt: skip
    rows = [_hang(one.value, of(outcomes, (one,))) for one in HANGS]
    rows.append(_hang("all", of(outcomes, HANGS)))
    return _table(heads, rows)


def _hang(name: str, these: Sequence[Outcome]) -> list[str]:
    found = [(one, one.found) for one in these if one.found is not None]
    delays = [one.delay for one, _ in found]
    beyond = [alarm.beyond for _, alarm in found]
    steady = [(one, alarm) for one, alarm in found if alarm.phase == Phase.STEADY]
    within = [one for one, alarm in steady if alarm.limit <= _READ * one.bound]
    by_reports = [one for one, alarm in steady if alarm.limit <= _READ * one.bound_by_reports]
    return [
        name,
        str(len(these)),
        _percent(len(found), len(these)),
        f"{quantile(delays, 0.5):.0f}",
        f"{quantile(delays, 0.95):.0f}",
        f"{quantile(beyond, 0.5):.1f}",
        f"{quantile(beyond, 0.95):.1f}",
        _percent(len(within), len(steady)),
        _percent(len(by_reports), len(steady)),
        _percent(sum(delay < WATCHDOG for delay in delays), len(found)),
    ]


def slow_table(outcomes: Sequence[Outcome]) -> str:
    """Return how many slowdowns were found in time and how well the time lost was told."""
    heads = (
        "slowdown", "lives", "found %", "within 10 min %", "median s", "p95 s",
        "minutes lost by then", "told wrong by",
    )  # fmt: skip
    known = [one for one in of(outcomes, SLOWDOWNS) if one.is_known]
    often = [one for one in known if one.report <= _OFTEN]
    rows = [_slow(one.value, of(often, (one,))) for one in SLOWDOWNS]
    strong: list[tuple[str, Callable[[Outcome], bool]]] = [
        ("a drop of 15 to 20 %", lambda one: one.drop < _SMALL),
        ("of 20 to 30 %", lambda one: _SMALL <= one.drop < _LARGE),
        ("of 30 to 60 %", lambda one: one.drop >= _LARGE),
    ]
    rows += [_slow(name, [one for one in often if chosen(one)]) for name, chosen in strong]
    rows.append(_slow(f"reports each {_OFTEN:.0f} s or more often", often))
    rows.append(_slow("reports less often", [one for one in known if one.report > _OFTEN]))
    unknown = [one for one in of(outcomes, SLOWDOWNS) if not one.is_known]
    rows.append(_slow("in the first 10 minutes or 20 reports", unknown))
    return _table(heads, rows)


def _slow(name: str, these: Sequence[Outcome]) -> list[str]:
    found = [(one, one.found) for one in these if one.found is not None]
    delays = [one.delay for one, _ in found]
    off = [abs(alarm.minutes_lost - one.lost) for one, alarm in found]
    return [
        name,
        str(len(these)),
        _percent(len(found), len(these)),
        _percent(sum(delay <= WITHIN for delay in delays), len(these)),
        f"{quantile(delays, 0.5):.0f}",
        f"{quantile(delays, 0.95):.0f}",
        f"{quantile([one.lost for one, _ in found], 0.5):.1f}",
        f"{quantile(off, 0.5):.1f}",
    ]


def numeric_table(outcomes: Sequence[Outcome]) -> str:
    """Return how many numeric troubles were found and how soon."""
    heads = ("numeric trouble", "lives", "found %", "delay median s", "p95 s", "median reports")
    rows = [_numeric(one, of(outcomes, (one,))) for one in NUMERIC]
    return _table(heads, rows)


def _numeric(trouble: Trouble, these: Sequence[Outcome]) -> list[str]:
    found = [one for one in these if one.found is not None]
    delays = [one.delay for one in found]
    return [
        trouble.value,
        str(len(these)),
        _percent(len(found), len(these)),
        f"{quantile(delays, 0.5):.0f}",
        f"{quantile(delays, 0.95):.0f}",
        f"{quantile([one.delay / one.report for one in found], 0.5):.1f}",
    ]


def misses(outcomes: Iterable[Outcome], most: int) -> str:
    """Return the seeds of what went wrong, at most so many of each sort."""
    shown: Counter[str] = Counter()
    lines: list[str] = []
    for one in outcomes:
        for sort, line in _wrong(one):
            shown[sort] += 1
            if shown[sort] <= most:
                lines.append(f"{sort}: {line}")
    return "\n".join(sorted(lines))


def _wrong(one: Outcome) -> Iterable[tuple[str, str]]:
    for worth, alarm in one.alarms:
        yield (
            f"{alarm.kind.value} {worth.value}",
            f"seed {one.seed} ({one.trouble.value}), at {alarm.at:,.0f} s: {alarm.sentence}",
        )
    if one.trouble is not Trouble.NONE and one.found is None:
        yield "not found", f"seed {one.seed}, {one.trouble.value}, drop {one.drop:.2f}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
