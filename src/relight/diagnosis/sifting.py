"""What of a log's findings can have to do with its end, and why the others have not.

Findings are set aside in words: harmless ones, those that the run survived, those that come
after the work was done or after it was told to stop. What is left goes to the cascade.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from relight.diagnosis.clocks import in_time_order
from relight.diagnosis.courses import Course
from relight.diagnosis.deaths import root_text
from relight.diagnosis.levels import is_mere_remark
from relight.model.findings import Domain, End, Finding, Kind, Remedy, Role
from relight.model.records import Record
from relight.model.verdicts import SetAside

_OUTLIVES_AN_ENDING = frozenset({"host_oom_kill", "node_failure"})
"""Families that a run that was told to stop does not print by stopping."""
_ON_ITS_WAY = 2.5
"""Margins of survival that a run may still complete while it is being killed."""
_ONE_MESSAGE = 3
"""Lines over which one message may stretch."""
_PUT_BACK = 10.0
"""A survived line explains a death only when it lies less than this many margins before it."""
_CLEAN_UP = frozenset(
    {
        "segfault",
        "process_killed_sigkill",
        "dataloader_worker_killed",
        "worker_process_lost",
        "session_hangup",
        "nccl_remote_error",
        "nccl_socket_connect_failed",
        "nccl_init_failed",
        "nccl_collective_timeout",
        "watchdog_heartbeat_stuck",
        "gloo_connect_failed",
        "jax_coordination_failure",
        "rendezvous_failed",
        "user_code_exception",
        "user_cancelled",
        "cuda_kernel_fault",
        "cuda_library_error",
        "too_many_open_files",
    }
)
"""Families of what goes wrong while processes are taken down after the work is done."""

_BY_FORCE = re.compile(r"slurmstepd|CANCELLED AT|DUE TO (?:TIME LIMIT|PREEMPTION)").search
"""Who ends a run so gives it no time to do anything of its own."""
_UPTIME = re.compile(r"(?:^|\W)\[ {0,6}\d{1,9}\.\d{6}\] ").search
_HANDLES = re.compile(r"(?i)requeue|checkpoint|\bsave|handle_?(?:r|signal|preempt|timeout)").search
"""Frames of a program's own handling of a word to stop."""

HARMLESS = "it looks alarming and is harmless"
"""Why a line of a benign rule is set aside."""


class Sifted(Record, frozen=True, kw_only=True):
    """Findings apart: ``live`` ones may tell the cause, in no order; the others have a reason.

    ``ending`` is the finding that tells how the run ended; ``after_finish`` says that the
    work was done.
    """

    live: tuple[Finding, ...] = ()
    ending: Finding | None = None
    recovered: tuple[Finding, ...] = ()
    teardown: tuple[Finding, ...] = ()
    benign: tuple[Finding, ...] = ()
    aftermath: tuple[Finding, ...] = ()
    is_finished: bool = False

    @property
    def word_to_stop(self) -> Finding | None:
        """Return the first line that says that the run was told to stop, and not by whom."""
        words = [one for one in self.live if one.kind is Kind.ENDING and one.ending is None]
        return words[0] if words and not self.is_finished and self.ending is None else None

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """Return everything that is not live, with why."""
        said = (
            (self.recovered, "the run went on and completed steps after it"),
            (self.teardown, "it was printed after the work was done"),
            (self.benign, HARMLESS),
            (self.aftermath, "it was printed after the run had been told to stop"),
        )
        return tuple(
            SetAside(finding=one.id, rule=one.rule, why=why)
            for findings, why in said
            for one in findings
        )


