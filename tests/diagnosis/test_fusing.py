"""One verdict of all witnesses: hangs, broken machines, and who is believed where they differ."""

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

NODES = tuple(f"node-{number}" for number in range(1, 7))
SIX = Allocation(nodes=NODES, tasks_per_node=1, ranks_are_tasks=True)
LIVING = Ending()
FAILED = Ending(state=JobState.FAILED, exit_status=1)
LOG, KERNEL = Provenance.JOB_LOG, Provenance.KERNEL
TELEMETRY, SCHEDULER = Provenance.TELEMETRY, Provenance.SCHEDULER
EXCLUDE, DRAIN = Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN


def told(
    rule: str, by: Provenance, *, after: float = 0.0, step: int | None = None, **fields: object
) -> Finding:
    """Return what a witness tells ``after`` so many seconds from the start of the trouble."""
    nodes = "".join(map(str, fields.get("nodes", ())))  # type: ignore[call-overload]  # names of nodes
    made = finding(rule, detector=by.value, seen_at=later(START, seconds(30)))
    return msgspec.structs.replace(
        made,
        id=f"{rule}-{by}-{nodes}-{after}",
        provenance=by,
        place=None,
        at=later(START, seconds(after)),
        step=step,
        **fields,
    )


def hang(rule: str, by: Provenance = TELEMETRY, **fields: object) -> Finding:
    """Return a sign of how the ranks wait."""
    given = {
        "kind": Kind.HANG,
        "role": Role.EITHER,
        "domain": Domain.UNKNOWN,
        "remedy": Remedy.RESTART,
    }
    return told(rule, by, **{**given, **fields})  # type: ignore[arg-type]  # passed on as given


def broken(rule: str, by: Provenance, node: str, **fields: object) -> Finding:
    """Return that a witness saw a machine break."""
    given = {"kind": Kind.NODE, "remedy": DRAIN, "nodes": (node,)}
    return told(rule, by, **{**given, **fields})  # type: ignore[arg-type]  # passed on as given


def line(rule: str, *, after: float = 0.0, step: int | None = None, **fields: object) -> Finding:
    """Return a line of the job's log."""
    given: dict[str, object] = {"domain": Domain.APPLICATION, "remedy": Remedy.STOP, **fields}
    made = finding(rule, offset=int(after) + 1000, seen_at=later(START, seconds(max(after, 1.0))))
    at = later(START, seconds(after))
    return msgspec.structs.replace(made, at=at, step=step, **given)


SILENCE = hang("no-progress", LOG, role=Role.SYMPTOM, family="silent_hang", step=100)
IDLE_7 = hang("gpu-idle-among-busy", nodes=("node-3",), devices=("5",))
NOT_JOINED = hang("rank-not-joined", LOG, ranks=(2,))
NOT_JOINED_ELSEWHERE = hang("rank-not-joined", LOG, ranks=(4,))
SPIN = hang("gpus-spin")
IDLE = hang("gpus-idle")
WORK = hang("gpus-work", remedy=Remedy.REPORT, domain=Domain.NONE)
GONE = hang("telemetry-gone", nodes=("node-5",))
NFS = hang("nfs-server-not-responding", KERNEL, domain=Domain.STORAGE, remedy=Remedy.HOLD)
STORAGE = told("storage-wait", TELEMETRY, kind=Kind.SLOW, domain=Domain.STORAGE)
XID = broken("gpu-fallen-off-bus", KERNEL, "node-3")
XID_LINE = line(
    "gpu-fallen-off-bus",
    kind=Kind.NODE,
    domain=Domain.HARDWARE,
    remedy=DRAIN,
    nodes=("node-3",),
)
COUNT_6 = broken("gpu-count-lower", TELEMETRY, "node-6", after=20)
COUNT = broken("gpu-count-lower", TELEMETRY, "node-3")
BUG = line("user-bug", after=-20, family="user_code_exception", ranks=(0,))
WATCHDOG = line(
    "nccl-watchdog-timeout",
    family="nccl_collective_timeout",
    kind=Kind.HANG,
    role=Role.SYMPTOM,
    domain=Domain.UNKNOWN,
    remedy=Remedy.RESTART,
    ranks=(0,),
)
LOST_PEER = line(
    "nccl-remote-error",
    role=Role.SYMPTOM,
    domain=Domain.NETWORK,
    remedy=Remedy.RESTART,
    ranks=(0,),
)


def judged(findings: list[Finding], ending: Ending = LIVING, on: Allocation = SIX) -> Verdict:
    """Return the verdict on findings."""
    return diagnose(findings, on, ending)


