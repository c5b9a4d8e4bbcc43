"""A job's case and audit as a story: what was seen, what was concluded, what was done.

Every sentence is one that the case or the audit holds; this only puts them in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from relight.cli.testimony import what_witnesses_said
from relight.engine.cases import AttemptCase, Case, Requeuer
from relight.engine.plans import plan_of
from relight.model.advice import Advice, Approval
from relight.model.audit import AuditEntry, Topic
from relight.model.findings import Evidence, Kind
from relight.model.hostlists import compress
from relight.model.incidents import Incident, Phase, TimeSplit
from relight.model.instants import Instant, between, show_span, to_iso
from relight.model.jobs import ENDED
from relight.model.records import Record
from relight.model.verdicts import Verdict

TOLD_FROM_AUDIT = frozenset({Topic.PERSON, Topic.RECONCILIATION, Topic.RECOVERY})
"""What only the audit knows in words; the rest stands in the case."""

_MOST_SET_ASIDE = 10
_MOST_PROGRESS = 3
_LEARNED = 2
_OF_STEPS = frozenset({Kind.HANG, Kind.SLOW})
_LONGEST = 180
"""Characters of a quoted line; the whole of it stands in the job's own file."""


class Line(Record, frozen=True, kw_only=True):
    """One sentence or quoted line, and how deep it stands."""

    text: str
    depth: int = 0


class Chapter(Record, frozen=True, kw_only=True):
    """A title and what belongs under it."""

    title: str
    lines: tuple[Line, ...] = ()


def story(case: Case, entries: Sequence[AuditEntry]) -> tuple[Chapter, ...]:
    """Return the story of a job: how it is watched, then its attempts, first to last."""
    latest = case.latest
    name = f" {latest.fact.name}" if latest and latest.fact.name else ""
    watched = Chapter(title=f"Job {case.key}{name}", lines=tuple(_opt_in(case)))
    told = [_attempt(attempt, entries) for attempt in case.attempts]
    return (watched, *told)


def _opt_in(case: Case) -> Iterator[Line]:
    choice = case.choice
    if choice.errors:
        yield Line(text="It is opted in, but with errors, so it is left alone:")
        for error in choice.errors:
            yield Line(text=error, depth=1)
    elif choice.opted_in:
        limit = choice.max_restarts
        narrowed = "" if limit is None else f", at most {limit} restarts by its own word"
        yield Line(text=f"It is opted in under policy {choice.policy}{narrowed}.")
    else:
        yield Line(text="It is not opted in: it is watched, and nothing is done for it.")
    for note in choice.notes:
        yield Line(text=note, depth=1)
    if case.is_gone:
        yield Line(text="The scheduler no longer knows it.")


def _attempt(attempt: AttemptCase, entries: Sequence[AuditEntry]) -> Chapter:
    lines = [*_run(attempt)]
    present = () if attempt.incident is None else (attempt.incident,)
    for incident in (*attempt.past_incidents, *present):
        lines += _incident(incident)
    lines += [Line(text=said, depth=1) for said in what_witnesses_said(attempt)]
    plan = plan_of(attempt)
    if plan is not None:
        lines.append(Line(text=f"Planned: {plan.reason.sentence}"))
    if attempt.advice is not None:
        lines += _advice(attempt.advice)
        lines += _restarts(attempt)
    happened = [
        *_orders(attempt),
        *(
            (entry.at, entry.reason.sentence)
            for entry in entries
            if entry.attempt == attempt.number and entry.topic in TOLD_FROM_AUDIT
        ),
    ]
    lines += [Line(text=f"{_when(at)} {text}") for at, text in sorted(happened)]
    for incident in present:
        lines += _outcome(incident)
    return Chapter(title=f"Attempt {attempt.number}", lines=tuple(lines))


def _run(attempt: AttemptCase) -> Iterator[Line]:
    yield Line(text=_life(attempt))
    progress = attempt.progress
    if progress.resumed_from:
        yield Line(text=f"It resumed from the checkpoint of step {progress.resumed_from}.")
    elif progress.resumed_from == 0:
        yield Line(text="It began from the start.")
    if progress.best_step is not None:
        kept = progress.best_checkpoint
        none = ", no newer checkpoint" if progress.resumed_from else ", no checkpoint"
        durable = f", checkpoint of step {kept}" if kept is not None else none
        yield Line(text=f"Its best completed step is {progress.best_step}{durable}.")
    if attempt.logs_unseen:
        yield Line(text=f"Its logs could not be read: {attempt.logs_unseen}")


def _life(attempt: AttemptCase) -> str:
    fact = attempt.fact
    nodes = attempt.allocation.nodes or fact.nodes
    where = f" on {compress(nodes)}" if nodes else ""
    began = attempt.running_at or fact.started_at
    since = f" from {_when(began)}" if began is not None else ""
    if attempt.ended_seen_at is None:
        state = fact.state.value.replace("_", " ")
        return f"It is {state}{where}{since.replace(' from ', ' since ')}."
    ended = _when(attempt.ended_at or attempt.ended_seen_at)
    if fact.state not in ENDED:
        return f"It ran{where}{since} until it was requeued by {_by(attempt)} at {ended}."
    code = f" with exit code {fact.exit_status}" if fact.exit_status else ""
    state = fact.state.value.replace("_", " ")
    return f"It ran{where}{since} to {ended}: {state}{code}."


def _by(attempt: AttemptCase) -> str:
    words = {Requeuer.RELIGHT: "relight", Requeuer.SCHEDULER: "the scheduler itself"}
    return words.get(attempt.requeued_by, "somebody")


