"""What to do about a run of which only its logs are known.

It means the same as ``advising`` for a first attempt, but has no history to confirm anything
with: a cause that asks for one confirming restart is judged by how surely it returns. A stop
that should not have been is the worst answer; a restart too many costs one more failure.
"""

from __future__ import annotations

from typing import assert_never

from relight.model.advice import Decision
from relight.model.findings import Domain, End, Kind, Remedy, Role
from relight.model.reasons import Reason
from relight.model.records import Record
from relight.model.verdicts import Verdict

MANY_STEPS = 50
"""Steps after which running out of a resource is no longer the first step's own doing."""

_PEOPLE = frozenset({Domain.APPLICATION, Domain.USER})
_SHARED = frozenset({Domain.STORAGE, Domain.NETWORK, Domain.SCHEDULER, Domain.SYSTEM_SOFTWARE})
_GROWS = frozenset({"device_oom", "host_oom_kill", "too_many_open_files", "shm_exhausted"})
"""Families of resources that may run out by and by: a restart gets them back."""
_PASSING = frozenset(
    {
        "cuda_kernel_fault",
        "cuda_library_error",
        "dataloader_worker_killed",
        "segfault",
        "checkpoint_rename_race",
        "process_killed_sigkill",
        "worker_process_lost",
    }
)
"""Families that came and went as often as they came again."""
_CERTAIN = frozenset({"data_corrupt", "missing_file", "permission_denied", "disk_quota_exceeded"})
"""Families that stay as they are until somebody mends them, whoever's fault they are."""
_ALIKE = 2
"""Runs that died in the same way without a step gained, this one included, that show it returns."""


class Circumstances(Record, frozen=True, kw_only=True):
    """What a lone log tells beside the verdict.

    ``role`` is that of the root evidence, ``remedy`` what its cause asks for also where no
    node can be named, ``steps`` how many this run completed, ``alike`` how many runs in the
    same files died in the same way without gaining a step, this one included.
    """

    role: Role = Role.SYMPTOM
    remedy: Remedy = Remedy.REPORT
    steps: int = 0
    alike: int = 1
    nodes: tuple[str, ...] = ()


class Ruling(Record, frozen=True, kw_only=True):
    """What should be done, without which nodes, and why."""

    decision: Decision
    reason: Reason
    exclude: tuple[str, ...] = ()


def rule_on_ending(ending: End, *, requeues_itself: bool) -> Ruling:
    """Return what follows an end that is no failure."""
    match ending:
        case End.FINISHED:
            return _ruled(Decision.NONE, "finished", "The work is done.")
        case End.CANCELLED:
            return _ruled(
                Decision.NONE,
                "cancelled",
                "It was stopped on purpose: whoever did so may start it again.",
            )
        case End.PREEMPTED | End.TIMEOUT:
            if requeues_itself:
                return _ruled(
                    Decision.NONE,
                    "requeues-itself",
                    "It saved its state and starts again by itself.",
                )
            return _ruled(
                Decision.RESTART,
                "not-done-yet",
                "Nothing is broken and the work is not done: go on from the last checkpoint.",
            )
        case _:
            assert_never(ending)


def rule_on_health() -> Ruling:
    """Return what follows when nothing is wrong."""
    return _ruled(Decision.NONE, "nothing-wrong", "Nothing is wrong.")


def rule_on_silence() -> Ruling:
    """Return what follows when the steps stopped without a word."""
    return _ruled(
        Decision.RESTART,
        "no-step-any-more",
        "It does not get on by itself: restart once, and stop if it returns with no step gained.",
    )


def rule_on_unknown() -> Ruling:
    """Return what follows a death that nothing explains."""
    return _ruled(
        Decision.RESTART,
        "cause-unknown",
        "The cause is not known: restart once, and stop if it returns with no step gained.",
    )