def suspects(verdict: Verdict) -> list[str]:
    return [one.node for one in verdict.suspects]


@pytest.mark.parametrize(
    ("findings", "cause", "domain", "remedy", "nodes"),
    [
        pytest.param(
            [SILENCE], "no-progress", Domain.UNKNOWN, Remedy.RESTART, [], id="silence alone"
        ),
        pytest.param(
            [SILENCE, IDLE_7],
            "gpu-idle-among-busy",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-3"],
            id="one GPU is idle among busy ones",
        ),
        pytest.param(
            [SILENCE, NOT_JOINED],
            "rank-not-joined",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-3"],
            id="the ranks' record names who never came",
        ),
        pytest.param(
            [SILENCE, SPIN, NOT_JOINED],
            "rank-not-joined",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-3"],
            id="all spin, and the record names who never came",
        ),
        pytest.param(
            [SILENCE, hang("rank-not-joined", LOG, ranks=(0, 1, 2, 3))],
            "rank-not-joined",
            Domain.APPLICATION,
            Remedy.CONFIRM_THEN_STOP,
            [],
            id="one rank of most nodes stays out: a branch in the program",
        ),
        pytest.param(
            [SILENCE, hang("rank-not-joined", LOG, ranks=(0, 1))],
            "rank-not-joined",
            Domain.UNKNOWN,
            Remedy.RESTART,
            [],
            id="ranks of two of six nodes stay out: of no node",
        ),
        pytest.param(
            [SILENCE, SPIN], "gpus-spin", Domain.UNKNOWN, Remedy.RESTART, [], id="all spin"
        ),
        pytest.param(
            [SILENCE, hang("rank-stuck-in-transport", LOG)],
            "rank-stuck-in-transport",
            Domain.NETWORK,
            Remedy.RESTART,
            [],
            id="all came and their data did not",
        ),
        pytest.param(
            [SILENCE, IDLE, STORAGE],
            "storage-wait",
            Domain.STORAGE,
            Remedy.HOLD,
            [],
            id="all idle, and storage is waited for",
        ),
        pytest.param(
            [
                SILENCE,
                IDLE,
                msgspec.structs.replace(NFS, nodes=("node-1",)),
                msgspec.structs.replace(NFS, id="2", nodes=("node-2",)),
            ],
            "nfs-server-not-responding",
            Domain.STORAGE,
            Remedy.HOLD,
            [],
            id="all idle, and the kernels wait for NFS",
        ),
        pytest.param(
            [SILENCE, NFS],
            "nfs-server-not-responding",
            Domain.STORAGE,
            Remedy.HOLD,
            [],
            id="the kernel waits for NFS, and telemetry says nothing",
        ),
        pytest.param(
            [SILENCE, IDLE_7, msgspec.structs.replace(NFS, nodes=("node-3",))],
            "gpu-idle-among-busy",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-3"],
            id="storage is waited for on the idle node alone",
        ),
        pytest.param(
            [SILENCE, IDLE], "gpus-idle", Domain.UNKNOWN, Remedy.RESTART, [], id="all idle, no more"
        ),
        pytest.param(
            [SILENCE, GONE],
            "telemetry-gone",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-5"],
            id="the telemetry of one node stopped",
        ),
        pytest.param(
            [
                SILENCE,
                *(
                    msgspec.structs.replace(GONE, id=node, nodes=(node,))
                    for node in ("node-1", "node-2", "node-3", "node-4")
                ),
            ],
            "no-progress",
            Domain.UNKNOWN,
            Remedy.RESTART,
            [],
            id="the telemetry of most nodes stopped: the server's trouble",
        ),
        pytest.param(
            [SILENCE, WORK],
            "work-goes-on",
            Domain.NONE,
            Remedy.REPORT,
            [],
            id="the GPUs work: no hang",
        ),
        pytest.param(
            [SILENCE, WORK, NOT_JOINED],
            "rank-not-joined",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-3"],
            id="the GPUs work, and the record contradicts",
        ),
        pytest.param(
            [SILENCE, hang("collective-mismatch", LOG, ranks=(1, 3)), SPIN],
            "collective-mismatch",
            Domain.APPLICATION,
            Remedy.STOP,
            [],
            id="the ranks call different collectives",
        ),
        pytest.param(
            [SILENCE, IDLE_7, BUG],
            "user-bug",
            Domain.APPLICATION,
            Remedy.STOP,
            [],
            id="a traceback came before the silence",
        ),
        pytest.param(
            [SILENCE, BUG, XID],
            "gpu-fallen-off-bus",
            Domain.HARDWARE,
            DRAIN,
            ["node-3"],
            id="a GPU fell off the bus, whatever the log says",
        ),
        pytest.param(
            [SILENCE, hang("recorder-refused", LOG)],
            "no-progress",
            Domain.UNKNOWN,
            Remedy.RESTART,
            [],
            id="the record is not safe to read",
        ),
        pytest.param(
            [SILENCE, hang("stream-blocked", LOG)],
            "stream-blocked",
            Domain.UNKNOWN,
            Remedy.RESTART,
            [],
            id="an earlier operation blocks the stream",
        ),
        pytest.param(
            [SILENCE, SPIN, broken("infiniband-link-down", TELEMETRY, "node-2")],
            "infiniband-link-down",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-2"],
            id="all spin, and one node's link is down",
        ),
    ],
)
def test_a_hang_is_explained_by_whoever_saw_why(
    findings: list[Finding], cause: str, domain: Domain, remedy: Remedy, nodes: list[str]
) -> None:
    verdict = judged(findings)
    assert (verdict.cause, verdict.domain, verdict.remedy) == (cause, domain, remedy)
    assert suspects(verdict) == nodes
    assert verdict.evidence
    known = {one.finding for one in verdict.set_aside} | {verdict.root}
    others = {one.cause for one in verdict.alternatives}
    assert all(one.id in known or one.rule in others for one in findings)


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([SILENCE, IDLE_7, NOT_JOINED], "the ranks' own record says so too"),
        ([SILENCE, IDLE_7, WATCHDOG], "gpu-idle-among-busy"),
        ([SILENCE, NOT_JOINED, SPIN], "rank-not-joined"),
        (
            [SILENCE, GONE, broken("node-not-responding", SCHEDULER, "node-5", role=Role.EITHER)],
            "telemetry of node-5 says so too",
        ),
    ],
)
def test_witnesses_that_name_the_same_node_are_believed_more(
    findings: list[Finding], words: str
) -> None:
    fewer, all_of_them = judged(findings[:2]), judged(findings)
    assert words in all_of_them.sentence
    assert suspects(all_of_them) == suspects(fewer)
    if findings[2] is not WATCHDOG:
        assert all_of_them.confidence > fewer.confidence
    assert len(all_of_them.evidence) >= len(fewer.evidence)


