"""What to do about a run of which only its logs are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.advice import Decision
from relight.model.findings import Domain, End, Kind, Remedy, Role
from relight.model.verdicts import Verdict
from relight.policy.lone import (
    MANY_STEPS,
    Circumstances,
    rule,
    rule_on_ending,
    rule_on_health,
    rule_on_silence,
    rule_on_unknown,
)

FAMILIES = ["device_oom", "segfault", "user_code_exception", "data_corrupt", "nccl_remote_error"]


def verdict(domain: Domain = Domain.APPLICATION, family: str = "user_code_exception") -> Verdict:
    return Verdict(
        domain=domain,
        cause="x",
        family=family,
        kind=Kind.CRASH,
        remedy=Remedy.RESTART,
        sentence="it broke",
    )


@pytest.mark.parametrize(
    ("remedy", "domain", "family", "around", "decision"),
    [
        (Remedy.STOP, Domain.USER, "missing_module", {}, Decision.STOP),
        (Remedy.STOP, Domain.USER, "too_many_open_files", {"steps": 900}, Decision.RESTART),
        (Remedy.CONFIRM_THEN_STOP, Domain.APPLICATION, "loss_nan", {}, Decision.STOP),
        (Remedy.CONFIRM_THEN_STOP, Domain.APPLICATION, "cuda_kernel_fault", {}, Decision.RESTART),
        (Remedy.CONFIRM_THEN_STOP, Domain.UNKNOWN, "segfault", {}, Decision.RESTART),
        (Remedy.CONFIRM_THEN_STOP, Domain.UNKNOWN, "segfault", {"alike": 2}, Decision.STOP),
        (Remedy.CONFIRM_THEN_STOP, Domain.STORAGE, "data_corrupt", {}, Decision.STOP),
        (Remedy.CONFIRM_THEN_STOP, Domain.APPLICATION, "device_oom", {}, Decision.STOP),
        (
            Remedy.CONFIRM_THEN_STOP,
            Domain.APPLICATION,
            "device_oom",
            {"steps": MANY_STEPS},
            Decision.RESTART,
        ),
        (
            Remedy.CONFIRM_THEN_STOP,
            Domain.APPLICATION,
            "user_code_exception",
            {"role": Role.SYMPTOM},
            Decision.RESTART,
        ),
        (Remedy.HOLD, Domain.NETWORK, "hostname_resolution_failed", {}, Decision.HOLD),
        (Remedy.RESTART, Domain.NETWORK, "nccl_remote_error", {"alike": 9}, Decision.RESTART),
        (Remedy.RESTART, Domain.UNKNOWN, "nccl_collective_timeout", {"alike": 2}, Decision.RESTART),
        (Remedy.RESTART, Domain.UNKNOWN, "nccl_collective_timeout", {"alike": 3}, Decision.STOP),
        (Remedy.RESTART_CLEAN, Domain.SYSTEM_SOFTWARE, "port_in_use", {}, Decision.RESTART),
        (
            Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN,
            Domain.HARDWARE,
            "gpu_fallen_off_bus",
            {},
            Decision.RESTART_EXCLUDING_NODE,
        ),
    ],
)
def test_a_cause_is_judged_by_how_surely_it_returns(
    remedy: Remedy, domain: Domain, family: str, around: dict[str, object], decision: Decision
) -> None:
    fields = {"role": Role.ROOT, **around}
    circumstances = Circumstances(remedy=remedy, **fields)  # type: ignore[arg-type]  # a table of fields
    assert rule(verdict(domain, family), circumstances).decision is decision


def test_the_nodes_where_the_cause_lies_are_left_out() -> None:
    around = Circumstances(remedy=Remedy.RESTART_EXCLUDING_NODE, nodes=("n1", "n2"))
    ruling = rule(verdict(Domain.HARDWARE), around)
    assert ruling.exclude == ("n1", "n2")
    assert "those nodes" in ruling.reason.sentence
    nameless = rule(verdict(Domain.HARDWARE), Circumstances(remedy=Remedy.RESTART_EXCLUDING_NODE))
    assert nameless.exclude == ()
    assert "does not name" in nameless.reason.sentence


@pytest.mark.parametrize(
    ("ending", "requeues", "decision"),
    [
        (End.FINISHED, False, Decision.NONE),
        (End.CANCELLED, False, Decision.NONE),
        (End.PREEMPTED, False, Decision.RESTART),
        (End.TIMEOUT, False, Decision.RESTART),
        (End.PREEMPTED, True, Decision.NONE),
        (End.TIMEOUT, True, Decision.NONE),
    ],
)
def test_an_end_that_is_no_failure_is_gone_on_from_only_where_work_is_left(
    ending: End, decision: Decision, *, requeues: bool
) -> None:
    assert rule_on_ending(ending, requeues_itself=requeues).decision is decision


def test_silence_and_the_unknown_are_tried_again_and_health_is_left_alone() -> None:
    assert rule_on_silence().decision is rule_on_unknown().decision is Decision.RESTART
    assert rule_on_health().decision is Decision.NONE


@given(
    st.sampled_from(Domain),
    st.sampled_from(FAMILIES),
    st.builds(
        Circumstances,
        role=st.sampled_from(Role),
        remedy=st.sampled_from(Remedy),
        steps=st.integers(0, 1000),
        alike=st.integers(1, 4),
    ),
)
def test_every_ruling_says_why_and_never_stops_for_what_passes(
    domain: Domain, family: str, around: Circumstances
) -> None:
    ruling = rule(verdict(domain, family), around)
    assert ruling.reason.sentence.endswith(".")
    assert ruling.reason.code
    assert ruling.decision is not Decision.NONE
    passes = domain in (Domain.HARDWARE, Domain.NETWORK) and around.remedy is not Remedy.STOP
    if passes and around.alike == 1:
        certain = family in ("data_corrupt", "device_oom")
        assert certain or ruling.decision is not Decision.STOP
