"""A second opinion from outside: asked for, written down beside ours, and taken up with care.

An outside service can do one thing: where our own verdict names no node, it can name nodes of the
job's own allocation to leave out of the next attempt, while nothing has been ordered yet. It never
turns a restart into a stop nor a stop into a restart, since the one strands a job and the other
wastes a cluster on a word from elsewhere. Where it thinks otherwise, that is told for a person.
"""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase
from relight.engine.turns import Turn
from relight.engine.witnesses import BEFORE_TROUBLE
from relight.model.advice import Action, Approval, Decision
from relight.model.audit import Topic
from relight.model.evidence import Window
from relight.model.findings import Domain, Kind, Remedy
from relight.model.instants import Span, later
from relight.model.questions import AttributionAsked
from relight.model.stimuli import AttributionGiven
from relight.model.verdicts import Suspect, Verdict
from relight.policy.policies import Policy

MOST_ANSWERS = 8
MOST_SENTENCE = 400
ENOUGH = 0.7
"""Confidence from which an outside answer is taken up: it must be sure, for we are not."""

_RESTARTS = frozenset({Decision.RESTART, Decision.RESTART_EXCLUDING_NODE, Decision.HOLD})
_BLAMES_NODES = frozenset({Domain.HARDWARE, Domain.NETWORK})
_PLAIN_RESTARTS = frozenset({Remedy.RESTART, Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_CLEAN})


def ask_attribution(turn: Turn, number: int, verdict: Verdict) -> None:
    """Ask outside services about an attempt, once for each cause that a verdict names."""
    attempt = turn.case.attempt(number)
    if attempt is None or not turn.book.is_attributed or verdict.kind is Kind.ENDING:
        return
    if attempt.asked_cause == verdict.cause:
        return
    turn.change(number, asked_cause=verdict.cause)
    trouble = attempt.ended_seen_at or turn.now
    window = Window(
        attempt=turn.case.key_of(number),
        allocation=attempt.allocation,
        since=later(trouble, Span(-BEFORE_TROUBLE)),
        until=turn.now,
        started_at=attempt.running_at,
        uid=attempt.fact.uid,
    )
    turn.questions.append(
        AttributionAsked(
            job=turn.case.key,
            attempt=number,
            ours=verdict,
            window=window,
            is_living=attempt.ended_seen_at is None,
        )
    )


def note_attribution(turn: Turn, given: AttributionGiven) -> None:
    """Take in what an outside service says, with our own answer beside it and whose won."""
    attempt = turn.case.attempt(given.attempt)
    if attempt is None:
        return
    given = msgspec.structs.replace(given, sentence=given.sentence[:MOST_SENTENCE])
    who = given.provider or "The attribution service"
    if given.unseen:
        said = f"{who} gave no answer, which changes nothing: {given.unseen[:MOST_SENTENCE]}"
        turn.tell(given.attempt, Topic.VERDICT, "attribution-unseen", said)
        return
    attempt = turn.change(
        given.attempt, attributions=(*attempt.attributions, given)[-MOST_ANSWERS:]
    )
    ours = attempt.incident.verdict if attempt.incident is not None else None
    won = _winner(attempt, given, ours, turn.book.policy(turn.case.choice.policy))
    turn.tell(
        given.attempt,
        Topic.VERDICT,
        f"attribution-{won}",
        f"{who} says {_theirs(given)}; relight says {_ours(ours)}: {_WORDS[won]}.",
        provider=given.provider,
        theirs=given.sentence,
        ours=ours.sentence if ours is not None else "",
        phase=given.phase,
        confidence=f"{given.confidence:.2f}",
    )


_WORDS = {
    "agrees": "both say the same",
    "taken-up": "relight names no node, so theirs is taken up while nothing is ordered",
    "late": "relight names no node, but theirs came too late to be taken up",
    "differs": "relight's own stands; look at both",
}


def taken_up(attempt: AttemptCase, verdict: Verdict, policy: Policy) -> Verdict:
    """Return the verdict with the nodes that an outside service names, where it may add them.

    A policy that may not exclude is not asked to: the restart would be refused as a whole.
    """
    if Action.EXCLUDE not in policy.may:
        return verdict
    for given in reversed(attempt.attributions):
        nodes = _nodes_to_add(attempt, given, verdict)
        if nodes:
            who = given.provider or "an attribution service"
            share = round(1 / len(nodes), 3)
            return msgspec.structs.replace(
                verdict,
                remedy=Remedy.RESTART_EXCLUDING_NODE,
                suspects=tuple(
                    Suspect(node=node, share=share, why=f"{who} names it") for node in nodes
                ),
                sentence=f"{verdict.sentence}; {who} blames {', '.join(nodes)}",
            )
    return verdict


def _winner(
    attempt: AttemptCase, given: AttributionGiven, ours: Verdict | None, policy: Policy | None
) -> str:
    if ours is None:
        return "differs"
    may = policy is not None and Action.EXCLUDE in policy.may
    if may and _nodes_to_add(attempt, given, ours):
        return "late" if _is_settled(attempt) else "taken-up"
    theirs = set(_own_nodes(attempt, given))
    says_stop = given.decision is Decision.STOP
    would_stop = ours.remedy in (Remedy.STOP, Remedy.CONFIRM_THEN_STOP)
    agrees = given.domain is ours.domain and theirs == {one.node for one in ours.suspects}
    return "agrees" if agrees and (not says_stop or would_stop) else "differs"


def _nodes_to_add(
    attempt: AttemptCase, given: AttributionGiven, verdict: Verdict
) -> tuple[str, ...]:
    nodes = _own_nodes(attempt, given)
    is_sure = given.confidence >= ENOUGH and given.domain in _BLAMES_NODES
    fits = given.decision is None or given.decision in _RESTARTS
    few = len(nodes) * 2 <= len(attempt.allocation.nodes)
    if not is_sure or not fits or not few or verdict.suspects:
        return ()
    return nodes if verdict.remedy in _PLAIN_RESTARTS else ()


def _is_settled(attempt: AttemptCase) -> bool:
    """Tell whether an advice is followed, agreed to or over, and so no longer changed."""
    advice = attempt.advice
    if advice is None:
        return False
    is_agreed = advice.approval is Approval.APPROVED
    return bool(attempt.orders_given) or not advice.is_active or is_agreed


def _own_nodes(attempt: AttemptCase, given: AttributionGiven) -> tuple[str, ...]:
    """Return the nodes that it names and that are the attempt's own (law 10)."""
    named = (attempt.allocation.member(name) for name in given.nodes)
    return tuple(dict.fromkeys(node for node in named if node is not None))


def _theirs(given: AttributionGiven) -> str:
    where = f" on {', '.join(given.nodes[:5])}" if given.nodes else ""
    what = f" and advises {given.decision}" if given.decision is not None else ""
    return f"{given.cause or given.domain}{where}{what}"


def _ours(verdict: Verdict | None) -> str:
    if verdict is None:
        return "nothing yet"
    where = f" on {', '.join(one.node for one in verdict.suspects)}" if verdict.suspects else ""
    return f"{verdict.cause} ({verdict.domain}){where}"
