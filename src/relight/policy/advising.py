"""Verdict and history to a ruling: what should happen next, and the one reason for it.

The rows of ``advise`` are read from the top; the first that speaks decides. Nothing here
knows a scheduler: a ruling is a wish, and whether it may be acted on is settled in
``permits``.
"""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.advice import Decision
from relight.model.findings import Domain, Remedy
from relight.model.instants import Span, seconds, show_span
from relight.model.reasons import Reason
from relight.model.records import Record
from relight.model.verdicts import Verdict
from relight.policy.policies import Policy

LONGEST_BACKOFF = seconds(86_400)
"""A doubled wait ends here: a scheduler that requeues by itself can restart a job any number
of times, and an instant must stay one that can be written down."""

REPORT_ONLY = "report-only"
"""The code of an end that is left to a person."""

_MOST_DOUBLINGS = 40
_JUDGED = frozenset({Domain.APPLICATION, Domain.USER, Domain.UNKNOWN})
_SHARED = frozenset({Domain.STORAGE, Domain.NETWORK, Domain.SCHEDULER, Domain.SYSTEM_SOFTWARE})
_EXCLUDES = frozenset({Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN})


class Past(Record, frozen=True, kw_only=True):
    """One earlier failed attempt, as far as a retry is judged by it.

    ``cause`` is its verdict's, empty where not known. ``blamed`` are the nodes that its verdict
    named where it was of the hardware: what comes without them is another failure.
    ``gained`` says that it completed a step or checkpoint beyond all attempts before it;
    ``restarted`` that relight advised a restart after it and the job did start again.
    """

    number: int
    fingerprint: str
    cause: str = ""
    blamed: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    gained: bool = False
    restarted: bool = False


class Circumstances(Record, frozen=True, kw_only=True):
    """What policy must know beside the verdict.

    ``gained`` is this attempt's own progress beyond all before it; ``expected_nodes`` how
    many the job asks for, ``fit_ever`` how many could ever serve it with the suspects left
    out, None where that is not known.
    """

    nodes: tuple[str, ...] = ()
    gained: bool = False
    history: tuple[Past, ...] = ()
    successors: tuple[str, ...] = ()
    requeue_allowed: bool = True
    is_batch: bool = True
    max_restarts: int | None = None
    expected_nodes: int = 0
    required_nodes: tuple[str, ...] = ()
    fit_now: int | None = None
    fit_ever: int | None = None


class Ruling(Record, frozen=True, kw_only=True):
    """What should happen: decision, exclusions in order of suspicion, a wait, and the reason."""

    decision: Decision
    reason: Reason
    exclusions: tuple[str, ...] = ()
    least_exclusions: int = 0
    wait: Span = Span(0)


def advise(verdict: Verdict, policy: Policy, around: Circumstances) -> Ruling:
    """Return the ruling for one failed attempt."""
    return (
        _nothing_to_recover(verdict)
        or _no_restart_possible(verdict, around)
        or _hopeless(verdict, around)
        or _budget_spent(verdict, policy, around)
        or _shared_trouble(verdict, policy, around)
        or _restart(verdict, policy, around)
    )


def wants_capacity(verdict: Verdict) -> tuple[str, ...]:
    """Return the nodes whose exclusion the verdict asks for, in order of suspicion."""
    return tuple(suspect.node for suspect in verdict.suspects) if _excludes(verdict) else ()


def used_restarts(history: Sequence[Past]) -> int:
    """Return how many restarts count against the budget: those since progress was last made."""
    used = 0
    for past in history:
        used = (0 if past.gained else used) + int(past.restarted)
    return used


def allowed_restarts(policy: Policy, own: int | None) -> int:
    """Return how many restarts without progress are allowed; ``own`` is the job's own limit."""
    return policy.max_restarts if own is None else min(policy.max_restarts, own)


def _excludes(verdict: Verdict) -> bool:
    return verdict.remedy in _EXCLUDES


def _nothing_to_recover(verdict: Verdict) -> Ruling | None:
    if verdict.remedy is Remedy.END:
        return _none("nothing-to-recover", f"Nothing to recover: {verdict.sentence}.")
    if verdict.remedy is Remedy.REPORT:
        return _none(REPORT_ONLY, f"Left to a person: {verdict.sentence}.")
    return None


def _no_restart_possible(verdict: Verdict, around: Circumstances) -> Ruling | None:
    if verdict.remedy is Remedy.STOP:
        return None
    if around.successors:
        others = ", ".join(around.successors[:3])
        return _none(
            "successor-exists",
            f"Not restarted, because job {others} was submitted to follow this one and would "
            f"run beside it on the same checkpoints. What happened: {verdict.sentence}.",
        )
    if not around.is_batch:
        return _none(
            "not-a-batch-job",
            "Not restarted, because only batch jobs can be requeued; submit it again by hand. "
            f"What happened: {verdict.sentence}.",
        )
    if not around.requeue_allowed:
        return _none(
            "requeue-disabled",
            "Not restarted, because the job was submitted with --no-requeue. "
            f"What happened: {verdict.sentence}.",
        )
    return None