def sift(findings: Sequence[Finding], course: Course) -> Sifted:
    """Return the findings of one run apart, by the course that the run took."""
    ordered = in_time_order(findings)
    benign = [one for one in ordered if one.role is Role.BENIGN]
    broken = {one.place for one in ordered if one.place and _may_be_cause(one)}
    said = [one for one in ordered if _is_ending(one) and one.place not in broken]
    outlived, endings = _parted(said, lambda one: _is_outlived(one, ordered, course))
    told = [one for one in ordered if one.role is not Role.BENIGN and not _is_ending(one)]
    finish = next((one for one in endings if one.ending is End.FINISHED), None)
    is_finished = finish is not None or course.is_finished
    last_numeric = {one.rule: one for one in told if one.kind is Kind.NUMERIC}
    retried = _retried(benign, told)
    recovered, rest = _parted(
        told,
        lambda one: _is_survived(one, last_numeric.get(one.rule, one), course) or one.id in retried,
    )
    teardown, rest = _parted(rest, lambda one: is_finished and _is_clean_up(one, finish))
    ending = _ending(endings, course, is_finished=is_finished)
    after = _ids_after(ending, ordered)
    aftermath, live = _parted(rest, lambda one: _is_aftermath(one, after, ending))
    if recovered and _is_unexplained_death(live, ending, is_finished=is_finished):
        back, recovered = _parted(recovered, lambda one: course.steps_after(one) < _PUT_BACK)
        live = [*back, *live]
    elif recovered and _is_forced(ending) and not live:
        back, recovered = _parted(recovered, lambda one: _led_to_force(one, course))
        live = back
    elif recovered and _is_death_without_root(live, ending, is_finished=is_finished):
        back, recovered = _parted(recovered, _is_by_kernels_clock)
        live = [*back, *live]
    return Sifted(
        live=tuple(live),
        ending=ending,
        recovered=(*outlived, *recovered),
        teardown=tuple(teardown),
        benign=tuple(benign),
        aftermath=tuple(aftermath),
        is_finished=is_finished,
    )


def _ending(endings: Sequence[Finding], course: Course, *, is_finished: bool) -> Finding | None:
    """Return what tells how a run ended: the first that says so.

    A framework that says that training is over says it where it stands; of what came before
    it only a graceful exit counts, and a limit that the program itself kept before its last
    step, since the work was not over then.
    """
    first = next(iter(endings), None)
    if first is None or not is_finished or first.ending is End.FINISHED:
        return first
    if first.ending is End.PREEMPTED or any(one.ending is End.FINISHED for one in endings):
        return first
    is_own_limit = first.ending is End.TIMEOUT and not _BY_FORCE(root_text(first))
    return first if is_own_limit and course.is_short_of_its_end else None


def _is_outlived(ending: Finding, ordered: Sequence[Finding], course: Course) -> bool:
    """Tell whether a run that had been ended began again.

    It went on from a checkpoint of its own, or broke of something else later.
    """
    gone_on = course.steps_after(ending)
    if ending.ending is End.FINISHED or gone_on < 1:
        return False
    own = course.of(ending.place.file) if ending.place else None
    return (own is not None and own.began_again) or any(
        _may_be_cause(one) and _comes_after(one, ending) and course.steps_after(one) < 1
        for one in ordered
    )


def _may_be_cause(one: Finding) -> bool:
    """Tell whether a line says what broke: what it says of an ending is then a guess of its own."""
    return one.role in (Role.ROOT, Role.EITHER) and one.ending is None


def _is_ending(one: Finding) -> bool:
    return one.ending is not None and one.role is not Role.BENIGN


def _parted(
    findings: Sequence[Finding], belongs: Callable[[Finding], bool]
) -> tuple[list[Finding], list[Finding]]:
    """Return those that belong, and the rest."""
    yes: list[Finding] = []
    no: list[Finding] = []
    for one in findings:
        (yes if belongs(one) else no).append(one)
    return yes, no


def _is_survived(one: Finding, last: Finding, course: Course) -> bool:
    """Tell whether steps went on after a line by more than what was on its way.

    A slow run goes on by nature. Of numbers gone bad the ``last`` such line counts.
    """
    if one.kind is Kind.SLOW:
        return False
    if one.kind is Kind.NUMERIC and _stays_bad(last, course):
        return False
    return course.steps_after(last) >= 1


def _retried(benign: Sequence[Finding], told: Sequence[Finding]) -> frozenset[str]:
    """Return what a launcher said that it was about to try again, and nothing failed after."""
    said = [one for one in benign if one.family == "benign_retry_recovered" and one.place]
    if not said or not told:
        return frozenset()
    last = said[-1]
    if any(one.place is None or _comes_after(one, last) for one in told):
        return frozenset()
    return frozenset(one.id for one in told)


def _stays_bad(last: Finding, course: Course) -> bool:
    """Tell whether a flood of bad numbers was thinned before its end."""
    own = course.of(last.place.file) if last.place else None
    progress = own.progress if own is not None else None
    return progress is not None and progress.nan_losses > 0 and progress.loss is None


