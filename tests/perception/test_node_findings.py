from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.instants import EPOCH, Instant, from_iso, later, seconds
from relight.model.jobs import AttemptKey, NodeFact, NodeState
from relight.perception.nodes import told_by_scheduler

ATTEMPT = AttemptKey.parse("main:7-0")
BEGAN = from_iso("2026-03-30T06:00:00Z")
NOW = later(BEGAN, seconds(3_600))
BOOTED = later(BEGAN, seconds(-86_400))
UP = NodeFact(
    cluster="main",
    name="gpu-7",
    state=NodeState.UP,
    scheduler_state="MIXED",
    gpus=8,
    booted_at=BOOTED,
)


def after(ago: float = 60, **fields: object) -> NodeFact:
    """Return the node with a reason given so many seconds ago, and other changes."""
    given_at = later(NOW, seconds(-ago)) if fields.get("reason") else None
    return msgspec.structs.replace(UP, **{"reason_at": given_at, **fields})


def drained(reason: str, ago: float = 60, **fields: object) -> NodeFact:
    node = after(ago, state=NodeState.DRAINED, is_drained=True, reason=reason)
    return msgspec.structs.replace(node, scheduler_state="MIXED,DRAIN", **fields)


def down(reason: str = "") -> NodeFact:
    return after(state=NodeState.DOWN, scheduler_state="DOWN", reason=reason)


def told(
    now: NodeFact, before: NodeFact | None = UP, began: Instant | None = BEGAN
) -> tuple[Finding, ...]:
    return told_by_scheduler(before, now, ATTEMPT, NOW, began)


ROOT, EITHER, SYMPTOM = Role.ROOT, Role.EITHER, Role.SYMPTOM
HARDWARE, SYSTEM = Domain.HARDWARE, Domain.SYSTEM_SOFTWARE
EXCLUDE, DRAIN = Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN


@pytest.mark.parametrize(
    ("now", "rule", "role", "domain", "remedy"),
    [
        (down("Not responding"), "node-down", ROOT, HARDWARE, EXCLUDE),
        (down(), "node-down", ROOT, HARDWARE, EXCLUDE),
        (down("Node unexpectedly rebooted"), "node-rebooted", ROOT, HARDWARE, EXCLUDE),
        (
            after(state=NodeState.UNKNOWN, is_silent=True),
            "node-not-responding",
            EITHER,
            HARDWARE,
            EXCLUDE,
        ),
        (
            drained("gres/gpu count reported lower than configured (7 < 8)", gpus_found=7),
            "node-gpus-missing",
            ROOT,
            HARDWARE,
            DRAIN,
        ),
        (drained("Prolog error", ago=3_590), "node-failed-prolog", ROOT, SYSTEM, EXCLUDE),
        (drained("Prolog error", ago=60), "node-failed-prolog", EITHER, SYSTEM, EXCLUDE),
        (drained("Kill task failed"), "node-drained", EITHER, SYSTEM, EXCLUDE),
        (drained("Epilog error"), "node-drained", SYMPTOM, SYSTEM, Remedy.REPORT),
        (
            drained("NHC: check_hw_ib: No IB port mlx5_3:1"),
            "node-drained",
            EITHER,
            HARDWARE,
            EXCLUDE,
        ),
        (drained("Low RealMemory"), "node-drained", EITHER, HARDWARE, EXCLUDE),
        (drained("XID 79 seen"), "node-drained", EITHER, HARDWARE, EXCLUDE),
        (drained("kernel update tonight"), "node-drained", EITHER, Domain.UNKNOWN, Remedy.REPORT),
        (drained(""), "node-drained", EITHER, Domain.UNKNOWN, Remedy.REPORT),
    ],
)
def test_each_word_of_the_scheduler_has_its_meaning(
    now: NodeFact, rule: str, role: Role, domain: Domain, remedy: Remedy
) -> None:
    (finding,) = told(now)
    assert (finding.rule, finding.role) == (rule, role)
    assert (finding.domain, finding.remedy) == (domain, remedy)
    assert (finding.kind, finding.provenance) == (Kind.NODE, Provenance.SCHEDULER)
    assert (finding.nodes, finding.attempt) == (("gpu-7",), ATTEMPT)
    assert finding.task_gone == (rule in ("node-down", "node-rebooted"))
    assert "gpu-7" in finding.sentence
    assert now.reason in finding.sentence


