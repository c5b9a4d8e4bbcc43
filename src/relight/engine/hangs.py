"""A living attempt stands still: what confirms it, and when it is given up.

The silence that was found is long already, so it needs no settle time of its own. Confirmed by
what somebody else saw, it is acted on at once; unconfirmed, after a patience that the policy
sets; and never where metrics show GPUs at work.
"""

from __future__ import annotations

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.advising import give_advice
from relight.engine.cases import AttemptCase, Occasion
from relight.engine.hearing import was_heard_lately
from relight.engine.opening import WORK_GOES_ON, findings_so_far, open_incident
from relight.engine.plans import HANG_UNCONFIRMED, is_planned, plan_for_silence
from relight.engine.recording import record_verdict
from relight.engine.revisiting import is_resting
from relight.engine.second_looks import borne_out, second_look
from relight.engine.trouble import (
    is_at_work,
    is_work,
    signs_of_death,
    signs_of_hang,
    silence_of,
    silent_since,
)
from relight.engine.turns import Turn, close
from relight.engine.witnesses import (
    BEFORE_TROUBLE,
    ask,
    is_awaited,
    is_fresh,
    newest,
)
from relight.model.audit import Topic
from relight.model.findings import Finding, Kind
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, Span, between, later, seconds
from relight.model.verdicts import Verdict
from relight.policy.living import HANG_REPORTED, reported
from relight.policy.policies import Policy, Response

FIRST_PAUSE, LAST_PAUSE = seconds(30), seconds(300)
"""Between two looks of witnesses while nobody has confirmed a silence: doubled within these."""
SHORTEST_PAUSE, LONGEST_PAUSE = seconds(120), seconds(1800)
"""Between two looks at a silent log's GPUs, which were at work."""


def judge_hang(turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy) -> None:
    """Draw every conclusion about an attempt whose log has told of no step for too long."""
    told = silence_of(incident)
    if incident.phase is Phase.ADVISED or is_resting(turn, attempt, told[-1], policy):
        return  # told already: only steps, or an end, change anything
    since = silent_since(attempt, told[0])
    asked = newest(attempt, Occasion.LIVING)
    if asked is None or asked < max(told[-1].seen_at, incident.opened_at):
        attempt = _ask(turn, attempt, policy, since)
    if is_awaited(turn, attempt, policy):
        return
    findings = findings_so_far(attempt, incident, later(since, Span(-BEFORE_TROUBLE)))
    if is_at_work(attempt, findings, since):
        _leave_alone(turn, attempt, is_seen=any(is_work(one) for one in findings))
        return
    proven = borne_out(attempt, findings, since)
    verdict = diagnose(proven, attempt.allocation, Ending(), attempt.logs_unseen)
    is_new = record_verdict(turn, attempt, verdict)
    signs = _signs(attempt, proven, since)
    begun = max(told[0].seen_at, incident.opened_at)
    if not signs and (
        _looks_again(turn, attempt, policy, findings, since, begun)
        or not _has_lasted(turn, attempt, policy, verdict, begun, is_new=is_new)
    ):
        return
    if not was_heard_lately(turn, attempt):
        return  # the next time that its files are listened to, it is looked at again
    if not is_fresh(turn, attempt, policy):
        attempt = _ask(turn, attempt, policy, since)
        if is_awaited(turn, attempt, policy):
            return
    _act(turn, attempt, policy, verdict, signs)


def watch_on(turn: Turn, attempt: AttemptCase, incident: Incident) -> None:
    """Look again, now and then, at GPUs that worked while the log was silent, and still is.

    A silence is found once, and work may stop in it. The pauses grow with it, within bounds.
    """
    told = silence_of(incident)
    asked = newest(attempt, Occasion.LIVING)
    if incident.closed is None or incident.closed.code != WORK_GOES_ON or not told or asked is None:
        return
    if attempt.stepped_at is not None and attempt.stepped_at > told[-1].seen_at:
        return
    silent = between(silent_since(attempt, told[0]), asked)
    due = later(asked, min(max(Span(silent), SHORTEST_PAUSE), LONGEST_PAUSE))
    if turn.now < due:
        turn.wake(due)
        return
    open_incident(turn, attempt.number, told, Kind.HANG)


