"""The words of a diagnosis: each thing that it holds as text for a person."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from relight.diagnosis.sifting import HARMLESS
from relight.engine.certainties import PLACE_UNKNOWN
from relight.model.advice import Decision
from relight.model.findings import Domain, End
from relight.model.hostlists import compress
from relight.model.instants import seconds, show_span, to_iso
from relight.model.progress import StepUnit
from relight.model.reports import Happened, Report, RootLine, SetAsideLine
from relight.sources.archives.diagnosing import Diagnosed
from relight.sources.archives.opening import STANDARD_INPUT

MOST_SET_ASIDE = 6
"""Kinds of line that are shown as set aside; the others are counted."""
MOST_TERMS = 4
MOST_SUSPECTS = 4

_LONGEST_LIST = 200
_LONG_STEP = 120
_ZONE = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d+)? ?(?:Z\b|UTC|[+-]\d\d:?\d\d)")
"""A line that prints no zone has its time shown as it is printed."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_THOUSAND = 1000
_COUNTED = frozenset({StepUnit.STEP, StepUnit.ITERATION, StepUnit.BATCH, StepUnit.UPDATE})


def headline(report: Report) -> tuple[str, str]:
    """Return one word for what happened, and the sentence of the verdict."""
    sentence = report.sentence[:1].upper() + report.sentence[1:]
    match report.kind:
        case Happened.CRASH:
            return "Crash", sentence
        case Happened.HANG:
            return "Hang", sentence
        case Happened.STRAGGLER:
            return "Straggler", sentence
        case Happened.NONE:
            return _ended(report), sentence
    assert_never(report.kind)


def _ended(report: Report) -> str:
    match report.ending:
        case End.FINISHED:
            return "Finished"
        case End.CANCELLED:
            return "Cancelled"
        case End.PREEMPTED:
            return "Preempted"
        case End.TIMEOUT:
            return "Out of time"
        case None:
            is_known = report.domain is not Domain.UNKNOWN
            return "Nothing wrong" if is_known else "Unknown"
    assert_never(report.ending)


def confidence(report: Report) -> str:
    """Return the confidence and in words what weighed most in it; --json has the weights."""
    heaviest = sorted(report.terms, key=lambda term: -abs(term.weight))[:MOST_TERMS]
    terms = "; ".join(term.what for term in heaviest)
    return f"{report.confidence:.0%}" + (f": {terms}" if terms else "")


def where(report: Report) -> str:
    """Return the nodes and ranks at which the cause lies, empty where it lies nowhere."""
    told = []
    if report.nodes:
        told.append(_nodes(report.nodes))
    if report.ranks:
        word = "rank" if len(report.ranks) == 1 else "ranks"
        told.append(f"{word} {_short(ranges(report.ranks))}")
    if any(term.what == PLACE_UNKNOWN for term in report.terms):
        told.append("the node is not known: --nodes with --tasks-per-node tells")
    return ", ".join(told)


def advice(report: Report) -> str:
    """Return what relight would do, and why."""
    return f"{_decision(report)}. {report.why}".strip()


def _decision(report: Report) -> str:
    match report.decision:
        case Decision.RESTART:
            return "Restart it"
        case Decision.RESTART_EXCLUDING_NODE:
            nodes = report.exclude or report.nodes
            return f"Restart it without {_nodes(nodes)}" if nodes else "Restart it elsewhere"
        case Decision.STOP:
            return "Stop"
        case Decision.HOLD:
            return "Hold"
        case Decision.NONE:
            return "Do nothing"
    assert_never(report.decision)


def place(root: RootLine) -> str:
    """Return where the root line stands, and by whom and when it was written."""
    file = "standard input" if root.file == STANDARD_INPUT else root.file
    # What a flight recorder's dumps tell stands in no line.
    told = [f"{file}, line {root.line}" if root.line else file]
    if root.rank is not None:
        told.append(f"rank {root.rank}")
    if root.node:
        told.append(root.node)
    if root.at is not None:
        zone = " UTC" if _ZONE.search(root.text) else ""
        told.append(to_iso(root.at)[:19].replace("T", " ") + zone)
    return ", ".join(told)


