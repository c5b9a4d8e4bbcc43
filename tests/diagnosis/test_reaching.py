"""How far the same thing reaches, and what that changes."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.courses import Course, Stretch
from relight.diagnosis.placing import Hosts, Places, printed_allocation
from relight.diagnosis.reaching import Extent, domain_of, extent_of, remedy_of
from relight.model.findings import Domain, Evidence, Finding, Kind, Reach, Remedy, Role
from relight.model.jobs import Allocation
from relight.model.progress import Progress
from relight.testing.stories import finding

REACH = Reach(
    one_node=Remedy.RESTART_EXCLUDING_NODE,
    everywhere=Remedy.STOP,
    at_start=Remedy.CONFIRM_THEN_STOP,
    domain_on_one_node=Domain.SYSTEM_SOFTWARE,
    domain_everywhere=Domain.USER,
)


def bug(number: int, node: str = "", rank: int | None = None) -> Finding:
    made = finding(
        "bug",
        offset=number,
        nodes=(node,) if node else (),
        ranks=() if rank is None else (rank,),
        remedy=Remedy.RESTART,
        domain=Domain.UNKNOWN,
    )
    return msgspec.structs.replace(made, reach=REACH)


def waits(node: str) -> Finding:
    return finding("wait", role=Role.SYMPTOM, kind=Kind.HANG, nodes=(node,), offset=90)


def stopped(node: str) -> Finding:
    made = finding("stopped", role=Role.SYMPTOM, offset=91, remedy=Remedy.REPORT)
    text = f"srun: error: {node}: task 0: Terminated"
    return msgspec.structs.replace(made, evidence=(Evidence(text=text, is_root=True),))


@pytest.mark.parametrize(
    ("same", "others", "allocation", "extent"),
    [
        ([bug(1, "a")], [], Allocation(), Extent.UNKNOWN),
        ([bug(1, "a")], [waits("b")], Allocation(), Extent.ONE_NODE),
        ([bug(1, "a")], [waits("a")], Allocation(), Extent.UNKNOWN),
        ([bug(1, "a")], [stopped("b")], Allocation(), Extent.ONE_NODE),
        ([bug(1, "a"), bug(2, "b")], [], Allocation(), Extent.EVERYWHERE),
        ([bug(1, "a")], [], Allocation(nodes=("a", "b")), Extent.ONE_NODE),
        ([bug(1, "a")], [], Allocation(nodes=("a",)), Extent.UNKNOWN),
        ([bug(1, "a"), bug(2, "b")], [], Allocation(nodes=("a", "b", "c", "d")), Extent.EVERYWHERE),
        ([bug(1, "a"), bug(2, "b")], [], Allocation(nodes=tuple("abcde")), Extent.UNKNOWN),
        ([bug(1, rank=0), bug(2, rank=1)], [], Allocation(), Extent.EVERYWHERE),
        ([bug(1, rank=0)], [], Allocation(), Extent.UNKNOWN),
    ],
)
def test_one_node_is_one_only_where_others_are_seen_to_be_well(
    same: list[Finding], others: list[Finding], allocation: Allocation, extent: Extent
) -> None:
    findings = [*same, *others]
    known = bool(allocation.nodes)
    ground = allocation if known else printed_allocation(findings)
    places = Places(findings, ground, is_whole=known)
    assert extent_of(same, findings, places) is extent


@pytest.mark.parametrize(
    ("extent", "steps", "remedy", "domain"),
    [
        (Extent.ONE_NODE, 0, Remedy.RESTART_EXCLUDING_NODE, Domain.SYSTEM_SOFTWARE),
        (Extent.EVERYWHERE, 0, Remedy.STOP, Domain.USER),
        (Extent.UNKNOWN, 0, Remedy.CONFIRM_THEN_STOP, Domain.UNKNOWN),
        (Extent.UNKNOWN, 9, Remedy.RESTART, Domain.UNKNOWN),
    ],
)
def test_where_and_when_it_shows_changes_what_helps(
    extent: Extent, steps: int, remedy: Remedy, domain: Domain
) -> None:
    progress = Progress(best_step=steps or None, last_step=steps or None)
    course = Course([Stretch(file="a", run=0, progress=progress)])
    assert remedy_of(bug(1), extent, course) is remedy
    assert domain_of(bug(1), extent) is domain


def test_a_rule_without_a_word_on_reach_stays_as_it_is() -> None:
    plain = finding("ecc")
    for extent in Extent:
        assert remedy_of(plain, extent, Course()) is plain.remedy
        assert domain_of(plain, extent) is plain.domain


@pytest.mark.parametrize(
    ("remedy", "domain", "extent"),
    [
        (Remedy.RESTART, Domain.UNKNOWN, Extent.ONE_NODE),
        (Remedy.CONFIRM_THEN_STOP, Domain.SYSTEM_SOFTWARE, Extent.ONE_NODE),
        (Remedy.STOP, Domain.USER, Extent.UNKNOWN),
    ],
)
def test_that_another_node_speaks_proves_something_only_of_what_is_no_mistake(
    remedy: Remedy, domain: Domain, extent: Extent
) -> None:
    told = msgspec.structs.replace(bug(1, "a"), remedy=remedy, domain=domain)
    ground = printed_allocation([told])
    places = Places([told], ground, is_whole=False, hosts=Hosts(heard=frozenset({"a", "b"})))
    assert extent_of([told], [told], places) is extent
