"""A living attempt computes nonsense: told, stopped or restarted, as its policy says.

What earlier attempts of the job show decides whose fault it is: see ``policy.numerics``.
"""

from __future__ import annotations

import msgspec

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.advising import give_advice
from relight.engine.cases import AttemptCase, Occasion
from relight.engine.opening import findings_so_far
from relight.engine.recording import record_verdict
from relight.engine.trouble import numerics_of
from relight.engine.turns import Turn
from relight.engine.witnesses import BEFORE_TROUBLE, ask, is_awaited, newest
from relight.model.findings import Finding, Kind, Remedy
from relight.model.incidents import Incident, Phase
from relight.model.instants import Span, later
from relight.model.verdicts import Verdict
from relight.policy.living import NUMERIC_REPORTED, forewarning_of, reported, stopped
from relight.policy.numerics import Clean, Trouble, judged, repeated
from relight.policy.policies import Policy, Response

SPIKE = "loss-spike"
"""The rule of a loss that jumped but is a number: what is saved then can be gone on from."""


def judge_numerics(turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy) -> None:
    """Draw every conclusion about an attempt whose loss is no number, has jumped, or overflows."""
    if incident.phase is Phase.ADVISED:
        return
    trouble = numerics_of(incident.findings)[0]
    asked = newest(attempt, Occasion.LIVING)
    if asked is None or asked < incident.opened_at:
        attempt = ask(turn, attempt, policy, Occasion.LIVING, trouble.seen_at)
    if is_awaited(turn, attempt, policy):
        return
    since = later(trouble.seen_at, Span(-BEFORE_TROUBLE))
    findings = findings_so_far(attempt, incident, since)
    verdict = diagnose(findings, attempt.allocation, Ending(), attempt.logs_unseen)
    verdict = with_history(turn, attempt, verdict)
    record_verdict(turn, attempt, verdict)
    _decide(turn, attempt, trouble, verdict, policy)


def _decide(
    turn: Turn, attempt: AttemptCase, trouble: Finding, verdict: Verdict, policy: Policy
) -> None:
    match policy.numeric:
        case Response.REPORT:
            ruling = reported(NUMERIC_REPORTED, verdict, _checkpoints(attempt, trouble))
            give_advice(turn, attempt.number, verdict, policy, ruling=ruling)
        case Response.STOP:
            ruling = stopped(verdict, policy)
            give_advice(turn, attempt.number, verdict, policy, ruling=ruling)
        case Response.RESTART:
            sentence = f"{verdict.sentence}. {_checkpoints(attempt, trouble)}".rstrip(". ")
            remedy = verdict.remedy
            if remedy is Remedy.REPORT:  # the policy has been told what to do about it
                remedy = Remedy.CONFIRM_THEN_STOP
            told = msgspec.structs.replace(verdict, sentence=sentence, remedy=remedy)
            warned = None
            if trouble.rule == SPIKE:
                warned = forewarning_of(policy, attempt.progress.best_checkpoint)
            give_advice(turn, attempt.number, told, policy, forewarning=warned)


def with_history(turn: Turn, attempt: AttemptCase, verdict: Verdict) -> Verdict:
    """Return a verdict of numeric trouble with what earlier attempts of the job show.

    What witnesses name stands above it, and a verdict of anything else stays as it is.
    """
    found = numerics_of(attempt.findings)
    if verdict.kind is not Kind.NUMERIC or verdict.suspects or not found:
        return verdict
    trouble = next((one for one in found if one.rule == verdict.cause), found[-1])
    earlier = [one for one in turn.case.attempts if one.number < attempt.number]
    before = [_trouble(one, told) for one in earlier for told in numerics_of(one.findings)]
    clean = [
        Clean(nodes=one.allocation.nodes, steps_made=_steps_made(one))
        for one in earlier
        if not numerics_of(one.findings)
    ]
    return judged(verdict, repeated(_trouble(attempt, trouble), before, clean))


def _trouble(attempt: AttemptCase, finding: Finding) -> Trouble:
    return Trouble(
        attempt=attempt.number,
        rule=finding.rule,
        step=finding.step,
        nodes=attempt.allocation.nodes,
        steps_made=_steps_made(attempt),
    )


def _steps_made(attempt: AttemptCase) -> int:
    first, best = attempt.progress.first_step, attempt.progress.best_step
    return 0 if first is None or best is None else max(0, best - first + 1)


def _checkpoints(attempt: AttemptCase, trouble: Finding) -> str:
    """Return which checkpoint is the last before the trouble: relight cannot choose it."""
    known = attempt.checkpoints or tuple(
        step for step in (attempt.progress.best_checkpoint,) if step is not None
    )
    if trouble.step is None or not known:
        return "Which checkpoint was written before it is not known."
    sound = [step for step in known if step <= trouble.step]
    spoilt = [step for step in known if step > trouble.step]
    last = f"The last checkpoint before it is that of step {max(sound)}." if sound else ""
    if not spoilt:
        return last
    newer = f"That of step {max(spoilt)} was written after it began: do not resume from it."
    return f"{last} {newer}".strip()
