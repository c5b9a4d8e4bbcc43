"""From a verdict and what came before to what should happen: every row of the table."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.model.advice import Decision
from relight.model.findings import Domain, Kind, Remedy
from relight.model.instants import Span, seconds
from relight.model.verdicts import Suspect, Verdict
from relight.policy.advising import (
    Circumstances,
    Past,
    Ruling,
    advise,
    used_restarts,
    wants_capacity,
)
from relight.policy.policies import Policy

POLICY = Policy(name="default", max_restarts=3, backoff=seconds(60), hold=seconds(600))
HERE = ("n1", "n2", "n3")
ELSEWHERE = ("n1", "n3", "n4")
JUDGED = (Domain.APPLICATION, Domain.USER, Domain.UNKNOWN)
SHARED = (Domain.STORAGE, Domain.NETWORK, Domain.SCHEDULER, Domain.SYSTEM_SOFTWARE)
EXCLUDING = (Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN)
AFTER_ONE = (Past(number=0, fingerprint="ecc", nodes=HERE, restarted=True),)


def verdict(
    remedy: Remedy = Remedy.RESTART,
    domain: Domain = Domain.HARDWARE,
    suspects: tuple[str, ...] = (),
) -> Verdict:
    return Verdict(
        domain=domain,
        cause="ecc",
        family="ecc",
        kind=Kind.CRASH,
        remedy=remedy,
        sentence="the memory of a GPU failed",
        fingerprint="ecc",
        suspects=tuple(Suspect(node=node, share=1.0, why="told") for node in suspects),
    )


def around(**fields: object) -> Circumstances:
    base = Circumstances(nodes=HERE, expected_nodes=3, fit_now=3, fit_ever=3)
    return msgspec.structs.replace(base, **fields)


def code(ruling: Ruling) -> tuple[Decision, str]:
    assert ruling.reason.sentence.endswith(".")
    return ruling.decision, ruling.reason.code


RESTART = (Decision.RESTART, "restart")
WITHOUT = (Decision.RESTART_EXCLUDING_NODE, "restart-excluding-node")
HOPELESS = (Decision.STOP, "deterministic-error")
AGAIN = (Decision.STOP, "same-failure-again")
SPENT = (Decision.STOP, "restarts-used-up")
HOLD = (Decision.HOLD, "shared-trouble")


@pytest.mark.parametrize(
    ("remedy", "suspects", "expected"),
    [
        (Remedy.END, (), (Decision.NONE, "nothing-to-recover")),
        (Remedy.REPORT, (), (Decision.NONE, "report-only")),
        (Remedy.STOP, (), HOPELESS),
        (Remedy.HOLD, (), HOLD),
        (Remedy.RESTART, (), RESTART),
        (Remedy.RESTART_CLEAN, (), RESTART),
        (Remedy.CONFIRM_THEN_STOP, (), RESTART),
        (Remedy.RESTART_EXCLUDING_NODE, ("n2",), WITHOUT),
        (Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN, ("n2",), WITHOUT),
        (Remedy.RESTART_EXCLUDING_NODE, (), RESTART),
        (Remedy.RESTART, ("n2",), RESTART),
        (Remedy.CONFIRM_THEN_STOP, ("n2",), RESTART),
    ],
)
def test_a_first_failure_is_answered_by_its_remedy(
    remedy: Remedy, suspects: tuple[str, ...], expected: tuple[Decision, str]
) -> None:
    for domain in Domain:
        assert code(advise(verdict(remedy, domain, suspects), POLICY, around())) == expected


@pytest.mark.parametrize(
    ("obstacle", "expected"),
    [
        ({"successors": ("8",)}, "successor-exists"),
        ({"is_batch": False}, "not-a-batch-job"),
        ({"requeue_allowed": False}, "requeue-disabled"),
        ({"successors": ("8",), "requeue_allowed": False}, "successor-exists"),
    ],
)
@pytest.mark.parametrize("remedy", Remedy)
def test_what_cannot_or_must_not_be_requeued_is_left_alone_but_a_hopeless_one_is_still_stopped(
    obstacle: dict[str, object], expected: str, remedy: Remedy
) -> None:
    ruling = advise(verdict(remedy, suspects=("n2",)), POLICY, around(**obstacle))
    match remedy:
        case Remedy.END | Remedy.REPORT:
            assert ruling.decision is Decision.NONE
        case Remedy.STOP:
            assert code(ruling) == HOPELESS
        case _:
            assert code(ruling) == (Decision.NONE, expected)
            assert "the memory of a GPU failed" in ruling.reason.sentence


@pytest.mark.parametrize("domain", Domain)
@pytest.mark.parametrize(
    ("remedy", "nodes", "judged", "shared", "others"),
    [
        (Remedy.RESTART, HERE, RESTART, HOLD, RESTART),
        (Remedy.RESTART, ELSEWHERE, AGAIN, HOLD, RESTART),
        (Remedy.CONFIRM_THEN_STOP, HERE, AGAIN, HOLD, RESTART),
        (Remedy.CONFIRM_THEN_STOP, ELSEWHERE, AGAIN, HOLD, RESTART),
        (Remedy.RESTART_EXCLUDING_NODE, ELSEWHERE, WITHOUT, HOLD, WITHOUT),
        (Remedy.STOP, HERE, HOPELESS, HOPELESS, HOPELESS),
        (Remedy.HOLD, HERE, HOLD, HOLD, HOLD),
    ],
)
def test_the_same_failure_again_without_a_step_gained_is_judged_by_its_domain(  # noqa: PLR0913 - columns of the table
    *,
    domain: Domain,
    remedy: Remedy,
    nodes: tuple[str, ...],
    judged: tuple[Decision, str],
    shared: tuple[Decision, str],
    others: tuple[Decision, str],
) -> None:
    suspects = ("n3",) if remedy in EXCLUDING else ()
    expected = judged if domain in JUDGED else shared if domain in SHARED else others
    ruling = advise(
        verdict(remedy, domain, suspects), POLICY, around(nodes=nodes, history=AFTER_ONE)
    )
    assert code(ruling) == expected


@pytest.mark.parametrize("domain", [*JUDGED, *SHARED])
@pytest.mark.parametrize(
    ("changes", "history"),
    [
        ({"gained": True}, AFTER_ONE),
        ({}, (Past(number=0, fingerprint="other", nodes=HERE, restarted=True),)),
        ({}, ()),
        (
            {},
            (
                AFTER_ONE[0],
                Past(number=1, fingerprint="other", nodes=HERE, gained=True, restarted=True),
            ),
        ),
    ],
    ids=["a step was gained", "another failure", "the first failure", "gained in between"],
)
def test_neither_judgement_falls_when_a_step_was_gained_or_the_failure_is_another(
    domain: Domain, changes: dict[str, object], history: tuple[Past, ...]
) -> None:
    there = around(nodes=ELSEWHERE, history=history, **changes)
    assert code(advise(verdict(Remedy.CONFIRM_THEN_STOP, domain), POLICY, there)) == RESTART


def test_the_same_failure_is_recognised_behind_another_that_gained_nothing() -> None:
    history = (AFTER_ONE[0], Past(number=1, fingerprint="other", nodes=HERE, restarted=True))
    ruling = advise(verdict(Remedy.CONFIRM_THEN_STOP, Domain.USER), POLICY, around(history=history))
    assert code(ruling) == AGAIN
    assert "attempt 0" in ruling.reason.sentence


def test_the_same_failure_on_the_same_nodes_in_another_order_is_not_elsewhere() -> None:
    there = around(nodes=HERE[::-1], history=AFTER_ONE)
    assert code(advise(verdict(Remedy.RESTART, Domain.UNKNOWN), POLICY, there)) == RESTART


def failures(told: str) -> tuple[Past, ...]:
    """Return one restarted attempt a letter: ``+`` gained a step, ``-`` did not."""
    return tuple(
        Past(number=number, fingerprint=f"f{number}", gained=one == "+", restarted=True)
        for number, one in enumerate(told)
    )


@pytest.mark.parametrize(
    ("history", "used"),
    [
        ((), 0),
        (failures("-"), 1),
        (failures("---"), 3),
        (failures("+"), 1),
        (failures("--+"), 1),
        (failures("-+-"), 2),
        ((Past(number=0, fingerprint="a"), *failures("-")), 1),
    ],
)
def test_restarts_count_from_the_last_progress_on(history: tuple[Past, ...], used: int) -> None:
    assert used_restarts(history) == used


@pytest.mark.parametrize(
    ("allowed", "asked", "used", "gained", "expected"),
    [
        (3, None, 2, False, RESTART),
        (3, None, 3, False, SPENT),
        (3, None, 5, False, SPENT),
        (3, None, 3, True, RESTART),
        (3, 1, 0, False, RESTART),
        (3, 1, 1, False, SPENT),
        (3, 9, 3, False, SPENT),
        (3, 0, 0, False, SPENT),
        (0, None, 0, False, SPENT),
        (0, None, 0, True, SPENT),
    ],
)
def test_the_budget_is_the_lesser_of_policy_and_user_and_progress_earns_it_back(
    *, allowed: int, asked: int | None, used: int, gained: bool, expected: tuple[Decision, str]
) -> None:
    policy = msgspec.structs.replace(POLICY, max_restarts=allowed)
    there = around(max_restarts=asked, gained=gained, history=failures("-" * used))
    for remedy in (Remedy.RESTART, Remedy.HOLD):
        ruling = advise(verdict(remedy), policy, there)
        wanted = HOLD if remedy is Remedy.HOLD and expected == RESTART else expected
        assert code(ruling) == wanted


@pytest.mark.parametrize(
    ("history", "gained", "wait"),
    [
        ((), False, 0),
        (failures("-"), False, 60),
        (failures("--"), False, 120),
        (failures("---"), False, 240),
        (failures("----"), False, 480),
        (failures("--"), True, 0),
        (failures("--+"), False, 60),
    ],
)
def test_each_restart_without_progress_doubles_the_wait(
    *, history: tuple[Past, ...], gained: bool, wait: float
) -> None:
    policy = msgspec.structs.replace(POLICY, max_restarts=9)
    ruling = advise(verdict(), policy, around(history=history, gained=gained))
    assert ruling.wait == seconds(wait)
    assert (" in " in ruling.reason.sentence.partition(":")[0]) is bool(wait)


def test_the_wait_stays_an_instant_that_can_be_written_however_many_restarts_there_were() -> None:
    policy = msgspec.structs.replace(POLICY, max_restarts=100_000)
    history = tuple(
        Past(number=number, fingerprint=f"f{number}", restarted=True) for number in range(5_000)
    )
    assert advise(verdict(), policy, around(history=history)).wait <= seconds(86_400)


def test_a_hold_waits_as_long_as_policy_says_and_blames_no_node() -> None:
    ruling = advise(verdict(Remedy.HOLD, Domain.STORAGE, ("n2",)), POLICY, around())
    assert (ruling.wait, ruling.exclusions) == (POLICY.hold, ())
    assert "10m 00s" in ruling.reason.sentence


SUSPECTS = ("n2", "n1")


@pytest.mark.parametrize(
    ("needed", "fit_ever", "expected"),
    [
        (3, 3, SUSPECTS),
        (3, 9, SUSPECTS),
        (3, 2, ("n2",)),
        (3, 1, ()),
        (3, 0, ()),
        (3, None, ()),
    ],
)
def test_only_as_many_suspects_are_left_out_as_the_cluster_can_spare(
    needed: int, fit_ever: int | None, expected: tuple[str, ...]
) -> None:
    there = around(expected_nodes=needed, fit_ever=fit_ever, fit_now=fit_ever)
    ruling = advise(verdict(EXCLUDING[0], suspects=SUSPECTS), POLICY, there)
    assert ruling.exclusions == expected
    assert code(ruling) == (WITHOUT if expected else RESTART)
    assert ruling.least_exclusions == int(bool(expected))
    if fit_ever is None:
        assert "could not be seen" in ruling.reason.sentence
    elif not expected:
        assert (
            f"of the {needed} that the job needs, {fit_ever} would remain" in ruling.reason.sentence
        )


def test_a_node_that_the_job_itself_asks_for_is_not_left_out() -> None:
    told = verdict(EXCLUDING[0], suspects=SUSPECTS)
    ruling = advise(told, POLICY, around(required_nodes=("n2",)))
    assert ruling.exclusions == ("n1",)
    only = advise(verdict(EXCLUDING[0], suspects=("n2",)), POLICY, around(required_nodes=("n2",)))
    assert code(only) == RESTART
    assert "n2 cannot be left out: the job itself asks for it" in only.reason.sentence


@pytest.mark.parametrize(("fit_now", "told"), [(None, False), (3, False), (2, True), (0, True)])
def test_a_job_that_will_wait_for_nodes_is_told_so(*, fit_now: int | None, told: bool) -> None:
    there = around(fit_now=fit_now)
    ruling = advise(verdict(EXCLUDING[0], suspects=("n2",)), POLICY, there)
    assert ("It will wait for nodes" in ruling.reason.sentence) is told


@pytest.mark.parametrize("remedy", Remedy)
def test_capacity_is_asked_only_for_a_remedy_that_excludes(remedy: Remedy) -> None:
    wanted = SUSPECTS if remedy in EXCLUDING else ()
    assert wants_capacity(verdict(remedy, suspects=SUSPECTS)) == wanted


VERDICTS = st.builds(
    verdict,
    st.sampled_from(Remedy),
    st.sampled_from(Domain),
    st.lists(st.sampled_from(HERE), unique=True).map(tuple),
)
PASTS = st.lists(
    st.builds(
        Past,
        number=st.integers(0, 5),
        fingerprint=st.sampled_from(["ecc", "other"]),
        nodes=st.sampled_from([HERE, ELSEWHERE]),
        gained=st.booleans(),
        restarted=st.booleans(),
    ),
    max_size=6,
).map(tuple)
FIT = st.none() | st.integers(0, 6)
AROUND = st.builds(
    Circumstances,
    nodes=st.sampled_from([HERE, ELSEWHERE, ()]),
    gained=st.booleans(),
    history=PASTS,
    successors=st.sampled_from([(), ("8",)]),
    requeue_allowed=st.booleans(),
    is_batch=st.booleans(),
    max_restarts=st.none() | st.integers(0, 5),
    expected_nodes=st.integers(0, 6),
    fit_now=FIT,
    fit_ever=FIT,
)


@given(VERDICTS, AROUND, st.integers(0, 4))
@settings(max_examples=250, deadline=None)
def test_whatever_the_story_a_ruling_keeps_the_laws(
    told: Verdict, there: Circumstances, allowed: int
) -> None:
    policy = msgspec.structs.replace(POLICY, max_restarts=allowed)
    ruling = advise(told, policy, there)
    suspects = [one.node for one in told.suspects]
    assert list(ruling.exclusions) == suspects[: len(ruling.exclusions)], "the worst go first"
    assert bool(ruling.exclusions) is (ruling.decision is Decision.RESTART_EXCLUDING_NODE)
    assert ruling.wait >= Span(0)
    assert ruling.reason.code, "law 12"
    if ruling.decision not in (Decision.NONE, Decision.STOP):
        used = 0 if there.gained else used_restarts(there.history)
        assert used < allowed, "law 9: retries are bounded"
        assert there.is_batch
        assert there.requeue_allowed
        assert not there.successors, "law 7: whoever else owns the retry is respected"
    if ruling.exclusions:
        assert there.fit_ever is not None, "law 1: unknown capacity excludes nobody"
        left = there.fit_ever + len(suspects) - len(ruling.exclusions)
        assert left >= there.expected_nodes, "law 4: the job can still start"


@pytest.mark.parametrize("domain", JUDGED)
@pytest.mark.parametrize(
    ("cause", "blamed", "expected"),
    [
        ("ecc", (), AGAIN),
        ("", (), AGAIN),
        ("gpus-spin", (), RESTART),
        ("ecc", ("n2",), RESTART),
    ],
    ids=["the same cause", "a cause not known", "another cause", "a node was at fault then"],
)
def test_a_failure_is_the_same_only_with_the_same_cause_and_where_no_node_was_at_fault(
    domain: Domain, cause: str, blamed: tuple[str, ...], expected: tuple[Decision, str]
) -> None:
    before = msgspec.structs.replace(AFTER_ONE[0], cause=cause, blamed=blamed)
    there = around(nodes=ELSEWHERE, history=(before,))
    assert code(advise(verdict(Remedy.RESTART, domain), POLICY, there)) == expected
