"""What a witness saw before the trouble, after the end, or beside it."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.model.findings import Domain, Evidence, Finding, Kind, Provenance, Remedy, Role
from relight.model.instants import later, seconds
from relight.model.jobs import Allocation, JobState
from relight.model.verdicts import Verdict
from relight.testing.stories import START, finding

NODES = tuple(f"node-{number}" for number in range(1, 17))
SIXTEEN = Allocation(nodes=NODES, tasks_per_node=1, ranks_are_tasks=True)
ENDED = later(START, seconds(100))
FAILED = Ending(state=JobState.FAILED, exit_status=1, at=ENDED)
OUT_OF_MEMORY = Ending(state=JobState.OUT_OF_MEMORY, exit_signal=9, at=ENDED)
TELEMETRY, KERNEL = Provenance.TELEMETRY, Provenance.KERNEL
EXCLUDE, CONFIRM = Remedy.RESTART_EXCLUDING_NODE, Remedy.CONFIRM_THEN_STOP


def seen(
    rule: str, after: float, node: str = "node-3", by: Provenance = TELEMETRY, **fields: object
) -> Finding:
    """Return what a witness saw so many seconds after the end."""
    made = finding(rule, detector=by.value, seen_at=later(ENDED, seconds(290)))
    given: dict[str, object] = {
        "kind": Kind.NODE,
        "domain": Domain.HARDWARE,
        "remedy": EXCLUDE,
        "nodes": (node,),
        **fields,
    }
    at = later(ENDED, seconds(after))
    return msgspec.structs.replace(
        made, id=f"{rule}-{node}-{after}", provenance=by, place=None, at=at, **given
    )


def killed(after: float, by: Provenance = TELEMETRY, text: str = "") -> Finding:
    return seen(
        "node-oom-kill",
        after,
        by=by,
        family="host_oom_kill",
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=CONFIRM,
        evidence=(Evidence(text=text, is_root=True),),
    )


def mistake(*ranks: int, family: str = "user_code_exception") -> Finding:
    """Return a traceback without a time, read with all else."""
    made = finding("user-bug", offset=10, seen_at=later(ENDED, seconds(290)))
    return msgspec.structs.replace(
        made,
        at=None,
        family=family,
        ranks=ranks,
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=Remedy.STOP,
    )


def judged(*findings: Finding, ending: Ending = FAILED) -> Verdict:
    return diagnose(findings, SIXTEEN, ending)


REBOOT = "node-rebooted-by-metrics"


@pytest.mark.parametrize(
    ("findings", "ending", "cause"),
    [
        pytest.param([seen(REBOOT, -20)], FAILED, REBOOT, id="a node was last up before the end"),
        pytest.param([seen(REBOOT, 90)], FAILED, "user-bug", id="a node was up after the end"),
        pytest.param(
            [seen(REBOOT, 90, node) for node in NODES], FAILED, "user-bug", id="so were all nodes"
        ),
        pytest.param([killed(60)], FAILED, "user-bug", id="a kill after the end"),
        pytest.param([killed(-200)], FAILED, "user-bug", id="a kill that no line tells of"),
        pytest.param(
            [killed(-200)], OUT_OF_MEMORY, "node-oom-kill", id="a kill that the scheduler tells of"
        ),
        pytest.param(
            [killed(-20, KERNEL, "oom-kill:task_memcg=/slurm/uid_1/job_77/step_0,task=python")],
            FAILED,
            "user-bug",
            id="a kill in another job's control group",
        ),
    ],
)
def test_a_mistake_on_all_ranks_stands_beside_what_befell_a_node(
    findings: list[Finding], ending: Ending, cause: str
) -> None:
    verdict = judged(mistake(*range(16)), *findings, ending=ending)
    assert verdict.cause == cause
    if cause == "user-bug":
        assert verdict.remedy is Remedy.STOP
        assert {one.finding for one in verdict.set_aside} >= {one.id for one in findings}


def test_a_kill_in_the_jobs_own_control_group_is_its_cause() -> None:
    job = mistake(0).attempt.job.scheduler_id
    text = f"oom-kill:task_memcg=/slurm/uid_1/job_{job}/step_0,task=python"
    assert judged(mistake(*range(16)), killed(-20, KERNEL, text)).cause == "node-oom-kill"


def test_a_kill_explains_a_process_that_was_killed() -> None:
    dead = mistake(2, family="process_killed_sigkill")
    dead = msgspec.structs.replace(dead, role=Role.SYMPTOM, remedy=CONFIRM)
    assert judged(dead, killed(-20)).cause == "node-oom-kill"


def test_an_xid_of_programs_does_not_explain_a_mistake_of_other_ranks() -> None:
    xid = seen("gpu-xid", 5, fingerprint="gpu-xid|code=31", role=Role.EITHER)
    assert judged(mistake(*range(16)), xid).cause == "user-bug"
    fault = mistake(2, family="cuda_kernel_fault")
    before = msgspec.structs.replace(xid, at=later(ENDED, seconds(-5)))
    assert judged(fault, before).cause == "gpu-xid"


def test_after_an_end_nothing_else_explains_a_reboot_is_no_cause_of_it() -> None:
    verdict = judged(*(seen(REBOOT, 90, node) for node in NODES))
    assert (verdict.cause, verdict.suspects) == ("unknown-failure", ())


@pytest.mark.parametrize(("after", "named"), [(-10, ["node-3"]), (-300, [])])
def test_metrics_that_stopped_long_before_the_trouble_accuse_nobody(
    after: float, named: list[str]
) -> None:
    gone = seen("telemetry-gone", after, kind=Kind.HANG, role=Role.EITHER)
    assert [one.node for one in judged(gone).suspects] == named


def complaint(rule: str, kind: Kind) -> Finding:
    made = finding(rule, detector="rhythm", seen_at=ENDED)
    return msgspec.structs.replace(
        made, kind=kind, role=Role.EITHER, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, at=START
    )


SILENCE, SLOWDOWN = complaint("no-progress", Kind.HANG), complaint("slowdown", Kind.SLOW)


def test_one_exporter_that_stopped_accuses_less_than_all_of_a_node() -> None:
    surely = seen("telemetry-gone", 0, kind=Kind.HANG, role=Role.EITHER)
    perhaps = msgspec.structs.replace(surely, role=Role.SYMPTOM)
    of = [diagnose([SILENCE, one], SIXTEEN, Ending()) for one in (surely, perhaps)]
    assert [one.suspects[0].node for one in of] == ["node-3", "node-3"]
    assert of[0].confidence > of[1].confidence


@pytest.mark.parametrize(
    ("peers", "remedy"),
    [
        pytest.param(("fs1",), Remedy.HOLD, id="it names its server"),
        pytest.param((), EXCLUDE, id="it names none"),
    ],
)
def test_an_idle_node_whose_kernel_waits_for_its_server_is_not_left_out(
    peers: tuple[str, ...], remedy: Remedy
) -> None:
    idle = seen("gpu-idle-among-busy", 0, kind=Kind.HANG)
    waits = seen(
        "nfs-server-not-responding",
        0,
        by=KERNEL,
        kind=Kind.HANG,
        role=Role.EITHER,
        domain=Domain.STORAGE,
        remedy=Remedy.HOLD,
        peers=peers,
    )
    verdict = diagnose([SILENCE, idle, waits], SIXTEEN, Ending())
    assert verdict.remedy is remedy
    linked = seen("infiniband-link-down", 0, role=Role.EITHER)
    beside = diagnose([SILENCE, idle, waits, linked], SIXTEEN, Ending())
    assert beside.remedy is EXCLUDE


@pytest.mark.parametrize(("count", "named"), [(1, 1), (2, 2), (3, 0)])
def test_of_many_nodes_a_few_slow_ones_are_named(count: int, named: int) -> None:
    slow = [seen("gpu-hot", 0, node, kind=Kind.SLOW) for node in NODES[:count]]
    verdict = diagnose([SLOWDOWN, *slow], SIXTEEN, Ending())
    assert [one.node for one in verdict.suspects] == list(NODES[:named])
    assert all(node in verdict.sentence for node in NODES[:count])