def test_a_watchdog_that_names_who_was_waited_for_agrees_with_the_idle_gpu() -> None:
    lagging = [
        msgspec.structs.replace(
            WATCHDOG,
            id=f"watchdog-{rank}",
            ranks=(rank,),
            evidence=(
                Evidence(
                    text=f"last enqueued NCCL work: {39 - (rank == 2)}, "
                    "last completed NCCL work: 38",
                    is_root=True,
                ),
            ),
        )
        for rank in range(6)
    ]
    alone, together = judged([SILENCE, IDLE_7]), judged([SILENCE, IDLE_7, *lagging])
    assert suspects(together) == ["node-3"]
    assert together.confidence == pytest.approx(alone.confidence + 0.2)
    by_lines = judged([SILENCE, SPIN, *lagging])
    assert (by_lines.cause, suspects(by_lines)) == ("nccl-watchdog-timeout", ["node-3"])


@pytest.mark.parametrize(
    ("findings", "believed", "other"),
    [
        ([SILENCE, IDLE_7, NOT_JOINED_ELSEWHERE], "node-3", "rank-not-joined"),
        ([SILENCE, IDLE_7, GONE], "node-3", "telemetry-gone"),
        (
            [XID, broken("gpu-count-lower", TELEMETRY, "node-6", after=20)],
            "node-3",
            "gpu-count-lower",
        ),
        ([XID, SILENCE, IDLE_7, GONE], "node-3", "telemetry-gone"),
        (
            [broken("gpu-row-remap-failure", TELEMETRY, "node-6", after=5), XID_LINE],
            "node-6",
            "gpu-fallen-off-bus",
        ),
    ],
)
def test_witnesses_that_name_different_nodes_are_shown_both(
    findings: list[Finding], believed: str, other: str
) -> None:
    verdict = judged(findings)
    assert suspects(verdict) == [believed]
    (alternative,) = [one for one in verdict.alternatives if one.cause == other]
    assert alternative.why
    assert "; but " in verdict.sentence
    assert any(one.weight < 0 for one in verdict.terms)