def _ask(turn: Turn, attempt: AttemptCase, policy: Policy, since: Instant) -> AttemptCase:
    return ask(turn, attempt, policy, Occasion.LIVING, since, silent_since=since)


def _signs(
    attempt: AttemptCase, findings: tuple[Finding, ...], since: Instant
) -> tuple[Finding, ...]:
    """Return what confirms the silence; before the first step only that a node died does.

    A start may take any time, and GPUs that wait for one another in it look as in a hang.
    """
    if attempt.progress.best_step is None:
        return signs_of_death(findings)
    return signs_of_hang(findings, since)


def _looks_again(  # noqa: PLR0913, PLR0917 - whose silence, since when, and what was found in it
    turn: Turn,
    attempt: AttemptCase,
    policy: Policy,
    findings: tuple[Finding, ...],
    since: Instant,
    begun: Instant,
) -> bool:
    """Have witnesses look again while nobody confirms a silence; tell if that is waited for.

    A second time where one look showed a node; else now and then, for metrics may have had too few
    scrapes since the last step, and a node may die late. In between it goes on as any silence.
    """
    if attempt.progress.best_step is None:
        return False
    due = second_look(attempt, findings, since) or _next_look(attempt, policy, begun)
    if due is None:
        return False
    if turn.now < due:
        turn.wake(due)
        return False
    return is_awaited(turn, _ask(turn, attempt, policy, since), policy)


def _next_look(attempt: AttemptCase, policy: Policy, begun: Instant) -> Instant | None:
    """Return when witnesses are asked again about a silence found at ``begun``, None for no more.

    The pauses double. When it has lasted long enough it is looked at anyway.
    """
    asked = newest(attempt, Occasion.LIVING)
    if asked is None:
        return None
    pause = Span(min(max(between(begun, asked), 0) + FIRST_PAUSE, LAST_PAUSE))
    due = later(asked, pause)
    return due if due < later(begun, policy.hang_unconfirmed) else None


def _leave_alone(turn: Turn, attempt: AttemptCase, *, is_seen: bool) -> None:
    seen = "are at work" if is_seen else "were at work when they could last be seen"
    close(
        turn,
        attempt.number,
        WORK_GOES_ON,
        f"Its log is silent, but its GPUs {seen}: it is left alone. Should it stay silent, "
        "they are looked at again.",
    )


def _has_lasted(  # noqa: PLR0913 - what has lasted, since when, and under which policy
    turn: Turn,
    attempt: AttemptCase,
    policy: Policy,
    verdict: Verdict,
    begun: Instant,
    *,
    is_new: bool,
) -> bool:
    """Tell whether a silence that nobody confirms has lasted long enough to act on it alone.

    Before the first step it never has: a start may take any time (law 1).
    """
    if attempt.progress.best_step is None:
        if is_new:
            _tell_no_step(turn, attempt)
        return False
    due = later(begun, policy.hang_unconfirmed)
    if turn.now >= due:
        return True
    turn.wake(due)
    attempt = turn.case.attempt(attempt.number) or attempt
    is_told = is_planned(attempt)
    if is_told and not is_new:
        return False
    sentence = plan_for_silence(turn, attempt, policy, verdict, due)
    if not is_told:
        turn.tell(attempt.number, Topic.INCIDENT, HANG_UNCONFIRMED, sentence)
    return False


def _tell_no_step(turn: Turn, attempt: AttemptCase) -> None:
    turn.tell(
        attempt.number,
        Topic.INCIDENT,
        "no-step-seen",
        "No step of this attempt was ever seen, so its silence proves nothing: it is left alone "
        "until somebody else confirms that it hangs, or it ends.",
    )


def _act(
    turn: Turn,
    attempt: AttemptCase,
    policy: Policy,
    verdict: Verdict,
    signs: tuple[Finding, ...],
) -> None:
    if policy.hang is Response.RESTART:
        give_advice(turn, attempt.number, verdict, policy)
        return
    seen = f"Confirmed by {', '.join(dict.fromkeys(one.rule for one in signs))}." if signs else ""
    ruling = reported(HANG_REPORTED, verdict, seen)
    give_advice(turn, attempt.number, verdict, policy, ruling=ruling)
