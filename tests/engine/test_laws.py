"""Any stimuli in any order: the laws of the design hold after every single one."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.engine.cases import Case
from relight.engine.hearing import HEARD_LATELY
from relight.engine.replaying import compare, replay
from relight.engine.step import Step, step
from relight.engine.trouble import MOST_MARKS, lost_part
from relight.engine.witnesses import MOST_LOOKS, is_testimony
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
from relight.model.evidence import Witness
from relight.model.findings import Domain, Kind, Provenance, Remedy, Role
from relight.model.incidents import PHASE_MOVES, Phase
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobState, NodeFact, NodeState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.progress import Progress
from relight.model.questions import AttributionAsked, EvidenceAsked
from relight.model.records import Record
from relight.model.stimuli import (
    AttemptSeen,
    AttributionGiven,
    CapacitySeen,
    EvidenceSeen,
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
from relight.policy.policies import Policy, PolicyBook, Response
from relight.testing.stories import KEY, NODES, START, fact, finding
from relight.testing.witnessed import witnessed_book

ATTEMPTS = st.integers(0, 3)
HOSTS = st.sampled_from([*NODES, "node-99"])
STEPS = st.none() | st.integers(0, 40)
RULES = ["ecc", "bug", "watchdog", "gpus-work", "gpus-spin", "gpu-idle-among-busy", "node-down"]
TROUBLES = (
    ("no-progress", Kind.HANG, "silence"),
    ("slowdown", Kind.SLOW, "slowdown"),
    ("loss-not-a-number", Kind.NUMERIC, "numerics"),
    ("loss-spike", Kind.NUMERIC, "numerics"),
)
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
        st.sampled_from(RULES),
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
        detector=st.sampled_from(["signatures", "silence", "slowdown", "numerics", "telemetry"]),
    ).flatmap(
        lambda one: st.builds(
            msgspec.structs.replace,
            st.just(one),
            provenance=st.sampled_from(Provenance),
            step=STEPS,
            at=st.none() | at,
        )
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
        st.builds(
            EvidenceSeen,
            job=job,
            seen_at=at,
            attempt=ATTEMPTS,
            witness=st.sampled_from(Witness),
            until=at,
            found=st.integers(0, 3),
            unseen=st.sampled_from(["", "the server is down"]),
            blind=st.sampled_from([(), ("no throttle reasons",)]),
        ),
        st.builds(
            AttributionGiven,
            job=job,
            seen_at=at,
            attempt=ATTEMPTS,
            domain=st.sampled_from(Domain),
            nodes=st.lists(HOSTS, max_size=2).map(tuple),
            decision=st.none() | st.sampled_from(Decision),
            confidence=st.floats(0, 1),
            unseen=st.sampled_from(["", "no answer"]),
        ),
        st.builds(Tick, job=job, seen_at=at),
    )


def troubled(at: st.SearchStrategy[Instant]) -> st.SearchStrategy[Stimulus]:
    """Return what a running attempt in trouble meets, mostly: hangs, slowness, bad numbers."""
    findings = st.one_of(
        *(
            st.builds(
                finding,
                st.just(rule),
                kind=st.just(kind),
                role=st.just(Role.EITHER),
                remedy=st.sampled_from(
                    [Remedy.RESTART, Remedy.REPORT, Remedy.RESTART_EXCLUDING_NODE]
                ),
                detector=st.just(detector),
                nodes=st.lists(HOSTS, max_size=1).map(tuple),
                seen_at=at,
                offset=st.integers(0, 9),
            )
            for rule, kind, detector in TROUBLES
        )
    )
    testimony = st.builds(
        msgspec.structs.replace,
        findings,
        provenance=st.sampled_from([Provenance.TELEMETRY, Provenance.KERNEL, Provenance.SCHEDULER]),
        rule=st.sampled_from(RULES),
    )
    job = st.just(KEY)
    return st.one_of(
        st.builds(FindingMade, job=job, seen_at=at, finding=findings),
        st.builds(FindingMade, job=job, seen_at=at, finding=testimony),
        st.builds(
            ProgressSeen,
            job=job,
            seen_at=at,
            attempt=st.just(0),
            progress=st.builds(Progress, best_step=STEPS, best_checkpoint=STEPS),
        ),
        st.builds(
            EvidenceSeen,
            job=job,
            seen_at=at,
            attempt=st.just(0),
            witness=st.sampled_from(Witness),
            until=at,
        ),
        st.builds(Tick, job=job, seen_at=at),
        stimuli(at),
    )


BEGUN = AttemptSeen(job=KEY, seen_at=START, fact=fact(JobState.RUNNING))
LIVES = st.one_of(
    st.lists(stimuli(INSTANTS), max_size=25),
    st.lists(troubled(INSTANTS), max_size=25).map(lambda life: [BEGUN, *life]),
).map(lambda lives: sorted(lives, key=lambda one: one.seen_at))
BOOKS = st.builds(
    witnessed_book,
    st.sampled_from(Mode),
    st.lists(st.sampled_from(Witness), unique=True).map(tuple),
    is_attributed=st.booleans(),
    max_restarts=st.integers(0, 3),
    may=st.lists(st.sampled_from(Action), unique=True).map(tuple),
    hang=st.sampled_from(Response),
    slow=st.sampled_from(Response),
    numeric=st.sampled_from(Response),
    signal_first=st.sampled_from(["", "USR1@60", "B:TERM@5"]),
    flight_recorder=st.sampled_from(["", "/srv/dumps/rank_"]),
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
        assert set(advice.permit.actions) <= {*policy.may, Action.SIGNAL}
        if Action.SIGNAL in advice.permit.actions and Action.SIGNAL not in policy.may:
            assert policy.signal_first
            assert Action.REQUEUE in policy.may
        assert Action.REQUEUE in policy.may or advice.decision is Decision.STOP
    if advice.decision is not Decision.RESTART_EXCLUDING_NODE and advice.generation == 1:
        assert advice.exclusions == ()
    assert len(advice.exclusions) >= advice.least_exclusions
    if advice.forewarning is not None:
        assert advice.while_living
        assert policy.signal_first
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


@given(LIVES, BOOKS)
@settings(max_examples=100, deadline=None)
def test_a_living_attempt_is_given_up_only_for_a_line_a_silence_or_a_policy(
    life: list[Stimulus], policies: PolicyBook
) -> None:
    policy = policies.policies[0]
    for _, taken in live(life, policies):
        for advice in taken.advice:
            attempt = taken.case.attempt(advice.attempt.attempt)
            if advice.decision is Decision.NONE or not advice.while_living or attempt is None:
                continue
            told = [one for one in attempt.findings if not is_testimony(one)]
            speaks = {one.detector for one in told} - {"slowdown", "numerics"}
            allowed = policy.slow is Response.RESTART or policy.numeric is not Response.REPORT
            lost = bool(attempt.gone_nodes) or any(one.task_gone for one in attempt.findings)
            assert speaks or allowed or lost, "no witness restarts a living attempt by itself"


@given(LIVES, BOOKS)
@settings(max_examples=100, deadline=None)
def test_what_is_kept_of_witnesses_is_bounded_and_only_those_of_the_book_are_asked(
    life: list[Stimulus], policies: PolicyBook
) -> None:
    for _, taken in live(life, policies):
        for question in taken.questions:
            match question:
                case EvidenceAsked(witness=witness, window=window):
                    assert witness in policies.witnesses
                    assert window.since <= window.until
                    has_path = bool(window.flight_recorder)
                    assert has_path is (witness is Witness.FLIGHT_RECORDER)
                case AttributionAsked():
                    assert policies.is_attributed
                case _:
                    pass
        for attempt in taken.case.attempts:
            assert len(attempt.looks) <= MOST_LOOKS
            assert len(attempt.marks) <= MOST_MARKS


@given(LIVES, BOOKS)
@settings(max_examples=100, deadline=None)
def test_leave_to_end_what_lives_holds_only_while_it_is_listened_to(
    life: list[Stimulus], policies: PolicyBook
) -> None:
    for stimulus, (_, taken) in zip(life, live(life, policies), strict=True):
        for attempt in taken.case.attempts[-2:]:
            advice, incident = attempt.advice, attempt.incident
            if advice is None or advice.permit is None or not advice.is_active:
                continue
            is_over = attempt.ended_seen_at is not None or attempt.orders_given
            if is_over or not advice.while_living or incident is None:
                continue
            if incident.kind is Kind.SLOW or lost_part(attempt, incident):
                continue
            assert not attempt.logs_unseen
            assert attempt.heard_at is not None
            assert stimulus.seen_at - attempt.heard_at <= HEARD_LATELY


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