@pytest.mark.parametrize(
    ("findings", "expected", "said"),
    [
        pytest.param(
            [XID_LINE, XID],
            ("gpu-fallen-off-bus", Domain.HARDWARE, DRAIN, ["node-3"]),
            "says so too",
            id="a line and the kernel tell of one event",
        ),
        pytest.param(
            [XID, BUG],
            ("gpu-fallen-off-bus", Domain.HARDWARE, DRAIN, ["node-3"]),
            "but the log shows a cause of its own: the text of user-bug",
            id="a broken GPU and a mistake: restart without the node, and say both",
        ),
        pytest.param(
            [COUNT, LOST_PEER],
            ("gpu-count-lower", Domain.HARDWARE, DRAIN, ["node-3"]),
            "the log shows what followed: the text of nccl-remote-error",
            id="a GPU is missing and peers lost a connection",
        ),
        pytest.param(
            [LOST_PEER, broken("infiniband-link-down", TELEMETRY, "node-2")],
            ("infiniband-link-down", Domain.HARDWARE, EXCLUDE, ["node-2"]),
            "the log shows what followed",
            id="one link is down, and nothing else explains the end",
        ),
        pytest.param(
            [BUG, broken("infiniband-link-down", TELEMETRY, "node-2")],
            ("user-bug", Domain.APPLICATION, Remedy.STOP, []),
            "telemetry points at node-2",
            id="a mistake goes before what is merely unwell",
        ),
        pytest.param(
            [broken("node-drained", SCHEDULER, "node-2", role=Role.EITHER)],
            ("node-drained", Domain.HARDWARE, EXCLUDE, ["node-2"]),
            "node-drained",
            id="one node was drained by a check of its health, and nothing else is known",
        ),
        pytest.param(
            [
                LOST_PEER,
                told(
                    "host-oom-kill",
                    KERNEL,
                    nodes=("node-4",),
                    domain=Domain.APPLICATION,
                    remedy=Remedy.CONFIRM_THEN_STOP,
                ),
            ],
            ("host-oom-kill", Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP, []),
            "host-oom-kill",
            id="only the kernel shows that memory ran out",
        ),
        pytest.param(
            [LOST_PEER, broken("node-down", SCHEDULER, "node-2", task_gone=True), XID],
            ("node-failure", Domain.HARDWARE, EXCLUDE, ["node-2"]),
            "by the scheduler's own word",
            id="the scheduler's word that a node is down stands above all",
        ),
        pytest.param(
            [XID, *(broken("gpu-row-remap-failure", TELEMETRY, node) for node in NODES[:3])],
            ("gpu-fallen-off-bus", Domain.HARDWARE, DRAIN, ["node-3"]),
            "gpu-fallen-off-bus",
            id="half of the nodes show something, and one broke first",
        ),
        pytest.param(
            [broken("gpu-row-remap-failure", TELEMETRY, node) for node in NODES[:4]],
            ("gpu-row-remap-failure", Domain.HARDWARE, Remedy.HOLD, []),
            "none is blamed",
            id="most nodes show it: shared, hold",
        ),
        pytest.param(
            [broken("gpu-fallen-off-bus", KERNEL, "node-99"), LOST_PEER],
            ("nccl-remote-error", Domain.NETWORK, Remedy.CONFIRM_THEN_STOP, []),
            "nccl-remote-error",
            id="another job's node is nobody's here",
        ),
        pytest.param(
            [broken("gpu-fallen-off-bus", KERNEL, "node-3", after=-660), LOST_PEER],
            ("nccl-remote-error", Domain.NETWORK, Remedy.CONFIRM_THEN_STOP, []),
            "nccl-remote-error",
            id="11 minutes before is too early",
        ),
    ],
)
def test_a_crash_is_explained_by_the_most_trusted_witness(
    findings: list[Finding], expected: tuple[str, Domain, Remedy, list[str]], said: str
) -> None:
    verdict = judged(findings, FAILED)
    assert (verdict.cause, verdict.domain, verdict.remedy, suspects(verdict)) == expected
    assert said in verdict.sentence
    known = {one.finding for one in verdict.set_aside} | {verdict.root}
    others = {one.cause for one in verdict.alternatives}
    assert all(one.id in known or one.rule in others for one in findings)


def test_what_only_follows_is_no_cause_whoever_tells_it() -> None:
    aftermath = told("xid-aftermath", KERNEL, role=Role.SYMPTOM, remedy=Remedy.REPORT)
    drained = broken("node-drained", SCHEDULER, "node-2", role=Role.EITHER, remedy=Remedy.REPORT)
    verdict = judged([aftermath, drained], FAILED)
    assert verdict.cause == "unknown-failure"
    beside = judged([aftermath, drained, LOST_PEER], FAILED)
    assert beside.cause == "nccl-remote-error"
    assert {one.rule for one in beside.set_aside} == {"xid-aftermath", "node-drained"}


