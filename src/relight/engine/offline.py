"""Diagnosis of logs alone: what a report says when there is no scheduler to ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from relight.diagnosis import confidences
from relight.diagnosis.cascades import unheard
from relight.diagnosis.courses import Course
from relight.diagnosis.deaths import root_text
from relight.diagnosis.endings import Ending
from relight.diagnosis.sentences import completed, sentence_of
from relight.diagnosis.showing import (
    last_progress_line,
    root_line,
    set_aside_lines,
    shown_as_root,
)
from relight.diagnosis.sifting import is_mere_warning
from relight.diagnosis.verdicts import Located, locate
from relight.engine.certainties import with_what_is_known, without_certainty
from relight.engine.grounds import ground, requeued
from relight.engine.last_words import nodes_named_below, ranks_alike, saves_itself
from relight.engine.own_clocks import own_time
from relight.engine.readings import Reading, read
from relight.model.findings import Domain, End, Finding, Kind, Remedy, Role
from relight.model.instants import show_span
from relight.model.jobs import Allocation
from relight.model.progress import Progress
from relight.model.reports import (
    FileReport,
    Happened,
    Report,
    SetAsideLine,
    Shown,
)
from relight.model.verdicts import SetAside, Term
from relight.perception.likely import likely_lines
from relight.policy.lone import (
    Circumstances,
    Ruling,
    rule,
    rule_on_ending,
    rule_on_health,
    rule_on_silence,
    rule_on_unknown,
)

MOST_SET_ASIDE = 50
"""Kinds of lines that were set aside and are told."""
_TOLD_TO_STOP = frozenset({End.CANCELLED, End.PREEMPTED, End.TIMEOUT})


def examine(files: Sequence[FileReport], allocation: Allocation) -> Report:
    """Return the report on the logs of one job; ``allocation`` may be empty.

    Where the files hold several runs one after another, the last one is judged.
    """
    reading = read(files, allocation)
    located = locate(reading.sifted.live, reading.places, Ending(), reading.course)
    if located is not None and _is_failure(located, reading):
        return _failed(located, reading)
    ending = reading.sifted.ending
    word = reading.sifted.word_to_stop
    if word is not None and located is None:
        return _told_to_stop(reading, word)
    if ending is not None or reading.sifted.is_finished:
        if ending is not None and _waited_for(ending) and _hung_until(ending, reading.course):
            return _hung(reading)
        return _ended(reading, ending)
    if reading.death is not None:
        return _unknown(reading, reading.death)
    if reading.course.stood_still() or reading.spoke_on:
        return _hung(reading)
    return _well(reading)


def _is_failure(located: Located, reading: Reading) -> bool:
    """Tell whether what was found broke the run, beside how the run was ended."""
    root = located.root
    sifted = reading.sifted
    if root is None:
        return True
    ending = sifted.ending.ending if sifted.ending is not None else None
    if root.role is Role.SYMPTOM:
        if sifted.is_finished or (ending in _TOLD_TO_STOP and root.remedy is Remedy.REPORT):
            return False
        return ending is not End.PREEMPTED
    if root.kind is Kind.SLOW:
        return not sifted.is_finished
    if is_mere_warning(root):
        return reading.death is not None and not sifted.is_finished and ending is None
    return True


def _hung_until(ending: Finding, course: Course) -> bool:
    """Tell whether the steps had stopped long before the run was ended.

    By the time in front of the line that tells it, else by the time that it tells.
    """
    shown = own_time(root_text(ending))
    return course.stood_still(*shown) if shown is not None else course.stood_still(ending.at)


def _waited_for(ending: Finding) -> bool:
    """Tell whether a run that hung would have been ended like this, and not by itself."""
    is_forced = ending.ending in (End.CANCELLED, End.TIMEOUT)
    return is_forced and ending.family != "graceful_checkpoint_exit"


def _failed(located: Located, reading: Reading) -> Report:
    verdict = with_what_is_known(located, reading.places)
    root = located.root
    ruling = rule(
        verdict,
        Circumstances(
            role=root.role if root is not None else Role.ROOT,
            remedy=located.remedy,
            steps=_steps(reading),
            alike=_alike(root, reading),
            nodes=located.nodes,
        ),
    )
    report = _report(reading, without_certainty(ruling, verdict))
    ranks = ranks_alike(root, located.ranks, reading.files)
    said = verdict.sentence
    if root is not None and ranks != located.ranks:
        said = sentence_of(root, root.nodes, ranks)
    shown = root_line(root, reading.files)
    if root is not None and shown is not None and shown.after:
        said = completed(said, root, shown.after[0])
    return msgspec.structs.replace(
        report,
        kind=_happened(verdict.kind),
        domain=verdict.domain,
        cause=verdict.cause,
        family=verdict.family,
        confidence=verdict.confidence,
        sentence=_as_sentence(said),
        root=shown,
        ranks=ranks,
        nodes=located.nodes or nodes_named_below(root, located.ranks, reading.files),
        suspects=verdict.suspects,
        terms=verdict.terms,
        set_aside=_set_aside(reading, verdict.set_aside),
        alternatives=verdict.alternatives,
    )


def _ended(reading: Reading, ending: Finding | None) -> Report:
    kind = ending.ending if ending is not None and ending.ending is not None else End.FINISHED
    if kind is End.FINISHED or ending is None:
        noise = bool(reading.sifted.teardown)
        family = "benign_teardown_noise" if noise else "healthy_finished"
        sentence = "Nothing wrong: the run finished."
        report = _report(reading, rule_on_ending(End.FINISHED, requeues_itself=False))
        return msgspec.structs.replace(
            report, ending=kind, family=family, cause="finished", sentence=sentence
        )
    answered = ending.family == "graceful_checkpoint_exit" and ending.remedy is Remedy.END
    requeues = answered or requeued(reading.findings)
    report = _report(reading, rule_on_ending(kind, requeues_itself=requeues))
    return msgspec.structs.replace(
        report,
        ending=kind,
        domain=ending.domain,
        cause=ending.rule,
        family=ending.family,
        sentence=_as_sentence(ending.sentence),
        root=root_line(ending, reading.files),
    )


def _told_to_stop(reading: Reading, word: Finding) -> Report:
    """Return the report on a run that only says that it was told to stop, and not by whom."""
    saves = saves_itself(word, reading.files)
    ending = End.PREEMPTED if saves else End.CANCELLED
    report = _report(reading, rule_on_ending(ending, requeues_itself=False))
    said = ", saved its state and left" if saves else " and was ended"
    return msgspec.structs.replace(
        report,
        ending=ending,
        cause=word.rule,
        family="graceful_checkpoint_exit" if saves else "user_cancelled",
        sentence=f"The run was told to stop from outside{said}; the log does not say who told it.",
        root=root_line(word, reading.files),
        set_aside=_set_aside(
            reading, unheard([one for one in reading.sifted.live if one is not word])
        ),
    )


def _hung(reading: Reading) -> Report:
    terms = (
        Term(what="no step was told while the log went on", weight=0.5),
        Term(what="no line explains it", weight=-0.1),
    )
    return msgspec.structs.replace(
        _report(reading, rule_on_silence()),
        kind=Happened.HANG,
        domain=Domain.UNKNOWN,
        cause="silent-hang",
        family="silent_hang",
        confidence=confidences.total(terms),
        terms=terms,
        sentence=f"The steps stopped without an error{_how_long(reading.course)}.",
        root=last_progress_line(reading.files, reading.course),
        likely=likely_lines(_tail(reading)),
    )


def _how_long(course: Course) -> str:
    silence = course.silence()
    known = silence is not None and silence > 0
    return f", {show_span(silence)} before the log did" if silence and known else ""


def _unknown(reading: Reading, death: Shown) -> Report:
    likely = likely_lines(_tail(reading))
    best = likely[0] if likely else death
    terms = (
        Term(what="a process died", weight=0.2),
        Term(what="no rule explains it", weight=-0.05),
    )
    return msgspec.structs.replace(
        _report(reading, rule_on_unknown()),
        kind=Happened.CRASH,
        domain=Domain.UNKNOWN,
        cause="unknown-failure",
        family="unknown",
        confidence=confidences.total(terms),
        terms=terms,
        sentence=f"A process died and no rule knows why; the likeliest line is {best.line}.",
        root=shown_as_root(best, reading.files),
        likely=likely,
    )


def _well(reading: Reading) -> Report:
    sifted = reading.sifted
    failed_before = any(one.role is not Role.BENIGN and not one.ending for one in reading.earlier)
    if not any(file.lines for file in reading.files):
        return msgspec.structs.replace(
            _report(reading, rule_on_health()),
            cause="empty-log",
            family="healthy_running",
            confidence=confidences.OF_AN_EMPTY_LOG,
            sentence="The log is empty, so nothing can be said of the run.",
        )
    survived = any(
        not is_mere_warning(one) and one.remedy is not Remedy.REPORT for one in sifted.recovered
    )
    if survived or failed_before:
        family, words = "benign_retry_recovered", "an error was recovered from and training went on"
    elif sifted.benign:
        family, words = _family_of(sifted.benign), "what looks alarming had no effect"
    elif sifted.recovered or sifted.live:
        family, words = "benign_warning", "what looks alarming had no effect"
    else:
        family, words = "healthy_running", "no line tells of trouble"
    return msgspec.structs.replace(
        _report(reading, rule_on_health()),
        family=family,
        cause=family.replace("_", "-"),
        confidence=_of_health(reading),
        sentence=f"Nothing wrong: {words}{_how_it_ends(reading)}.",
    )


def _how_it_ends(reading: Reading) -> str:
    """Return what a log without trouble leaves open: it cannot tell a silent death from life."""
    best = reading.course.best
    if best is None or best.progress.last_step is None:
        return ", and none of training either"
    step, total = best.progress.last_step, best.progress.total
    if total and step < total:
        last, unit = f"{step:,} of {total:,}", best.progress.unit.value
        return f"; the log ends at {unit} {last}, so it still runs or died without a word"
    return ""


def _of_health(reading: Reading) -> float:
    if reading.course.best is None:
        return confidences.OF_A_LOG_WITHOUT_TRAINING
    return confidences.OF_NOTHING_WRONG


def _family_of(benign: Sequence[Finding]) -> str:
    """Return what a run with harmless lines is: one that retried, where one of them says so."""
    families = [one.family for one in benign]
    retried = "benign_retry_recovered"
    return retried if retried in families else families[0]


def _report(reading: Reading, ruling: Ruling) -> Report:
    """Return a report of nothing wrong, with what holds whatever happened."""
    best = reading.course.best
    progress = best.progress if best is not None else Progress()
    saved = [one.progress.best_checkpoint for one in reading.course.stretches]
    return Report(
        kind=Happened.NONE,
        ending=None,
        domain=Domain.NONE,
        cause="",
        family="",
        decision=ruling.decision,
        confidence=confidences.OF_NOTHING_WRONG,
        sentence="",
        why=_why(ruling, reading),
        exclude=ruling.exclude,
        last_step=progress.last_step,
        step_unit=progress.unit if best is not None else None,
        step_seconds=progress.step_seconds,
        attempts=reading.attempts,
        last_checkpoint_step=max((one for one in saved if one is not None), default=None),
        progress=progress,
        set_aside=_set_aside(reading, unheard(reading.sifted.live)),
    )


def _why(ruling: Ruling, reading: Reading) -> str:
    """Return why a ruling was made; a checkpoint that it began from was seen too."""
    seen = [one.progress for one in reading.course.stretches]
    return ground(
        ruling,
        saw_checkpoint=any(one.best_checkpoint or one.resumed_from for one in seen),
        was_requeued=requeued(reading.findings),
        steps=_steps(reading),
    )


def _steps(reading: Reading) -> int:
    best = reading.course.best
    if best is None:
        return 0
    progress = best.progress
    return (progress.best_step or 0) - (progress.resumed_from or 0)


def _alike(root: Finding | None, reading: Reading) -> int:
    """Return how many runs in a row died of the same and gained no step, the last included."""
    if root is None or root.place is None:
        return 1
    file = next((one for one in reading.files if one.file == root.place.file), None)
    if file is None:
        return 1
    best = next((run.progress.best_step for run in file.runs if run.number == root.run), None)
    alike = 1
    for run in reversed(file.runs):
        if run.number >= root.run:
            continue
        same = any(
            one.run == run.number and one.fingerprint == root.fingerprint for one in file.findings
        )
        gained = (best or 0) > (run.progress.best_step or 0)
        if not same or gained:
            break
        alike += 1
    return alike


def _tail(reading: Reading) -> tuple[Shown, ...]:
    return tuple(line for file in reading.files for line in file.tail)


def _set_aside(reading: Reading, unwound: Sequence[SetAside]) -> tuple[SetAsideLine, ...]:
    told = (*reading.sifted.set_aside, *unwound)
    return set_aside_lines(told, reading.findings, MOST_SET_ASIDE)


def _happened(kind: Kind) -> Happened:
    match kind:
        case Kind.HANG:
            return Happened.HANG
        case Kind.SLOW:
            return Happened.STRAGGLER
        case Kind.CRASH | Kind.NUMERIC | Kind.NODE | Kind.ENDING:
            return Happened.CRASH
        case _:
            assert_never(kind)


def _as_sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(". ") + "."
