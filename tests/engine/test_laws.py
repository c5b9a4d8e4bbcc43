"""Any stimuli in any order: the laws of the design hold after every single one."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.engine.cases import Case
from relight.engine.replaying import compare, replay
from relight.engine.step import Step, step
from relight.model.advice import (
    DISPOSITION_MOVES,
    Action,
    Advice,
    Decision,
    Disposition,
    Mode,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.audit import AuditEntry
from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.incidents import PHASE_MOVES, Phase
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobState, NodeFact, NodeState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.progress import Progress
from relight.model.records import Record
from relight.model.stimuli import (
    AttemptSeen,
    CapacitySeen,
    FindingMade,
    JobGone,
    NodeSeen,
    OrderDone,
    PersonSaid,
    ProgressSeen,
    StatusSeen,
    Stimulus,
    Tick,
    Word,
)
from relight.policy.policies import Policy, PolicyBook
from relight.testing.stories import KEY, NODES, START, book, fact, finding

ATTEMPTS = st.integers(0, 3)
HOSTS = st.sampled_from([*NODES, "node-99"])
STEPS = st.none() | st.integers(0, 40)
INSTANTS = st.integers(0, 4000).map(lambda count: Instant(START + seconds(count)))


def stimuli(at: st.SearchStrategy[Instant]) -> st.SearchStrategy[Stimulus]:
    """Return every kind of stimulus with every kind of content, consistent or not."""
    facts = st.builds(
        fact,
        st.sampled_from(JobState),
        ATTEMPTS,
        exit_status=st.none() | st.integers(0, 137),
        successors=st.sampled_from([(), ("8",)]),
        requeue_allowed=st.booleans(),
    )
    findings = st.builds(
        finding,
        st.sampled_from(["ecc", "bug", "watchdog"]),
        attempt=ATTEMPTS,
        role=st.sampled_from(Role),
        domain=st.sampled_from(Domain),
        remedy=st.sampled_from(Remedy),
        kind=st.sampled_from(Kind),
        ranks=st.lists(st.integers(0, 5), max_size=2).map(tuple),
        tasks=st.lists(st.integers(0, 5), max_size=2).map(tuple),
        nodes=st.lists(HOSTS, max_size=2).map(tuple),
        seen_at=at,
        offset=st.integers(0, 3),
        task_gone=st.booleans(),
    )
    key = st.builds(Case(key=KEY).key_of, ATTEMPTS)
    orders = st.builds(
        OrderOutcome,
        order=st.builds(
            Order, attempt=key, generation=st.integers(1, 3), verb=st.sampled_from(Verb)
        ),
        outcome=st.sampled_from(Outcome),
        answer=st.just(""),
        ordered_at=at,
        answered_at=at,
    )
    nodes = st.builds(
        NodeFact, cluster=st.just("main"), name=HOSTS, state=st.sampled_from(NodeState)
    )
    status = st.builds(
        ReconciliationStatus,
        disposition=st.sampled_from(Disposition),
        reason=st.sampled_from(StatusReason),
        generation=st.integers(0, 3),
    )
    fit = st.none() | st.integers(0, 6)
    job = st.just(KEY)
    return st.one_of(
        st.builds(AttemptSeen, job=job, seen_at=at, fact=facts),
        st.builds(JobGone, job=job, seen_at=at),
        st.builds(NodeSeen, job=job, seen_at=at, fact=nodes),
        st.builds(
            CapacitySeen,
            job=job,
            seen_at=at,
            without=st.lists(HOSTS, max_size=2).map(tuple),
            fit_now=fit,
            fit_ever=fit,
        ),
        st.builds(FindingMade, job=job, seen_at=at, finding=findings),
        st.builds(
            ProgressSeen,
            job=job,
            seen_at=at,
            attempt=ATTEMPTS,
            progress=st.builds(
                Progress,
                best_step=STEPS,
                last_step=STEPS,
                best_checkpoint=STEPS,
                resumed_from=STEPS,
                first_step=STEPS,
            ),
            final=st.booleans(),
            logs_unseen=st.sampled_from(["", "no rights"]),
        ),
        st.builds(OrderDone, job=job, seen_at=at, outcome=orders),
        st.builds(StatusSeen, job=job, seen_at=at, attempt=ATTEMPTS, status=status),
        st.builds(
            PersonSaid,
            job=job,
            seen_at=at,
            attempt=ATTEMPTS,
            generation=st.integers(1, 3),
            word=st.sampled_from(Word),
            who=st.just("olivia"),
        ),
        st.builds(Tick, job=job, seen_at=at),
    )


LIVES = st.lists(stimuli(INSTANTS), max_size=25).map(
    lambda lives: sorted(lives, key=lambda one: one.seen_at)
)
BOOKS = st.builds(
    book,
    st.sampled_from(Mode),
    max_restarts=st.integers(0, 3),
    may=st.lists(st.sampled_from(Action), unique=True).map(tuple),
)


def live(life: list[Stimulus], policies: PolicyBook) -> list[tuple[Case, Step]]:
    """Return each case before a stimulus, with the step that followed."""
    case = Case(key=KEY)
    steps: list[tuple[Case, Step]] = []
    for stimulus in life:
        taken = step(case, stimulus, policies)
        steps.append((case, taken))
        case = taken.case
    return steps


@given(LIVES, BOOKS)
@settings(max_examples=400, deadline=None)
def test_every_advice_keeps_the_laws(life: list[Stimulus], policies: PolicyBook) -> None:
    policy = policies.policies[0]
    for before, taken in live(life, policies):
        for advice in taken.advice:
            check_advice(advice, policy)
            attempt = taken.case.attempt(advice.attempt.attempt)
            assert attempt is not None
            assert attempt.advice == advice, "one active advice an attempt: the newest"
            assert set(advice.exclusions) <= set(attempt.allocation.nodes), "law 10"
            earlier = before.attempt(advice.attempt.attempt)
            if earlier is not None and earlier.advice is not None:
                check_change(earlier.advice, advice)


def check_advice(advice: Advice, policy: Policy) -> None:
    if advice.mode is Mode.MONITOR:
        assert advice.permit is None, "law 3: monitor mode grants nothing"
    if advice.permit is not None:
        assert set(advice.permit.actions) <= set(policy.may)
        assert Action.REQUEUE in policy.may or advice.decision is Decision.STOP
    if advice.decision is not Decision.RESTART_EXCLUDING_NODE and advice.generation == 1:
        assert advice.exclusions == ()
    assert len(advice.exclusions) >= advice.least_exclusions
    assert advice.reason.code, "law 12"
    assert advice.reason.sentence, "law 12"
    assert advice.expires_at is not None, "law 4: nothing waits for ever"


def check_change(old: Advice, new: Advice) -> None:
    assert new.generation >= old.generation
    if new.generation == old.generation and new.status.disposition is not old.status.disposition:
        assert new.status.disposition in DISPOSITION_MOVES[old.status.disposition]


@given(LIVES, BOOKS)
@settings(max_examples=200, deadline=None)
def test_phases_move_only_by_their_table(life: list[Stimulus], policies: PolicyBook) -> None:
    for before, taken in live(life, policies):
        for attempt in taken.case.attempts:
            earlier = before.attempt(attempt.number)
            if earlier is None or earlier.incident is None or attempt.incident is None:
                continue
            old, new = earlier.incident, attempt.incident
            if old.id == new.id and old.phase is not new.phase:
                assert reachable(old.phase, new.phase)


def reachable(start: Phase, end: Phase) -> bool:
    return end in PHASE_MOVES[start] or any(reachable(one, end) for one in PHASE_MOVES[start])


@given(LIVES, BOOKS)
@settings(max_examples=200, deadline=None)
def test_a_job_that_a_person_or_success_ended_is_never_given_a_restart_at_its_end(
    life: list[Stimulus], policies: PolicyBook
) -> None:
    ended = (JobState.CANCELLED, JobState.COMPLETED)
    for before, taken in live(life, policies):
        for advice in taken.advice:
            earlier = before.attempt(advice.attempt.attempt)
            known = earlier.advice.generation if earlier and earlier.advice else 0
            attempt = taken.case.attempt(advice.attempt.attempt)
            if advice.generation > known and attempt and attempt.fact.state in ended:
                assert (
                    advice.decision in (Decision.NONE, Decision.STOP)
                    or advice.given_back
                    or (advice.approval == "approved")
                )


@given(LIVES, BOOKS)
@settings(max_examples=200, deadline=None)
def test_no_case_asks_to_be_woken_at_an_instant_that_has_passed(
    life: list[Stimulus], policies: PolicyBook
) -> None:
    for stimulus, (_, taken) in zip(life, live(life, policies), strict=True):
        wake = taken.case.wake_at
        assert wake is None or wake > stimulus.seen_at


class Recorded(Record, frozen=True, kw_only=True):
    """A journal record of the test's own."""

    stimulus: Stimulus
    book: str


@given(LIVES, BOOKS)
@settings(max_examples=100, deadline=None)
def test_the_journal_alone_leads_to_the_same_decisions(
    life: list[Stimulus], policies: PolicyBook
) -> None:
    advice: dict[tuple[str, int], Advice] = {}
    entries: list[AuditEntry] = []
    for _, taken in live(life, policies):
        advice.update({(one.id, one.generation): one for one in taken.advice})
        entries += taken.entries
    written = msgspec.json.encode([Recorded(stimulus=one, book="b") for one in life])
    read = msgspec.json.decode(written, type=list[Recorded])
    report = compare(replay(read, {"b": policies}), advice.values(), entries)
    assert report.is_same, report.differences