def set_aside(lines: Iterable[SetAsideLine]) -> Iterator[tuple[str, str, str]]:
    """Yield how often, what and why was set aside, and the first such line; one row a kind.

    Harmless lines are counted in one row, after the symptoms.
    """
    counts: Counter[tuple[str, str]] = Counter()
    firsts: dict[tuple[str, str], SetAsideLine] = {}
    harmless: Counter[str] = Counter()
    for line in lines:
        if line.why == HARMLESS:
            harmless[line.rule] += line.count
            continue
        counts[line.rule, line.why] += line.count
        firsts.setdefault((line.rule, line.why), line)
    for kind, first in list(firsts.items())[:MOST_SET_ASIDE]:
        said = f"{kind[0]}, line {first.line}: {kind[1].rstrip('.')}"
        yield _times(counts[kind]), said, first.text.strip()
    more = len(firsts) - MOST_SET_ASIDE
    if more > 0:
        left = sum(counts[kind] for kind in list(firsts)[MOST_SET_ASIDE:])
        yield _times(left), f"{more} more kind{'s' if more > 1 else ''}; --json lists all", ""
    if harmless:
        yield _times(harmless.total()), f"harmless: {_few(harmless)}", ""


def _few(counted: Counter[str]) -> str:
    names = [name for name, _ in counted.most_common(MOST_SET_ASIDE)]
    more = len(counted) - len(names)
    return ", ".join(names) + (f" and {more} more kinds" if more > 0 else "")


def suspects(report: Report) -> Iterator[str]:
    """Yield the nodes that may be at fault, with their share of the blame and why."""
    for one in report.suspects[:MOST_SUSPECTS]:
        yield f"{one.node}, {_share(report, one.share)}: {one.why}"


def _share(report: Report, share: float) -> str:
    """Return the share of the blame in words: how sure the verdict is stands beside it."""
    if len(report.suspects) == 1:
        return f"the only suspect (the verdict is {report.confidence:.0%} sure)"
    return f"{share:.0%} of the blame"


def _times(count: int) -> str:
    return f"{count:,} \N{MULTIPLICATION SIGN}"


def how_far(report: Report) -> Iterator[str]:
    """Yield sentences on steps, checkpoints and runs, as far as they are known."""
    unit = (report.step_unit or StepUnit.STEP).value
    begun = report.progress.saving
    if report.last_step is not None:
        total = report.progress.total
        of = f" of {total:,}" if total else ""
        yield f"The last {unit} was {report.last_step:,}{of}{_each(report)}."
    if report.last_checkpoint_step is not None:
        kept = f"{unit} {report.last_checkpoint_step:,}"
        yield f"The last durable checkpoint is of {kept}{_lost(report)}."
    elif report.last_step is not None and report.kind is not Happened.NONE and begun is None:
        yield "No durable checkpoint was seen."
    if begun is not None and report.kind is not Happened.NONE:
        yield f"A checkpoint of {unit} {begun:,} was begun and not seen completed."
    if report.attempts > 1:
        yield f"There were {report.attempts} runs; the figures are those of the last."


def _each(report: Report) -> str:
    """Return the time of a step; of tokens and samples nobody wants it."""
    took = report.step_seconds
    if not took or report.step_unit not in _COUNTED:
        return ""
    shown = show_span(seconds(took)) if took >= _LONG_STEP else f"{took:.3g} s"
    return f", {shown} each"


def _lost(report: Report) -> str:
    last, kept = report.last_step, report.last_checkpoint_step
    if last is None or kept is None or last <= kept or report.step_unit not in _COUNTED:
        return ""
    if report.kind is Happened.NONE:
        return ""
    took = report.step_seconds
    time = f", {show_span(seconds((last - kept) * took))} of work" if took else ""
    return f": {last - kept:,} {report.step_unit.value}s are lost{time}"


def rest(one: Diagnosed) -> str:
    """Return what the diagnosis rests on."""
    files = f"{one.files:,} file{'' if one.files == 1 else 's'}"
    lines = f"{one.lines:,} line{'' if one.lines == 1 else 's'}"
    told = f"Read {files}, {lines}, {_size(one.size)}."
    if one.left_out:
        told += f" The logs of earlier attempts ({one.left_out:,} files) were left out."
    return told


def ranges(ranks: Sequence[int]) -> str:
    """Return ranks in short: ``0-3,7``."""
    found: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if found and rank == found[-1][1] + 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _nodes(nodes: Sequence[str]) -> str:
    return _short(compress(nodes))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LIST else text[:_LONGEST_LIST] + "…"


def _size(count: int) -> str:
    size = float(count)
    for unit in _UNITS[:-1]:
        if size < _THOUSAND:
            return f"{size:.3g} {unit}" if unit != _UNITS[0] else f"{count} {unit}"
        size /= _THOUSAND
    return f"{size:.3g} {_UNITS[-1]}"