def test_a_silence_that_steps_came_after_explains_nothing() -> None:
    later_bug = msgspec.structs.replace(BUG, step=140, at=later(START, seconds(300)))
    verdict = judged([SILENCE, IDLE_7, later_bug], FAILED)
    assert verdict.cause == "user-bug"
    (aside,) = [one for one in verdict.set_aside if one.rule == "no-progress"]
    assert aside.why == "steps were completed after it"
    assert "no step was completed" not in verdict.sentence


@pytest.mark.parametrize(
    ("signs", "nodes"),
    [
        ([XID], ["node-3"]),
        ([GONE], ["node-5"]),
        ([broken("node-not-responding", SCHEDULER, "node-6", role=Role.EITHER)], ["node-6"]),
        ([SPIN], []),
        ([broken("gpu-row-remap-failure", TELEMETRY, node) for node in NODES], []),
    ],
)
def test_a_node_that_failed_without_a_name_is_named_by_the_witness_of_it(
    signs: list[Finding], nodes: list[str]
) -> None:
    verdict = judged([LOST_PEER, *signs], Ending(state=JobState.NODE_FAIL))
    assert (verdict.cause, suspects(verdict)) == ("node-failure", nodes)
    assert verdict.remedy is (EXCLUDE if nodes else Remedy.RESTART)


@pytest.mark.parametrize(
    ("sign", "domain", "nodes"),
    [
        (
            hang("rank-not-joined", LOG, nodes=("node-3",), ranks=(2,), remedy=EXCLUDE),
            Domain.UNKNOWN,
            ["node-3"],
        ),
        (
            hang("rank-not-joined", LOG, ranks=(2,), domain=Domain.APPLICATION),
            Domain.APPLICATION,
            [],
        ),
        (
            hang("rank-stuck-in-transport", LOG, nodes=("node-3",), remedy=EXCLUDE),
            Domain.HARDWARE,
            ["node-3"],
        ),
        (
            hang("stream-blocked", LOG, nodes=("node-3",), remedy=EXCLUDE),
            Domain.UNKNOWN,
            ["node-3"],
        ),
    ],
)
def test_what_the_ranks_recorded_is_read_as_it_says_itself(
    sign: Finding, domain: Domain, nodes: list[str]
) -> None:
    verdict = judged([SILENCE, sign])
    assert (verdict.domain, suspects(verdict)) == (domain, nodes)


def test_the_same_event_in_log_and_kernel_is_one_cause_with_both_shown() -> None:
    alone, together = judged([XID_LINE], FAILED), judged([XID_LINE, XID], FAILED)
    assert together.cause == alone.cause
    assert together.alternatives == ()
    assert any(one.what.endswith("says so too") for one in together.terms)
    assert together.confidence > alone.confidence
    assert len(together.evidence) == 2
    assert together.evidence[0].is_root


def test_each_witness_shows_a_few_lines_at_most() -> None:
    many = [
        msgspec.structs.replace(XID, id=f"xid-{number}", at=later(START, seconds(number)))
        for number in range(1, 30)
    ]
    verdict = judged([XID, *many, COUNT, SILENCE, IDLE_7], FAILED)
    assert suspects(verdict) == ["node-3"]
    assert len(verdict.evidence) <= 8
    assert [one.is_root for one in verdict.evidence].count(True) == 1


def test_a_line_that_steps_came_after_explains_no_silence() -> None:
    survived = msgspec.structs.replace(BUG, step=60)
    verdict = judged([survived, SILENCE, IDLE_7])
    assert suspects(verdict) == ["node-3"]
    (aside,) = [one for one in verdict.set_aside if one.rule == "user-bug"]
    assert aside.why == "the run went on and completed steps after it"


def test_a_rank_that_only_says_that_it_waited_is_not_who_was_waited_for() -> None:
    waited = msgspec.structs.replace(WATCHDOG, rule="stream-timed-out", role=Role.EITHER)
    assert suspects(judged([SILENCE, SPIN, waited])) == []


def test_what_most_nodes_show_in_different_ways_is_shared_too() -> None:
    rules = ("gpu-count-lower", "gpu-row-remap-failure", "gpu-xid", "node-rebooted-by-metrics")
    found = [broken(rule, TELEMETRY, node) for rule, node in zip(rules, NODES, strict=False)]
    verdict = judged([*found, LOST_PEER], FAILED)
    assert (verdict.remedy, verdict.suspects) == (Remedy.HOLD, ())
    assert "; but " not in verdict.sentence