def _is_clean_up(one: Finding, finish: Finding | None) -> bool:
    if finish is not None and not _comes_after(one, finish):
        return False
    return one.role is Role.SYMPTOM or one.family in _CLEAN_UP or one.remedy is Remedy.REPORT


def _comes_after(one: Finding, mark: Finding) -> bool:
    if one.place is not None and mark.place is not None and one.place.file == mark.place.file:
        return one.place.offset > mark.place.offset
    if one.at is not None and mark.at is not None:
        return one.at > mark.at
    return True


def _ids_after(ending: Finding | None, ordered: Sequence[Finding]) -> frozenset[str]:
    """Return what came after the run was told to stop."""
    if ending is None or ending.ending is End.FINISHED:
        return frozenset()
    ids = [one.id for one in ordered]
    return frozenset(ids[ids.index(ending.id) + 1 :])


def _is_aftermath(one: Finding, after: frozenset[str], ending: Finding | None) -> bool:
    """Tell whether a line was printed because the run had been told to stop.

    A machine that is taken away goes as it was said to. What breaks in a program's own
    handling of the word, its saving and requeuing, is a failure of its own.
    """
    if ending is None:
        return False
    is_after = one.id in after
    if one.family == "node_failure" and ending.ending is End.PREEMPTED:
        is_same = not ending.nodes or not one.nodes or bool({*one.nodes} & {*ending.nodes})
        return is_same and (is_after or _is_in_one_message(one, ending))
    if not is_after:
        return False
    if one.family in _OUTLIVES_AN_ENDING or one.domain is Domain.HARDWARE:
        return False
    return not (_may_be_cause(one) and _is_in_handling(one, ending))


def _is_in_one_message(one: Finding, other: Finding) -> bool:
    if one.place is None or other.place is None or one.place.file != other.place.file:
        return False
    return abs(one.place.line - other.place.line) <= _ONE_MESSAGE


def _is_in_handling(one: Finding, ending: Finding) -> bool:
    """Tell whether an exception was raised while a program saved or requeued itself in time."""
    if _BY_FORCE(root_text(ending)) or ending.ending not in (End.TIMEOUT, End.PREEMPTED):
        return False
    return any(_HANDLES(line.text) for line in one.evidence if not line.is_root)


def _is_unexplained_death(
    live: Sequence[Finding], ending: Finding | None, *, is_finished: bool
) -> bool:
    """Tell whether something died of which only symptoms are known.

    Slurm cancels what is left of a step when one of its tasks has died.
    """
    is_only_symptoms = all(one.role is Role.SYMPTOM and one.kind is not Kind.HANG for one in live)
    return is_only_symptoms and _is_death_without_root(live, ending, is_finished=is_finished)


def _is_death_without_root(
    live: Sequence[Finding], ending: Finding | None, *, is_finished: bool
) -> bool:
    if is_finished or (ending is not None and ending.ending is not End.CANCELLED):
        return False
    died = any(one.remedy is not Remedy.REPORT and one.kind is not Kind.SLOW for one in live)
    return died and not any(one.role is Role.ROOT for one in live)


def _is_forced(ending: Finding | None) -> bool:
    return ending is not None and _BY_FORCE(root_text(ending)) is not None


def _led_to_force(one: Finding, course: Course) -> bool:
    """Tell whether a line says that processes were killed, a few steps before all were."""
    is_kill = one.family in _OUTLIVES_AN_ENDING and one.role is not Role.SYMPTOM
    return is_kill and course.steps_after(one) < _ON_ITS_WAY


def _is_by_kernels_clock(one: Finding) -> bool:
    """Tell whether a broken machine is told by seconds since its start.

    Such lines stand together, before or behind those of the job, whenever they were written.
    """
    return one.domain is Domain.HARDWARE and _UPTIME(root_text(one)) is not None


def is_mere_warning(one: Finding) -> bool:
    """Tell whether a line calls itself a warning or a piece of information."""
    if one.kind in (Kind.SLOW, Kind.HANG, Kind.NODE, Kind.ENDING, Kind.NUMERIC):
        return False
    return is_mere_remark(root_text(one), tells_a_cause=one.role is Role.ROOT)