def _incident(incident: Incident) -> Iterator[Line]:
    verdict = incident.verdict
    if verdict is None:
        yield Line(text=f"Something went wrong at {_when(incident.opened_at)}; no verdict yet.")
        for finding in incident.findings:
            yield Line(text=finding.sentence, depth=1)
        return
    domain = verdict.domain.value.replace("_", " ")
    said = verdict.sentence[:1].upper() + verdict.sentence[1:]
    yield Line(text=f"What happened: {said}.")
    yield Line(
        text=f"Cause {verdict.cause}, domain {domain}, confidence {verdict.confidence:.0%}.",
        depth=1,
    )
    for suspect in verdict.suspects:
        yield Line(text=f"Suspect {suspect.node} ({suspect.share:.0%}): {suspect.why}.", depth=1)
    yield from _evidence(_worth_showing(verdict))
    yield from _set_aside(verdict)


def _worth_showing(verdict: Verdict) -> tuple[Evidence, ...]:
    """Return the evidence of a verdict; where steps went on or ceased, only the last of these.

    Lines of progress are all alike. What was learned of them, and the limit, come before them.
    """
    if verdict.kind not in _OF_STEPS:
        return verdict.evidence
    shown: dict[str, Evidence] = {}
    for one in verdict.evidence:
        if one.text not in shown or one.is_root:
            shown[one.text] = one
    roots = [one for one in shown.values() if one.is_root]
    others = [one for one in shown.values() if not one.is_root]
    learned, rest = others[:_LEARNED], others[_LEARNED:]
    return (*roots[:_MOST_PROGRESS], *learned, *rest[-_MOST_PROGRESS:])


def _evidence(evidence: Iterable[Evidence]) -> Iterator[Line]:
    for one in evidence:
        mark = "»" if one.is_root else " "
        place = f"  ({one.place.file}:{one.place.line})" if one.place and one.is_root else ""
        text = one.text if len(one.text) <= _LONGEST else one.text[:_LONGEST] + "…"
        yield Line(text=f"{mark} {text}{place}", depth=2)


def _set_aside(verdict: Verdict) -> Iterator[Line]:
    counted = Counter((one.rule, one.why) for one in verdict.set_aside)
    for (rule, why), count in counted.most_common(_MOST_SET_ASIDE):
        times = f" ({count} times)" if count > 1 else ""
        yield Line(text=f"Set aside {rule}{times}: {why}.", depth=1)
    more = len(counted) - _MOST_SET_ASIDE
    if more > 0:
        yield Line(text=f"{more} more kinds of line were set aside.", depth=1)
    for other in verdict.alternatives:
        yield Line(
            text=f"It could also be {other.cause} ({other.confidence:.0%}): {other.why}", depth=1
        )


def _advice(advice: Advice) -> Iterator[Line]:
    decision = advice.decision.value.replace("_", " ")
    yield Line(text=f"Advice at {_when(advice.made_at)}: {decision}. {advice.reason.sentence}")
    if advice.exclusions:
        yield Line(text=f"Left out: {', '.join(advice.exclusions)}.", depth=1)
    if advice.given_back:
        yield Line(text=f"Given back: {', '.join(advice.given_back)}.", depth=1)
    if advice.cost is not None and advice.cost.steps_lost is not None:
        yield Line(text=f"Steps lost: {advice.cost.steps_lost}.", depth=1)
    approval = "" if advice.approval is Approval.NOT_NEEDED else f", {advice.approval.value}"
    yield Line(text=f"Mode {advice.mode.value}{approval}; policy {advice.policy}.", depth=1)


def _restarts(attempt: AttemptCase) -> Iterator[Line]:
    restarts = attempt.restarts
    if restarts is not None:
        left = max(0, restarts.allowed - restarts.used)
        used = f"{restarts.used} of {restarts.allowed} restarts without progress were used"
        yield Line(text=f"When it was given, {used}; {left} left.", depth=1)


def _orders(attempt: AttemptCase) -> Iterator[tuple[Instant, str]]:
    for outcome in attempt.orders:
        answer = f": {outcome.answer}" if outcome.answer else ""
        left_out = f" without {compress(outcome.order.exclude)}" if outcome.order.exclude else ""
        yield (
            outcome.ordered_at,
            f"order {outcome.order.verb.value}{left_out}, {outcome.outcome.value}{answer}",
        )


def _outcome(incident: Incident) -> Iterator[Line]:
    if incident.false_recovery:
        yield Line(text="It started from scratch, not from a checkpoint: a false recovery.")
    spans = "; ".join(_spans(incident.times))
    if spans:
        yield Line(text=f"Time: {spans}.")
    if incident.closed is not None:
        yield Line(text=incident.closed.sentence)
    elif incident.phase is not Phase.CLOSED:
        yield Line(text=f"The incident is {incident.phase.value}.")


def _spans(times: TimeSplit) -> Iterator[str]:
    steps = (
        ("fault", times.fault),
        ("ended", times.ended),
        ("detected", times.detected),
        ("advised", times.advised),
        ("ordered", times.ordered),
        ("running", times.running),
        ("first step", times.first_step),
        ("caught up", times.caught_up),
    )
    known = [(name, at) for name, at in steps if at is not None]
    if not known:
        return
    yield f"{known[0][0]} at {_when(known[0][1])}"
    for name, at in sorted(known[1:], key=lambda one: one[1]):
        # Slurm's own instants are whole seconds and may lie just before the fault's.
        yield f"{name} +{show_span(max(0, between(known[0][1], at)))}"


def _when(at: Instant) -> str:
    return to_iso(at)[:19] + "Z"