def test_who_drained_it_is_told() -> None:
    (finding,) = told(drained("replace a DIMM", reason_by="olivia"))
    assert finding.sentence == (
        "gpu-7 was drained and takes no new job: replace a DIMM (by olivia)."
    )
    assert finding.at == later(NOW, seconds(-60))
    assert "olivia" in finding.evidence[0].text


def test_a_start_of_the_kernel_during_the_attempt_is_told() -> None:
    booted = later(BEGAN, seconds(600))
    (finding,) = told(after(booted_at=booted))
    assert (finding.rule, finding.at, finding.task_gone) == ("node-rebooted", booted, True)


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (UP, UP),
        (UP, None),
        (after(booted_at=None), UP),
        (after(booted_at=later(BEGAN, seconds(600))), None),
        (after(booted_at=later(BEGAN, seconds(600))), after(is_rebooting=True)),
        (after(booted_at=later(BEGAN, seconds(600))), after(booted_at=None)),
        (after(is_silent=True, is_rebooting=True), UP),
        (after(booted_at=later(BOOTED, seconds(30))), UP),
        (after(booted_at=later(BEGAN, seconds(-30))), UP),
        (after(scheduler_state="ALLOCATED", is_idle=False), UP),
        (drained("x", ago=60), drained("x", ago=60)),
        (drained("x", ago=4_000), UP),
        (drained("x", ago=4_000), None),
        (drained("", reason_at=None), None),
        (down("x"), down("y")),
        (after(is_silent=True), after(is_silent=True)),
        (drained("relight: gpu-fallen-off-bus in job main:5"), UP),
        (drained("bad GPU [relight 7f3a]"), UP),
        (UP, down("x")),
    ],
)
def test_what_is_not_new_or_relights_own_is_no_news(now: NodeFact, before: NodeFact | None) -> None:
    assert told(now, before) == ()


@pytest.mark.parametrize(
    ("now", "rules"),
    [
        (drained("x", ago=60), ["node-drained"]),
        (down("x"), ["node-down"]),
        (after(is_silent=True), ["node-not-responding"]),
    ],
)
def test_the_first_look_at_a_node_tells_what_came_after_the_attempts_begin(
    now: NodeFact, rules: list[str]
) -> None:
    assert [one.rule for one in told(now, before=None)] == rules


def test_the_same_fact_told_twice_makes_one_finding() -> None:
    first = told(down("Not responding"))
    again = told(msgspec.structs.replace(down("Not responding"), gpus=7), before=None)
    assert [one.id for one in first] == [one.id for one in again]
    other = told_by_scheduler(UP, down("Not responding"), AttemptKey.parse("main:7-1"), NOW, BEGAN)
    assert other[0].id != first[0].id


def test_a_drain_for_another_reason_is_another_finding() -> None:
    first = told(drained("kernel update"))
    second = told(drained("NHC: no IB"), before=drained("kernel update"))
    assert [one.rule for one in second] == ["node-drained"]
    assert first[0].id != second[0].id


def test_a_node_that_is_down_for_lack_of_a_gpu_tells_both() -> None:
    reason = "gres/gpu count reported lower than configured (7 < 8)"
    assert [one.rule for one in told(down(reason))] == ["node-down", "node-gpus-missing"]


def test_an_old_reason_that_slurm_kept_gives_no_time_before_the_attempt() -> None:
    (finding,) = told(msgspec.structs.replace(down("x"), reason_at=BOOTED))
    assert finding.at is None


INSTANTS = st.none() | st.integers(min_value=-(2**50), max_value=2**54).map(Instant)
FACTS = st.builds(
    NodeFact,
    cluster=st.just("main"),
    name=st.text(max_size=20),
    state=st.sampled_from(NodeState),
    scheduler_state=st.text(max_size=20),
    reason=st.sampled_from(["Prolog error", "Not responding", "{node}{0}"]) | st.text(max_size=900),
    is_drained=st.booleans(),
    is_silent=st.booleans(),
    is_rebooting=st.booleans(),
    reason_by=st.text(max_size=20),
    reason_at=INSTANTS,
    booted_at=INSTANTS,
)


@given(st.none() | FACTS, FACTS, INSTANTS)
def test_any_facts_make_findings_that_can_be_stored(
    before: NodeFact | None, now: NodeFact, began: Instant | None
) -> None:
    for finding in told_by_scheduler(before, now, ATTEMPT, EPOCH, began):
        assert msgspec.json.decode(msgspec.json.encode(finding), type=Finding) == finding
        assert len(finding.sentence) < 1_000