def _hopeless(verdict: Verdict, around: Circumstances) -> Ruling | None:
    if verdict.remedy is Remedy.STOP:
        return Ruling(
            decision=Decision.STOP,
            reason=Reason(
                code="deterministic-error",
                sentence=f"Not restarted, because it would fail again: {verdict.sentence}.",
            ),
        )
    again = _same_before(verdict, around)
    if again is None or verdict.domain not in _JUDGED or _excludes(verdict):
        return None
    elsewhere = set(again.nodes) != set(around.nodes)
    if not elsewhere and verdict.remedy is not Remedy.CONFIRM_THEN_STOP:
        return None
    where = " on other nodes" if elsewhere else ""
    return Ruling(
        decision=Decision.STOP,
        reason=Reason(
            code="same-failure-again",
            sentence=(
                f"Not restarted, because attempt {again.number} ended in the same way{where} and "
                f"no step was gained since: {verdict.sentence}."
            ),
        ),
    )


def _same_before(verdict: Verdict, around: Circumstances) -> Past | None:
    if around.gained:
        return None
    for past in reversed(around.history):
        if _is_alike(past, verdict):
            return past
        if past.gained:
            return None
    return None


def _is_alike(past: Past, verdict: Verdict) -> bool:
    is_same = past.fingerprint == verdict.fingerprint and past.cause in ("", verdict.cause)
    return is_same and not past.blamed


def _budget_spent(verdict: Verdict, policy: Policy, around: Circumstances) -> Ruling | None:
    allowed = allowed_restarts(policy, around.max_restarts)
    used = 0 if around.gained else used_restarts(around.history)
    if used < allowed:
        return None
    return Ruling(
        decision=Decision.STOP,
        reason=Reason(
            code="restarts-used-up",
            sentence=(
                f"Not restarted: {used} of {allowed} restarts without progress are used. "
                f"Raise max_restarts in policy {policy.name} or in the job's comment to allow "
                f"more. What happened: {verdict.sentence}."
            ),
        ),
    )


def _shared_trouble(verdict: Verdict, policy: Policy, around: Circumstances) -> Ruling | None:
    again = _same_before(verdict, around)
    repeated = again is not None and verdict.domain in _SHARED
    if verdict.remedy is not Remedy.HOLD and not repeated:
        return None
    why = "and it happened before without a step gained" if repeated else "which is shared"
    return Ruling(
        decision=Decision.HOLD,
        wait=policy.hold,
        reason=Reason(
            code="shared-trouble",
            sentence=(
                f"Restart in {show_span(policy.hold)}, blaming no node: {verdict.sentence} "
                f"({verdict.domain}), {why}."
            ),
        ),
    )


def _restart(verdict: Verdict, policy: Policy, around: Circumstances) -> Ruling:
    wait = _backoff(policy, around)
    later = f" in {show_span(wait)}" if wait else ""
    wanted = wants_capacity(verdict)
    exclusions = _affordable(wanted, around)
    if not exclusions:
        return Ruling(
            decision=Decision.RESTART,
            wait=wait,
            reason=Reason(
                code="restart",
                sentence=f"Restart{later}: {verdict.sentence}.{_not_spared(wanted, around)}",
            ),
        )
    return Ruling(
        decision=Decision.RESTART_EXCLUDING_NODE,
        exclusions=exclusions,
        least_exclusions=1,
        wait=wait,
        reason=Reason(
            code="restart-excluding-node",
            sentence=(
                f"Restart{later} without {', '.join(exclusions)}: {verdict.sentence}."
                f"{_will_wait(around)}"
            ),
        ),
    )


def _affordable(wanted: tuple[str, ...], around: Circumstances) -> tuple[str, ...]:
    if around.fit_ever is None:
        return ()
    missing = max(0, around.expected_nodes - around.fit_ever)
    spared = tuple(node for node in wanted if node not in around.required_nodes)
    return spared[: max(0, len(wanted) - missing)]


def _not_spared(wanted: tuple[str, ...], around: Circumstances) -> str:
    if not wanted:
        return ""
    asked_for = [node for node in wanted if node in around.required_nodes]
    if asked_for:
        return (
            f" {', '.join(asked_for)} cannot be left out: the job itself asks for it (--nodelist)."
        )
    if around.fit_ever is None:
        return (
            f" {', '.join(wanted)} would be left out, but whether the job still fits the "
            "cluster without could not be seen."
        )
    return (
        f" {', '.join(wanted)} cannot be left out: of the {around.expected_nodes} that the job "
        f"needs, {around.fit_ever} would remain."
    )


def _will_wait(around: Circumstances) -> str:
    if around.fit_now is None or around.fit_now >= around.expected_nodes:
        return ""
    return f" It will wait for nodes: {around.fit_now} of {around.expected_nodes} are free now."


def _backoff(policy: Policy, around: Circumstances) -> Span:
    in_a_row = 0 if around.gained else used_restarts(around.history)
    if not in_a_row:
        return Span(0)
    doubled = policy.backoff * 2 ** min(in_a_row - 1, _MOST_DOUBLINGS)
    return Span(min(doubled, max(policy.backoff, LONGEST_BACKOFF)))


def _none(code: str, sentence: str) -> Ruling:
    return Ruling(decision=Decision.NONE, reason=Reason(code=code, sentence=sentence))