def rule(verdict: Verdict, around: Circumstances) -> Ruling:
    """Return what should be done about a failed run."""
    match around.remedy:
        case Remedy.STOP:
            return _stop_or_try(verdict, around)
        case Remedy.CONFIRM_THEN_STOP:
            return _confirm(verdict, around)
        case Remedy.RESTART_EXCLUDING_NODE | Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN:
            return _without_node(verdict, around)
        case Remedy.HOLD:
            return _ruled(
                Decision.HOLD,
                "shared-trouble",
                "What failed is shared by many and no node's fault: restart when it is well again.",
            )
        case Remedy.RESTART | Remedy.RESTART_CLEAN | Remedy.END | Remedy.REPORT:
            return _restart(verdict, around)
        case _:
            assert_never(around.remedy)


def _stop_or_try(verdict: Verdict, around: Circumstances) -> Ruling:
    if verdict.family in _GROWS and around.steps >= MANY_STEPS:
        return _grows(around)
    return _ruled(
        Decision.STOP, "deterministic-error", "It would fail again in the same way: mend it first."
    )


def _confirm(verdict: Verdict, around: Circumstances) -> Ruling:
    if around.alike >= _ALIKE:
        is_shared = verdict.domain in _SHARED and verdict.family not in _CERTAIN
        return _again_of_all(around) if is_shared else _again(around)
    if verdict.family in _GROWS:
        if around.steps >= MANY_STEPS:
            return _grows(around)
        return _ruled(
            Decision.STOP,
            "too-large-from-the-start",
            "It ran out before it had done many steps, so it would again: make it smaller first.",
        )
    is_certain = verdict.domain in _PEOPLE and verdict.family not in _PASSING
    if (is_certain or verdict.family in _CERTAIN) and around.role is not Role.SYMPTOM:
        return _ruled(
            Decision.STOP,
            "would-return",
            "Nothing in the next run would be different, so it would most likely return.",
        )
    return _ruled(
        Decision.RESTART,
        "may-have-passed",
        "It may have passed: restart once, and stop if it returns with no step gained.",
    )


def _without_node(verdict: Verdict, around: Circumstances) -> Ruling:
    nodes = around.nodes or tuple(one.node for one in verdict.suspects)
    if not nodes:
        where = "which the log does not name"
        return _ruled(
            Decision.RESTART_EXCLUDING_NODE,
            "restart-excluding-node",
            f"The fault stays with its node, {where}: find it, and restart without it.",
        )
    whose = "that node" if len(nodes) == 1 else "those nodes"
    return Ruling(
        decision=Decision.RESTART_EXCLUDING_NODE,
        exclude=nodes,
        reason=Reason(
            code="restart-excluding-node", sentence=f"The fault is of {whose} and would stay there."
        ),
    )


def _restart(verdict: Verdict, around: Circumstances) -> Ruling:
    if around.alike > _ALIKE and verdict.domain in {*_PEOPLE, Domain.UNKNOWN}:
        return _again(around)
    if verdict.kind is Kind.SLOW:
        return _ruled(
            Decision.RESTART,
            "slow",
            "It goes on, but slowly: a restart from its last checkpoint may find a better place.",
        )
    if verdict.domain is Domain.UNKNOWN:
        return rule_on_unknown()
    return _ruled(Decision.RESTART, "restart", "It passes, or a fresh start gets around it.")


def _again(around: Circumstances) -> Ruling:
    return _ruled(
        Decision.STOP,
        "same-failure-again",
        f"{around.alike} runs ended in the same way and no step was gained.",
    )


def _again_of_all(around: Circumstances) -> Ruling:
    return _ruled(
        Decision.HOLD,
        "same-shared-trouble-again",
        f"{around.alike} runs ended in the same way, of what is not the job's own: a person should "
        "look at it before the next one.",
    )


def _grows(around: Circumstances) -> Ruling:
    return _ruled(
        Decision.RESTART,
        "ran-out-by-and-by",
        f"It ran out after {around.steps} steps: a restart goes on from the last checkpoint.",
    )


def _ruled(decision: Decision, code: str, sentence: str) -> Ruling:
    return Ruling(decision=decision, reason=Reason(code=code, sentence=sentence))
