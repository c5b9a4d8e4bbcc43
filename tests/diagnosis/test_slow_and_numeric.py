"""Slow runs, numbers gone bad, and Xids, as all witnesses together explain them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.diagnosis.endings import Ending
from relight.diagnosis.placing import Places
from relight.diagnosis.trust import hear, xid_of
from relight.diagnosis.verdicts import diagnose
from relight.diagnosis.witnesses import is_line
from relight.model.findings import Domain, Evidence, Finding, Kind, Provenance, Remedy, Role
from relight.model.instants import later, seconds
from relight.model.jobs import Allocation, JobState
from relight.model.verdicts import Verdict
from relight.testing.stories import START, finding

NODES = tuple(f"node-{number}" for number in range(1, 5))
FOUR = Allocation(nodes=NODES, tasks_per_node=1, ranks_are_tasks=True)
LIVING = Ending()
FAILED = Ending(state=JobState.FAILED, exit_status=1)
LOG, KERNEL, TELEMETRY = Provenance.JOB_LOG, Provenance.KERNEL, Provenance.TELEMETRY
EXCLUDE = Remedy.RESTART_EXCLUDING_NODE


def seen(
    rule: str, by: Provenance, node: str = "", *, after: float = 0.0, **fields: object
) -> Finding:
    """Return what a witness tells of a node, ``after`` so many seconds from the start."""
    made = finding(rule, detector=by.value, seen_at=later(START, seconds(30)))
    text = fields.pop("text", f"line of {rule}")
    evidence = (Evidence(text=str(text), is_root=True),)
    return msgspec.structs.replace(
        made,
        id=f"{rule}-{by}-{node}-{after}-{text}",
        provenance=by,
        place=None,
        nodes=(node,) if node else (),
        at=later(START, seconds(after)),
        evidence=evidence,
        **fields,
    )


def slow(rule: str, node: str = "", domain: Domain = Domain.HARDWARE) -> Finding:
    kind, role = Kind.SLOW, Role.EITHER
    return seen(rule, TELEMETRY, node, kind=kind, role=role, domain=domain, remedy=Remedy.REPORT)


SLOWDOWN = seen(
    "slowdown",
    LOG,
    step=500,
    kind=Kind.SLOW,
    role=Role.SYMPTOM,
    domain=Domain.UNKNOWN,
    remedy=Remedy.REPORT,
    sentence="The steps take 1.4 times as long as before, which has cost 12 minutes so far.",
)
NAN = seen(
    "loss-not-a-number",
    LOG,
    step=500,
    kind=Kind.NUMERIC,
    role=Role.EITHER,
    domain=Domain.APPLICATION,
    remedy=Remedy.CONFIRM_THEN_STOP,
)
SPIKE = msgspec.structs.replace(NAN, id="spike", rule="loss-spike")
ECC = seen("gpu-ecc-uncorrectable", KERNEL, "node-2", kind=Kind.NODE, after=-30)


def xid(code: int, node: str = "node-2", by: Provenance = KERNEL, **fields: object) -> Finding:
    given: dict[str, object] = {
        "kind": Kind.NODE,
        "role": Role.EITHER,
        "remedy": EXCLUDE,
        "devices": ("0000:47:00",),
        "text": f"NVRM: Xid (PCI:0000:47:00): {code}, pid=7",
    }
    return seen("xid-of-a-gpu", by, node, **{**given, **fields})  # type: ignore[arg-type]  # passed on as given


def suspects(verdict: Verdict) -> list[str]:
    return [one.node for one in verdict.suspects]


@pytest.mark.parametrize(
    ("others", "cause", "domain", "remedy", "nodes"),
    [
        pytest.param([], "slowdown", Domain.UNKNOWN, Remedy.REPORT, [], id="nothing else is seen"),
        pytest.param(
            [slow("gpu-throttled", "node-3")],
            "gpu-throttled",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-3"],
            id="one node stands out",
        ),
        pytest.param(
            [slow("gpu-throttled", "node-3"), slow("gpu-hot", "node-3")],
            "gpu-hot",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-3"],
            id="one node stands out in two ways",
        ),
        pytest.param(
            [slow("gpu-power-low", node) for node in NODES],
            "gpu-power-low",
            Domain.HARDWARE,
            Remedy.REPORT,
            [],
            id="all are capped",
        ),
        pytest.param(
            [slow("gpu-clock-low", node) for node in NODES[:2]],
            "gpu-clock-low",
            Domain.HARDWARE,
            Remedy.REPORT,
            [],
            id="several are slow",
        ),
        pytest.param(
            [slow("storage-wait", "node-1", Domain.STORAGE)],
            "storage-wait",
            Domain.STORAGE,
            Remedy.REPORT,
            [],
            id="storage is waited for",
        ),
        pytest.param(
            [seen("nvlink-errors", TELEMETRY, "node-4", kind=Kind.NODE, role=Role.EITHER)],
            "nvlink-errors",
            Domain.HARDWARE,
            EXCLUDE,
            ["node-4"],
            id="the links of one node report errors",
        ),
        pytest.param(
            [slow("gpu-throttled", "node-99")],
            "slowdown",
            Domain.UNKNOWN,
            Remedy.REPORT,
            [],
            id="another job's node is throttled",
        ),
    ],
)
def test_a_slow_run_is_explained_by_the_one_node_that_stands_out(
    others: list[Finding], cause: str, domain: Domain, remedy: Remedy, nodes: list[str]
) -> None:
    verdict = diagnose([SLOWDOWN, *others], FOUR, LIVING)
    assert (verdict.cause, verdict.domain, verdict.remedy) == (cause, domain, remedy)
    assert (verdict.kind, suspects(verdict)) == (Kind.SLOW, nodes)
    assert "12 minutes" in verdict.sentence


def test_data_that_is_waited_for_is_told_by_the_log_itself() -> None:
    waits = msgspec.structs.replace(SLOWDOWN, domain=Domain.STORAGE)
    verdict = diagnose([waits], FOUR, LIVING)
    assert (verdict.domain, verdict.remedy) == (Domain.STORAGE, Remedy.REPORT)


def test_slowness_ends_nothing() -> None:
    verdict = diagnose([SLOWDOWN, slow("gpu-throttled", "node-3")], FOUR, FAILED)
    assert verdict.cause == "unknown-failure"
    bug = msgspec.structs.replace(finding("bug", domain=Domain.USER, remedy=Remedy.STOP))
    both = diagnose([SLOWDOWN, slow("gpu-throttled", "node-3"), bug], FOUR, FAILED)
    assert (both.cause, suspects(both)) == ("bug", [])
    assert {one.rule for one in both.set_aside} >= {"slowdown", "gpu-throttled"}


def test_a_line_before_the_steps_went_on_explains_no_slow_run() -> None:
    survived = msgspec.structs.replace(finding("ecc", nodes=("node-1",)), step=100)
    verdict = diagnose([survived, SLOWDOWN], FOUR, LIVING)
    assert verdict.cause == "slowdown"
    lately = msgspec.structs.replace(survived, step=499)
    assert suspects(diagnose([lately, SLOWDOWN], FOUR, LIVING)) == ["node-1"]


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param(
            [NAN],
            ("loss-not-a-number", Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP, []),
            id="numbers alone",
        ),
        pytest.param(
            [NAN, ECC],
            ("gpu-ecc-uncorrectable", Domain.HARDWARE, EXCLUDE, ["node-2"]),
            id="the memory of one node failed",
        ),
        pytest.param(
            [NAN, xid(63, role=Role.BENIGN, remedy=Remedy.REPORT)],
            ("xid-of-a-gpu", Domain.HARDWARE, EXCLUDE, ["node-2"]),
            id="a row was remapped just then",
        ),
        pytest.param(
            [
                NAN,
                seen(
                    "kernel-machine-check-logged",
                    KERNEL,
                    "node-4",
                    kind=Kind.NODE,
                    role=Role.SYMPTOM,
                ),
            ],
            ("kernel-machine-check-logged", Domain.HARDWARE, EXCLUDE, ["node-4"]),
            id="the kernel logged a machine check",
        ),
        pytest.param(
            [NAN, *(xid(63, node, role=Role.BENIGN) for node in NODES)],
            ("loss-not-a-number", Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP, []),
            id="all nodes remapped rows",
        ),
        pytest.param(
            [NAN, xid(63, role=Role.BENIGN, after=-700)],
            ("loss-not-a-number", Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP, []),
            id="the memory failed long before",
        ),
    ],
)
@pytest.mark.parametrize("ending", [LIVING, FAILED])
def test_bad_numbers_are_the_programs_unless_memory_failed_then(
    findings: list[Finding], expected: tuple[str, Domain, Remedy, list[str]], ending: Ending
) -> None:
    verdict = diagnose(findings, FOUR, ending)
    assert (verdict.cause, verdict.domain, verdict.remedy, suspects(verdict)) == expected
    assert verdict.kind is Kind.NUMERIC


def test_a_loss_that_jumped_is_only_told() -> None:
    verdict = diagnose([SPIKE], FOUR, LIVING)
    assert (verdict.cause, verdict.remedy) == ("loss-spike", Remedy.REPORT)
    assert diagnose([SPIKE], FOUR, FAILED).cause == "unknown-failure"


def test_numbers_that_are_bad_on_one_rank_alone_are_said_to_be() -> None:
    verdict = diagnose([msgspec.structs.replace(NAN, ranks=(3,))], FOUR, LIVING)
    assert "on that rank alone" in verdict.sentence
    assert verdict.ranks == (3,)
    assert suspects(verdict) == []


def test_what_a_program_raises_for_its_bad_numbers_is_their_effect() -> None:
    raised = msgspec.structs.replace(
        finding("raised", domain=Domain.APPLICATION, remedy=Remedy.STOP),
        family="user_code_exception",
        step=500,
        at=later(START, seconds(5)),
    )
    assert diagnose([NAN, raised], FOUR, FAILED).cause == "loss-not-a-number"
    assert diagnose([SPIKE, raised], FOUR, FAILED).cause == "raised"
    other = msgspec.structs.replace(raised, family="device_oom")
    assert diagnose([NAN, other], FOUR, FAILED).cause == "raised"


@pytest.mark.parametrize("code", [43, 45])
@pytest.mark.parametrize("by", [KERNEL, TELEMETRY])
def test_xids_that_only_follow_never_blame(code: int, by: Provenance) -> None:
    told = xid(code, by=by, role=Role.ROOT, remedy=EXCLUDE)
    assert suspects(diagnose([told], FOUR, FAILED)) == []


@pytest.mark.parametrize("code", [13, 31])
def test_xids_of_programs_blame_a_node_only_where_they_keep_to_one_gpu(code: int) -> None:
    now = xid(code)
    alone = diagnose([now], FOUR, FAILED)
    assert (alone.domain, alone.remedy) == (Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP)
    assert suspects(alone) == []
    before = xid(code, after=-400)
    again = diagnose([now, before], FOUR, FAILED)
    assert (again.domain, suspects(again)) == (Domain.HARDWARE, ["node-2"])
    elsewhere = msgspec.structs.replace(before, devices=("0000:81:00",))
    assert suspects(diagnose([now, elsewhere], FOUR, FAILED)) == []
    long_ago = xid(code, after=-4_000)
    ended = Ending(state=JobState.FAILED, at=later(START, seconds(10)))
    verdict = diagnose([now, long_ago], FOUR, ended)
    assert suspects(verdict) == ["node-2"]
    assert any("before the trouble" in one.why for one in verdict.set_aside)


@pytest.mark.parametrize(
    ("text", "fingerprint", "code"),
    [
        ("NVRM: Xid (PCI:0000:47:00): 79, pid=7", "", 79),
        ("", "gpu-xid|code=48", 48),
        ("", "gpu-xid:95", 95),
        ("DCGM_FI_DEV_XID_ERRORS 63", "gpu-xid|xid=63", 63),
        ("nothing of the kind", "gpu-hot", None),
    ],
)
def test_a_code_is_read_from_the_line_or_from_what_names_the_failure(
    text: str, fingerprint: str, code: int | None
) -> None:
    told = msgspec.structs.replace(seen("a", TELEMETRY, text=text), fingerprint=fingerprint)
    assert xid_of(told) == code


def test_what_came_long_before_or_after_is_set_aside_with_the_time() -> None:
    ended = Ending(state=JobState.FAILED, at=later(START, seconds(60)))
    early, late = seen("gpu-hot", TELEMETRY, "node-1", after=-660), seen("late", KERNEL, after=400)
    heard = hear([early, late], Places([], FOUR), ended)
    whys = {one.rule: one.why for one in heard.set_aside}
    assert whys["gpu-hot"] == "it came 12m 00s before the trouble: too early for it"
    assert whys["late"] == "it came 5m 40s after the end: too late for it"
    assert diagnose([early, late], FOUR, ended).set_aside == heard.set_aside


def test_a_rank_that_reports_a_time_out_has_waited_since_long_before() -> None:
    text = "Watchdog caught collective operation timeout: ran for 600000 milliseconds before"
    text += " timing out"
    waited = msgspec.structs.replace(
        finding("nccl-watchdog-timeout", kind=Kind.HANG, role=Role.SYMPTOM, domain=Domain.UNKNOWN),
        at=START,
        evidence=(Evidence(text=text, is_root=True),),
    )
    broke = seen("gpu-fallen-off-bus", KERNEL, "node-1", kind=Kind.NODE, after=-610)
    assert suspects(diagnose([waited, broke], FOUR, FAILED)) == ["node-1"]


RULES = [
    ("no-progress", LOG, Kind.HANG),
    ("slowdown", LOG, Kind.SLOW),
    ("loss-not-a-number", LOG, Kind.NUMERIC),
    ("rank-not-joined", LOG, Kind.HANG),
    ("collective-mismatch", LOG, Kind.HANG),
    ("recorder-refused", LOG, Kind.HANG),
    ("gpu-idle-among-busy", TELEMETRY, Kind.HANG),
    ("gpus-spin", TELEMETRY, Kind.HANG),
    ("gpus-idle", TELEMETRY, Kind.HANG),
    ("gpus-work", TELEMETRY, Kind.HANG),
    ("telemetry-gone", TELEMETRY, Kind.HANG),
    ("gpu-count-lower", TELEMETRY, Kind.NODE),
    ("gpu-throttled", TELEMETRY, Kind.SLOW),
    ("storage-wait", TELEMETRY, Kind.SLOW),
    ("nvlink-errors", TELEMETRY, Kind.NODE),
    ("node-down", Provenance.SCHEDULER, Kind.NODE),
    ("node-not-responding", Provenance.SCHEDULER, Kind.NODE),
    ("gpu-fallen-off-bus", KERNEL, Kind.NODE),
    ("nfs-server-not-responding", KERNEL, Kind.HANG),
    ("xid-application-fault", KERNEL, Kind.CRASH),
    ("line", LOG, Kind.CRASH),
    ("watch", LOG, Kind.HANG),
]


@st.composite
def stories(draw: st.DrawFn) -> list[Finding]:
    """Return findings of any sort, from any witness, about any node."""
    made = []
    for number in range(draw(st.integers(1, 7))):
        rule, by, kind = draw(st.sampled_from(RULES))
        one = seen(
            rule,
            by,
            draw(st.sampled_from(["", *NODES, "node-99"])),
            after=draw(st.integers(-900, 300)),
            step=draw(st.sampled_from([None, 1, 5])),
            kind=kind,
            role=draw(st.sampled_from([Role.ROOT, Role.EITHER, Role.SYMPTOM, Role.BENIGN])),
            domain=draw(st.sampled_from(list(Domain))),
            remedy=draw(st.sampled_from(list(Remedy))),
            ranks=draw(st.sampled_from([(), (0,), (1, 2)])),
            task_gone=rule == "node-down",
        )
        is_signature = rule in ("line", "watch")
        one = msgspec.structs.replace(one, detector="signatures" if is_signature else by.value)
        made.append(msgspec.structs.replace(one, id=f"f{number}"))
    return made


ENDINGS = [LIVING, FAILED, Ending(state=JobState.NODE_FAIL), Ending(gone_nodes=("node-2",))]


@given(stories(), st.sampled_from(ENDINGS), st.data())
@settings(max_examples=150, deadline=None)
def test_the_order_in_which_findings_come_changes_nothing(
    findings: list[Finding], ending: Ending, data: st.DataObject
) -> None:
    other = data.draw(st.permutations(findings))
    first, second = diagnose(findings, FOUR, ending), diagnose(other, FOUR, ending)
    assert first == second
    assert 0.0 <= first.confidence <= 1.0
    assert {one.node for one in first.suspects} <= {*NODES}


@given(stories(), st.sampled_from(ENDINGS), st.integers(0, 2**7))
@settings(max_examples=150, deadline=None)
def test_a_node_is_blamed_only_where_somebody_who_is_left_speaks_of_it(
    findings: list[Finding], ending: Ending, dropped: int
) -> None:
    left = [one for number, one in enumerate(findings) if not dropped >> number & 1]
    places = Places(left, FOUR)
    spoken = {node for one in left for node in places.of(one)} | {*ending.gone_nodes}
    spoken |= {NODES[rank] for one in left for rank in one.ranks}
    assert {one.node for one in diagnose(left, FOUR, ending).suspects} <= spoken


@given(stories(), st.sampled_from(ENDINGS))
@settings(max_examples=150, deadline=None)
def test_without_witnesses_only_the_log_blames(findings: list[Finding], ending: Ending) -> None:
    lines = [one for one in findings if is_line(one)]
    blamed = {one.node for one in diagnose(lines, FOUR, ending).suspects}
    places = Places(lines, FOUR)
    assert blamed <= {node for one in lines for node in places.of(one)} | {*ending.gone_nodes}


@given(stories(), st.sampled_from(ENDINGS))
@settings(max_examples=150, deadline=None)
def test_nothing_that_was_found_is_passed_over_in_silence(
    findings: list[Finding], ending: Ending
) -> None:
    if all(is_line(one) for one in findings):
        return
    verdict = diagnose(findings, FOUR, ending)
    if not verdict.root:
        return
    said = {one.finding for one in verdict.set_aside} | {verdict.root}
    others = {one.cause for one in verdict.alternatives}
    assert [one.rule for one in findings if one.id not in said and one.rule not in others] == []
    assert len([one.finding for one in verdict.set_aside]) == len(
        {one.finding for one in verdict.set_aside}
    )
