"""Which finding is the root of a cascade, and why the others are not."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.diagnosis.cascades import Unwound, in_time_order, unwind
from relight.diagnosis.placing import Places
from relight.model.findings import (
    Domain,
    Evidence,
    Finding,
    Kind,
    Place,
    Provenance,
    Remedy,
    Role,
)
from relight.model.instants import Instant, seconds
from relight.model.jobs import Allocation
from relight.testing.stories import NODES, START, finding

THREE = Allocation(nodes=NODES, tasks_per_node=1, ranks_are_tasks=True)


def at(count: float) -> Instant:
    return Instant(START + seconds(count))


def line(  # noqa: PLR0913 - what the findings of a cascade differ in
    rule: str,
    *,
    read: float = 0,
    clock: float | None = None,
    offset: int = 0,
    file: str = "job-7.out",
    role: Role = Role.ROOT,
    domain: Domain = Domain.HARDWARE,
    nodes: tuple[str, ...] = (),
    ranks: tuple[int, ...] = (),
    kind: Kind = Kind.CRASH,
) -> Finding:
    made = finding(
        rule, role=role, domain=domain, nodes=nodes, ranks=ranks, kind=kind, offset=offset
    )
    return msgspec.structs.replace(
        made,
        id=f"{rule}@{file}:{offset}",
        seen_at=at(read),
        at=None if clock is None else at(clock),
        place=Place(file=file, offset=offset, line=offset + 1),
    )


def unwound(*findings: Finding) -> Unwound:
    """Return the cascade unwound; it must not matter in which order it was handed over."""
    first = unwind(findings, Places(findings, THREE))
    for order in itertools.permutations(findings):
        assert unwind(order, Places(order, THREE)).root == first.root
    return first


@pytest.mark.parametrize(
    ("findings", "root"),
    [
        ([line("ecc"), line("watchdog", role=Role.SYMPTOM, offset=9)], "ecc"),
        ([line("watchdog", role=Role.SYMPTOM), line("ecc", offset=9, read=5)], "ecc"),
        ([line("maybe", role=Role.EITHER), line("ecc", read=5, offset=9)], "ecc"),
        ([line("watchdog", role=Role.SYMPTOM), line("maybe", role=Role.EITHER, read=5)], "maybe"),
        ([line("reset", role=Role.SYMPTOM, offset=9), line("abort", role=Role.SYMPTOM)], "abort"),
        ([line("late", offset=90), line("early", offset=10)], "early"),
        ([line("late", offset=100), line("early", offset=20)], "early"),
        ([line("late", read=2), line("early", read=1, offset=900)], "early"),
        ([line("late", clock=2, file="a"), line("early", clock=1, read=5, file="b")], "early"),
        ([line("early", clock=2), line("late", clock=1, offset=9)], "early"),
        ([line("late", clock=90, read=2), line("early", clock=95, read=1, file="b")], "early"),
        ([line("late", clock=40, read=1), line("early", clock=35, read=2, file="b")], "early"),
        ([line("late", clock=9, file="a"), line("early", clock=1, file="b")], "early"),
        ([line("first read", read=1), line("has a clock", clock=0, read=2)], "first read"),
        ([line("a", file="rank-1.out"), line("b", file="rank-0.out")], "b"),
        ([line("end", kind=Kind.ENDING), line("abort", role=Role.SYMPTOM, read=5)], "abort"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_root_is_the_strongest_in_role_and_then_the_first(
    findings: list[Finding], root: str
) -> None:
    found = unwound(*findings).root
    assert found is not None
    assert found.rule == root


@pytest.mark.parametrize(
    ("hardware", "root"),
    [
        (line("ecc", read=5, nodes=("node-02",)), "ecc"),
        (line("ecc", read=5, ranks=(1,)), "ecc"),
        (line("ecc", read=5), "bug"),
        (line("ecc", read=5, ranks=(9,)), "bug"),
        (line("ecc", read=5, nodes=("node-99",), ranks=(1,)), "bug"),
        (line("ib", read=5, domain=Domain.NETWORK, nodes=("node-02",)), "bug"),
        (line("ecc", read=5, nodes=("node-02",), role=Role.EITHER), "bug"),
    ],
)
@pytest.mark.parametrize("domain", [Domain.USER, Domain.APPLICATION])
def test_broken_hardware_on_an_own_node_goes_before_an_earlier_error_of_people(
    hardware: Finding, root: str, domain: Domain
) -> None:
    bug = line("bug", domain=domain)
    found = unwound(bug, hardware)
    assert found.root is not None
    assert found.root.rule == root
    if hardware.role is Role.ROOT:
        assert len(found.rivals) == 1, "both are told"


def test_broken_hardware_does_not_go_before_an_earlier_cause_that_is_not_peoples() -> None:
    found = unwound(line("full", domain=Domain.STORAGE), line("ecc", read=5, nodes=("node-02",)))
    assert found.root is not None
    assert found.root.rule == "full"


def test_what_names_only_nodes_of_others_is_set_aside_with_its_reason() -> None:
    found = unwound(line("ecc", nodes=("node-99",)), line("bug", domain=Domain.USER, offset=9))
    assert found.root is not None
    assert found.root.rule == "bug"
    (aside,) = found.set_aside
    assert aside.why == "it names node-99, which is not a node of this job"
    alone = unwound(line("ecc", nodes=("node-99",)))
    assert alone.root is None
    assert [one.rule for one in alone.set_aside] == ["ecc"]


@pytest.mark.parametrize(
    ("changes", "allocation", "foreign"),
    [
        ({}, THREE, True),
        ({"nodes": ("node-99", "node-02")}, THREE, False),
        ({"nodes": ("node-02.example.org",)}, THREE, False),
        ({"nodes": ()}, THREE, False),
        ({"ranks": (1,)}, THREE, False),
        ({}, Allocation(), False),
        ({"provenance": Provenance.KERNEL}, THREE, True),
        ({"provenance": Provenance.TELEMETRY}, THREE, True),
        ({"provenance": Provenance.SCHEDULER}, THREE, True),
    ],
)
def test_a_finding_is_about_another_job_when_it_names_none_of_this_ones_nodes(
    *, changes: dict[str, object], allocation: Allocation, foreign: bool
) -> None:
    one = msgspec.structs.replace(line("ecc", nodes=("node-99",)), **changes)
    assert Places([one], allocation).is_foreign(one) is foreign


def test_everything_that_is_not_the_root_is_explained_or_a_rival() -> None:
    findings = [
        line("ecc", nodes=("node-02",)),
        line("ecc", nodes=("node-03",), offset=5),
        line("xid", offset=10),
        line("maybe", role=Role.EITHER, offset=20),
        line("watchdog", role=Role.SYMPTOM, offset=30),
        line("cancelled", kind=Kind.ENDING, role=Role.SYMPTOM, offset=40),
    ]
    found = unwind(findings, Places(findings, THREE))
    assert found.root == findings[0]
    assert [one.rule for one in found.rivals] == ["xid"]
    assert {one.rule: one.why for one in found.set_aside} == {
        "ecc": "it tells the same as the line that was chosen",
        "maybe": "ecc is stronger evidence",
        "watchdog": "it only shows that something else broke",
        "cancelled": "it tells how the run was ended, not what broke",
    }


FINDINGS = st.lists(
    st.builds(
        line,
        st.sampled_from(["ecc", "bug", "watchdog", "xid"]),
        read=st.integers(0, 3),
        clock=st.none() | st.integers(0, 3),
        offset=st.integers(0, 200),
        file=st.sampled_from(["a", "b"]),
        role=st.sampled_from(Role),
        domain=st.sampled_from(Domain),
        kind=st.sampled_from(Kind),
        nodes=st.lists(st.sampled_from([*NODES, "node-99"]), max_size=2).map(tuple),
        ranks=st.lists(st.integers(0, 4), max_size=2).map(tuple),
    ),
    max_size=8,
    unique_by=lambda one: one.id,
)


@given(FINDINGS)
@settings(max_examples=150, deadline=None)
def test_any_findings_in_any_order_unwind_alike_and_none_is_forgotten(
    findings: list[Finding],
) -> None:
    found = unwind(findings, Places(findings, THREE))
    backwards = findings[::-1]
    assert unwind(backwards, Places(backwards, THREE)).root == found.root
    if found.root is None:
        assert all(
            one.kind is Kind.ENDING
            or one.role is Role.BENIGN
            or Places(findings, THREE).is_foreign(one)
            for one in findings
        )
        return
    assert found.root.kind is not Kind.ENDING
    assert found.root.role is not Role.BENIGN
    told = {one.id for one in found.rivals} | {one.finding for one in found.set_aside}
    same = {one.id for one in findings if one.rule == found.root.rule}
    assert {one.id for one in findings} <= told | same


@given(FINDINGS)
def test_in_one_file_without_clocks_the_place_decides(findings: list[Finding]) -> None:
    bare = [msgspec.structs.replace(one, at=None, seen_at=START) for one in findings]
    for file in ("a", "b"):
        offsets = [
            one.place.offset for one in in_time_order(bare) if one.place and one.place.file == file
        ]
        assert offsets == sorted(offsets)


def symptom(family: str, offset: int, **fields: object) -> Finding:
    made = line(family, role=Role.SYMPTOM, domain=Domain.UNKNOWN, offset=offset)
    made = msgspec.structs.replace(made, family=family, remedy=Remedy.RESTART)
    return msgspec.structs.replace(made, **fields)


@pytest.mark.parametrize(
    ("findings", "root"),
    [
        ([symptom("peer_lost", 1), symptom("wait", 9, kind=Kind.HANG)], "peer_lost"),
        ([symptom("wait", 1, kind=Kind.HANG), symptom("peer_lost", 9)], "wait"),
        ([symptom("peer_lost", 1), symptom("process_killed_sigkill", 9)], "process_killed_sigkill"),
        (
            [symptom("wait", 1, kind=Kind.HANG), symptom("process_killed_sigkill", 9)],
            "wait",
        ),
        ([symptom("told", 1, remedy=Remedy.REPORT), symptom("peer_lost", 9)], "peer_lost"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_symptoms_are_told_apart_by_time_but_who_died_by_force_is_nearer(
    findings: list[Finding], root: str
) -> None:
    found = unwound(*findings).root
    assert found is not None
    assert found.rule == root


def exception(offset: int, remedy: Remedy, **fields: object) -> Finding:
    made = line("exception", role=Role.EITHER, domain=Domain.APPLICATION, offset=offset)
    return msgspec.structs.replace(made, family="user_code_exception", remedy=remedy, **fields)


@pytest.mark.parametrize(
    ("offset", "remedy", "file", "root"),
    [
        (9, Remedy.CONFIRM_THEN_STOP, "job-7.out", "peer_lost"),
        (9, Remedy.STOP, "job-7.out", "exception"),
        (1, Remedy.CONFIRM_THEN_STOP, "job-7.out", "exception"),
        (9, Remedy.CONFIRM_THEN_STOP, "rank-3.out", "exception"),
    ],
)
def test_an_exception_that_says_nothing_is_a_consequence_of_the_symptoms_before_it(
    offset: int, remedy: Remedy, file: str, root: str
) -> None:
    told = exception(offset, remedy, place=Place(file=file, offset=offset, line=offset))
    found = unwound(symptom("peer_lost", 5), told).root
    assert found is not None
    assert found.rule == root


def test_a_warning_goes_behind_what_calls_itself_an_error() -> None:
    warning = line("missing", offset=1)
    evidence = (Evidence(text="Warning: falling back, no module amp_C", is_root=True),)
    warning = msgspec.structs.replace(warning, evidence=evidence)
    failed = line("failed", role=Role.EITHER, offset=9)
    found = unwound(warning, failed).root
    assert found is not None
    assert found.rule == "failed"


def test_of_two_rules_on_one_line_the_clearer_counts() -> None:
    vague = msgspec.structs.replace(line("a-vague", offset=3), family="user_code_exception")
    unknown = line("b-unknown", offset=3, domain=Domain.UNKNOWN)
    clear = line("c-clear", offset=3)
    found = unwound(vague, unknown, clear).root
    assert found is not None
    assert found.rule == "c-clear"


def test_the_schedulers_word_that_a_node_failed_goes_before_all_but_broken_hardware() -> None:
    full = line("full", domain=Domain.STORAGE, offset=1)
    lost = msgspec.structs.replace(line("lost", kind=Kind.NODE, offset=9), task_gone=True)
    found = unwound(full, lost).root
    assert found is not None
    assert found.rule == "lost"
    ecc = line("ecc", offset=1)
    found = unwound(ecc, lost).root
    assert found is not None
    assert found.rule == "ecc"


def test_nccls_last_error_tells_more_than_its_general_one() -> None:
    general = symptom("nccl_init_failed", 3)
    last = symptom("nccl_socket_connect_failed", 5)
    far = symptom("nccl_socket_connect_failed", 90)
    assert unwound(general, last).root == last
    assert unwound(general, far).root == general
