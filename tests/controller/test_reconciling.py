"""The whole table of what follows, and the laws that hold for any fact and any advice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.controller.notes import write_note
from relight.controller.reconciling import (
    CREDENTIAL_WAIT,
    Act,
    Next,
    Past,
    Settled,
    Wait,
    is_permitted,
    reconcile,
)
from relight.model.advice import (
    Action,
    Advice,
    Approval,
    Decision,
    Mode,
    Permit,
)
from relight.model.instants import Instant, later, seconds
from relight.model.jobs import ENDED, AttemptKey, Holder, JobFact, JobState
from relight.model.orders import Verb
from relight.model.reasons import Reason
from relight.testing.stories import KEY, NODES, START, fact

NOW = later(START, seconds(60))
PEOPLE = (Holder.USER, Holder.ADMIN, Holder.UNKNOWN)
RESTARTS = (Decision.RESTART, Decision.RESTART_EXCLUDING_NODE, Decision.HOLD)
WITHOUT = Decision.RESTART_EXCLUDING_NODE
BASE = Advice(
    attempt=AttemptKey(job=KEY, attempt=1),
    generation=1,
    decision=WITHOUT,
    mode=Mode.ACT,
    reason=Reason(code="restart-excluding-node", sentence="Restart without node-02: ecc."),
    made_at=START,
    exclusions=("node-02",),
    permit=Permit(cluster="main", partition="train", policy="default", actions=tuple(Action)),
    policy="default",
)


def advice(**fields: object) -> Advice:
    return msgspec.structs.replace(BASE, **fields)


def waiting(**fields: object) -> JobFact:
    return fact(JobState.PENDING, 2, **fields)


def summed(step: Next) -> str:
    """Return a step in a word: the verb of an order, or where the advice has come to."""
    match step:
        case Act(order=order):
            return order.verb
        case Wait():
            return "wait"
        case Settled(disposition=disposition, reason=reason):
            return f"{disposition} {reason}"


ENDED_BADLY = sorted(ENDED - {JobState.COMPLETED, JobState.CANCELLED})
STILL_AT_IT = [
    *((state, living, "requeue") for state in ENDED_BADLY for living in (False, True)),
    *(
        (state, living, "wait")
        for state in (
            JobState.PENDING,
            JobState.HELD,
            JobState.COMPLETING,
            JobState.SUSPENDED,
            JobState.UNKNOWN,
        )
        for living in (False, True)
    ),
    *((JobState.COMPLETED, living, "abandoned superseded") for living in (False, True)),
    *((JobState.CANCELLED, living, "abandoned changed_by_person") for living in (False, True)),
    (JobState.RUNNING, False, "wait"),
    (JobState.RUNNING, True, "requeue"),
]


@pytest.mark.parametrize("decision", RESTARTS)
@pytest.mark.parametrize(("state", "living", "expected"), STILL_AT_IT)
def test_a_restart_of_the_latest_attempt_by_its_state(
    *, state: JobState, living: bool, expected: str, decision: Decision
) -> None:
    wanted = advice(decision=decision, while_living=living)
    for past in (Past.NEVER, Past.ORDERED):
        assert summed(reconcile(fact(state, 1), wanted, past, NOW)) == expected
    refused = reconcile(fact(state, 1), wanted, Past.REFUSED, NOW)
    assert summed(refused) == ("abandoned scheduler_refused" if expected == "requeue" else expected)


def test_every_state_of_the_latest_attempt_is_in_the_table() -> None:
    assert {(state, living) for state, living, _ in STILL_AT_IT} == {
        (state, living) for state in JobState for living in (False, True)
    }


def test_a_living_attempt_is_requeued_only_while_it_lives() -> None:
    step = reconcile(fact(JobState.RUNNING, 1), advice(while_living=True), Past.NEVER, NOW)
    assert isinstance(step, Act)
    assert step.order.incomplete_only
    ended = reconcile(fact(JobState.FAILED, 1), advice(while_living=True), Past.NEVER, NOW)
    assert isinstance(ended, Act)
    assert not ended.order.incomplete_only
    assert ended.order.key != step.order.key


NEXT_ATTEMPT = [
    *((state, "converged desired_state_observed") for state in [*ENDED_BADLY, JobState.COMPLETED]),
    (JobState.RUNNING, "converged desired_state_observed"),
    (JobState.CANCELLED, "abandoned changed_by_person"),
    (JobState.COMPLETING, "wait"),
    (JobState.UNKNOWN, "wait"),
    (JobState.SUSPENDED, "wait"),
    (JobState.PENDING, "start"),
    (JobState.HELD, "start"),
]


@pytest.mark.parametrize("decision", RESTARTS)
@pytest.mark.parametrize(("state", "expected"), NEXT_ATTEMPT)
def test_the_attempt_after_our_requeue_by_its_state(
    state: JobState, expected: str, decision: Decision
) -> None:
    there = fact(state, 2, nodes=("node-01", "node-03", "node-04"))
    wanted = advice(decision=decision)
    assert summed(reconcile(there, wanted, Past.ORDERED, NOW)) == expected


def test_every_state_of_the_next_attempt_is_in_the_table() -> None:
    assert {state for state, _ in NEXT_ATTEMPT} == set(JobState)


@pytest.mark.parametrize(
    ("past", "noted", "by_scheduler", "expected"),
    [
        (Past.NEVER, False, False, "abandoned changed_by_person"),
        (Past.REFUSED, False, False, "abandoned changed_by_person"),
        (Past.ORDERED, False, False, "start"),
        (Past.NEVER, False, True, "start"),
        (Past.REFUSED, False, True, "start"),
        (Past.NEVER, True, False, "wait"),
        (Past.ORDERED, True, False, "wait"),
        (Past.NEVER, True, True, "wait"),
    ],
)
def test_a_waiting_job_is_started_only_where_the_requeue_was_ours_or_the_schedulers(
    *, past: Past, noted: bool, by_scheduler: bool, expected: str
) -> None:
    wanted = advice(already_requeued=by_scheduler)
    note = write_note("", wanted, None) if noted else ""
    assert summed(reconcile(waiting(note=note), wanted, past, NOW)) == expected


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        *((holder, "abandoned changed_by_person") for holder in PEOPLE),
        (Holder.LAUNCH_FAILURE, "start"),
        (Holder.MAX_REQUEUE, "start"),
        (Holder.NOBODY, "start"),
    ],
)
def test_a_hold_that_relight_did_not_place_stands(holder: Holder, expected: str) -> None:
    held = fact(JobState.HELD, 2, held_by=holder, reason="JobHeldUser")
    assert summed(reconcile(held, advice(), Past.ORDERED, NOW)) == expected


@pytest.mark.parametrize("holder", [Holder.LAUNCH_FAILURE, Holder.MAX_REQUEUE])
def test_a_hold_of_slurms_own_is_waited_out_once_the_advice_is_written_on_the_job(
    holder: Holder,
) -> None:
    wanted = advice(already_requeued=True)
    held = fact(JobState.HELD, 2, held_by=holder, note=write_note("", wanted, None))
    step = reconcile(held, wanted, Past.NEVER, NOW)
    assert isinstance(step, Wait)
    assert step.is_long
    assert "scontrol release 7" in step.why
    somebodys = msgspec.structs.replace(held, note="")
    step = reconcile(somebodys, advice(already_requeued=False), Past.NEVER, NOW)
    assert summed(step) == "abandoned changed_by_person"


@pytest.mark.parametrize("restarts", [0, 3, 9])
@pytest.mark.parametrize("decision", Decision)
def test_an_advice_about_another_attempt_orders_nothing(restarts: int, decision: Decision) -> None:
    step = reconcile(
        fact(JobState.FAILED, restarts), advice(decision=decision), Past.ORDERED, START
    )
    assert summed(step) == ("wait" if restarts == 0 else "abandoned superseded")


@pytest.mark.parametrize("decision", Decision)
def test_a_job_that_is_gone_abandons_any_advice(decision: Decision) -> None:
    step = reconcile(None, advice(decision=decision), Past.ORDERED, NOW)
    assert summed(step) == "abandoned job_gone"


@pytest.mark.parametrize("state", JobState)
def test_an_advice_that_waits_for_a_person_orders_nothing(state: JobState) -> None:
    for decision in Decision:
        wanted = advice(decision=decision, approval=Approval.WAITING, while_living=True)
        for ahead in (0, 1):
            step = reconcile(fact(state, 1 + ahead), wanted, Past.ORDERED, NOW)
            assert summed(step) in ("wait", "abandoned superseded")
            assert not isinstance(step, Act)


STOPS = [
    *((state, 1, False, "converged desired_state_observed") for state in sorted(ENDED)),
    *((state, 2, True, "converged desired_state_observed") for state in sorted(ENDED)),
    (JobState.RUNNING, 1, False, "cancel"),
    (JobState.PENDING, 2, True, "cancel"),
    (JobState.RUNNING, 2, True, "cancel"),
    (JobState.PENDING, 2, False, "abandoned changed_by_person"),
    (JobState.RUNNING, 2, False, "abandoned changed_by_person"),
    (JobState.COMPLETING, 1, False, "wait"),
    (JobState.COMPLETING, 2, True, "wait"),
]


@pytest.mark.parametrize(("state", "restarts", "by_scheduler", "expected"), STOPS)
def test_a_stop_cancels_what_still_runs_or_what_the_scheduler_brought_back(
    *, state: JobState, restarts: int, by_scheduler: bool, expected: str
) -> None:
    wanted = advice(decision=Decision.STOP, exclusions=(), already_requeued=by_scheduler)
    assert summed(reconcile(fact(state, restarts), wanted, Past.NEVER, NOW)) == expected


@pytest.mark.parametrize("holder", PEOPLE)
def test_a_job_that_a_person_holds_is_not_cancelled_either(holder: Holder) -> None:
    wanted = advice(decision=Decision.STOP, exclusions=(), already_requeued=True)
    held = fact(JobState.HELD, 2, held_by=holder, reason="JobHeldUser")
    assert summed(reconcile(held, wanted, Past.NEVER, NOW)) == "abandoned changed_by_person"


def test_no_action_is_needed_where_none_is_advised() -> None:
    for state in JobState:
        step = reconcile(fact(state, 1), advice(decision=Decision.NONE), Past.NEVER, NOW)
        assert summed(step) == "converged already_satisfied"


@pytest.mark.parametrize("nodes", [("node-01", "node-02", "node-04"), ("node-02",)])
def test_a_job_that_started_on_the_excluded_node_is_left_to_a_person(
    nodes: tuple[str, ...],
) -> None:
    step = reconcile(fact(JobState.RUNNING, 2, nodes=nodes), advice(), Past.ORDERED, NOW)
    assert summed(step) == "abandoned ambiguous"
    assert isinstance(step, Settled)
    assert "node-02" in step.sentence


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("BadConstraints", "pending no_capacity"),
        ("PartitionNodeLimit", "pending no_capacity"),
        ("Resources", "wait"),
        ("ReqNodeNotAvail,_UnavailableNodes:node-02", "wait"),
        ("BeginTime", "wait"),
        ("", "wait"),
    ],
)
def test_a_started_job_that_can_never_fit_is_told_as_a_want_of_capacity(
    reason: str, expected: str
) -> None:
    wanted = advice()
    there = waiting(note=write_note("", wanted, None), reason=reason)
    assert summed(reconcile(there, wanted, Past.ORDERED, NOW)) == expected
    bare = advice(exclusions=())
    there = waiting(note=write_note("", bare, None), reason=reason)
    assert summed(reconcile(there, bare, Past.ORDERED, NOW)) == "wait"


@pytest.mark.parametrize(
    ("excluded", "exclusions", "given_back", "expected"),
    [
        ((), ("node-02",), (), ("node-02",)),
        (("old-1",), ("node-02",), (), ("old-1", "node-02")),
        (("old-1", "node-02"), ("node-02",), (), ("old-1", "node-02")),
        (("old-1", "node-02"), (), ("node-02",), ("old-1",)),
        (("node-02", "node-03"), ("node-03",), ("node-02",), ("node-03",)),
    ],
)
def test_exclusions_are_the_users_own_and_the_advised_without_those_given_back(
    excluded: tuple[str, ...],
    exclusions: tuple[str, ...],
    given_back: tuple[str, ...],
    expected: tuple[str, ...],
) -> None:
    wanted = advice(exclusions=exclusions, given_back=given_back, generation=2)
    step = reconcile(waiting(excluded_nodes=excluded), wanted, Past.ORDERED, NOW)
    assert isinstance(step, Act)
    assert step.order.exclude == expected
    assert step.order.target == "generation-2"


@pytest.mark.parametrize(("wait", "postponed"), [(None, False), (1.9, False), (2.1, True)])
def test_a_start_is_postponed_only_by_a_wait_that_is_worth_it(
    *, wait: float | None, postponed: bool
) -> None:
    until = None if wait is None else later(NOW, seconds(wait))
    step = reconcile(waiting(), advice(not_before=until), Past.ORDERED, NOW)
    assert isinstance(step, Act)
    assert step.order.start_at == (until if postponed else None)
    assert ("Until " in step.order.note) is postponed


@pytest.mark.parametrize(
    ("since", "expected"),
    [(0, "wait"), (CREDENTIAL_WAIT - 1, "wait"), (CREDENTIAL_WAIT, "start")],
)
def test_a_start_waits_until_the_nodes_would_take_the_job_again(since: int, expected: str) -> None:
    there = waiting(submitted_at=Instant(NOW - since))
    assert summed(reconcile(there, advice(), Past.ORDERED, NOW)) == expected
    unknown = waiting(submitted_at=None)
    assert summed(reconcile(unknown, advice(), Past.ORDERED, NOW)) == "start"


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.NODE_FAIL, JobState.RUNNING])
def test_a_job_that_another_was_submitted_to_follow_is_not_requeued(state: JobState) -> None:
    there = fact(state, 1, successors=("8",))
    step = reconcile(there, advice(while_living=True), Past.NEVER, NOW)
    assert summed(step) == "abandoned successor_exists"


FACTS = st.builds(
    fact,
    st.sampled_from(JobState),
    st.integers(0, 4),
    held_by=st.sampled_from(Holder),
    reason=st.sampled_from(["", "Priority", "BadConstraints", "JobHeldUser", "JobHeldAdmin"]),
    excluded_nodes=st.lists(st.sampled_from([*NODES, "old-1", "old-2"]), unique=True).map(tuple),
    note=st.sampled_from(["", "ticket 12", write_note("", BASE, None), "[relight x/1: y]"]),
    successors=st.sampled_from([(), (), ("8",)]),
    submitted_at=st.none() | st.integers(-9, 2).map(lambda count: Instant(NOW + seconds(count))),
)
ADVICE = st.builds(
    advice,
    decision=st.sampled_from(Decision),
    generation=st.integers(1, 12),
    exclusions=st.lists(st.sampled_from(NODES), unique=True, max_size=2).map(tuple),
    given_back=st.lists(st.sampled_from(["old-1", "node-03"]), unique=True).map(tuple),
    not_before=st.none() | st.integers(-5, 600).map(lambda count: Instant(NOW + seconds(count))),
    while_living=st.booleans(),
    already_requeued=st.booleans(),
    approval=st.sampled_from(Approval),
)


@given(st.none() | FACTS, ADVICE, st.sampled_from(Past))
@settings(max_examples=250, deadline=None)
def test_whatever_is_seen_an_order_keeps_the_laws(
    there: JobFact | None, wanted: Advice, past: Past
) -> None:
    step = reconcile(there, wanted, past, NOW)
    assert reconcile(there, wanted, past, NOW) == step
    if not isinstance(step, Act):
        return
    assert there is not None, "law 1: what is not there is not acted on"
    order = step.order
    assert there.state not in (JobState.CANCELLED, JobState.COMPLETED), "law 5"
    waits = there.state in (JobState.PENDING, JobState.HELD)
    fits_nowhere = there.held_by is Holder.UNKNOWN and there.reason == "BadConstraints"
    held = there.held_by in PEOPLE and not fits_nowhere
    assert not (waits and held), "law 5: a person's hold wins"
    assert there.restart_count in (1, 2), "the advised attempt, or the one after it"
    assert (order.attempt, order.generation) == (wanted.attempt, wanted.generation)
    assert wanted.approval is not Approval.WAITING
    match order.verb:
        case Verb.REQUEUE:
            assert there.restart_count == 1
            assert wanted.decision in RESTARTS
            assert not there.successors, "law 7: whoever else owns the retry is respected"
        case Verb.START:
            assert there.restart_count == 2
            assert waits
            assert past is Past.ORDERED or wanted.already_requeued
            check_exclusions(order.exclude, there, wanted)
            assert there.submitted_at is None or NOW - there.submitted_at >= CREDENTIAL_WAIT
            assert order.start_at is None or order.start_at == wanted.not_before
        case Verb.CANCEL:
            assert wanted.decision is Decision.STOP
        case Verb.SIGNAL:
            assert there.state is JobState.RUNNING
            assert wanted.forewarning is not None
    if wanted.exclusions and order.verb is not Verb.CANCEL:
        assert Action.EXCLUDE in step.actions


def check_exclusions(exclude: tuple[str, ...], there: JobFact, wanted: Advice) -> None:
    own = [node for node in there.excluded_nodes if node not in wanted.given_back]
    assert set(exclude) == {*own, *wanted.exclusions}
    assert len(set(exclude)) == len(exclude)


@pytest.mark.parametrize(
    ("wanted", "allowed", "partition", "expected"),
    [
        (advice(), tuple(Action), "train", True),
        (advice(), (Action.REQUEUE, Action.EXCLUDE), "train", True),
        (advice(), (Action.EXCLUDE,), "train", False),
        (advice(), (), "train", False),
        (advice(), tuple(Action), "debug", False),
        (advice(), tuple(Action), "", False),
        (advice(permit=None), tuple(Action), "train", False),
        (advice(mode=Mode.MONITOR), tuple(Action), "train", False),
        (advice(mode=Mode.APPROVE), tuple(Action), "train", True),
    ],
)
def test_a_permit_is_checked_for_mode_partition_and_kind_of_action(
    *, wanted: Advice, allowed: tuple[Action, ...], partition: str, expected: bool
) -> None:
    step = reconcile(fact(JobState.FAILED, 1), wanted, Past.NEVER, NOW)
    assert isinstance(step, Act)
    assert is_permitted(step, wanted, allowed, partition) is expected


@pytest.mark.parametrize(
    ("field", "value"),
    [("cluster", "other"), ("partition", "debug"), ("actions", (Action.CANCEL,)), ("actions", ())],
)
def test_a_permit_for_something_else_is_no_permit(field: str, value: object) -> None:
    assert BASE.permit is not None
    other = advice(permit=msgspec.structs.replace(BASE.permit, **{field: value}))
    step = reconcile(fact(JobState.FAILED, 1), other, Past.NEVER, NOW)
    assert isinstance(step, Act)
    assert not is_permitted(step, other, tuple(Action), "train")


def test_a_requeue_that_could_not_be_followed_by_its_exclusion_is_not_permitted() -> None:
    assert BASE.permit is not None
    half = advice(permit=msgspec.structs.replace(BASE.permit, actions=(Action.REQUEUE,)))
    step = reconcile(fact(JobState.FAILED, 1), half, Past.NEVER, NOW)
    assert isinstance(step, Act)
    assert not is_permitted(step, half, tuple(Action), "train")
    assert not is_permitted(step, BASE, (Action.REQUEUE,), "train")
