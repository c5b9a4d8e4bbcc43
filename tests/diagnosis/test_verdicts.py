"""From findings and an ending to who is to blame."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.diagnosis.endings import Ending
from relight.diagnosis.sentences import clause
from relight.diagnosis.verdicts import diagnose
from relight.model.findings import Domain, Evidence, Finding, Kind, Place, Remedy, Role
from relight.model.instants import Instant, seconds
from relight.model.jobs import ENDED, Allocation, JobState
from relight.model.verdicts import Verdict
from relight.testing.stories import NODES, START, finding

THREE = Allocation(nodes=NODES, tasks_per_node=1, ranks_are_tasks=True)
TWO_EACH = Allocation(nodes=NODES, tasks_per_node=2, ranks_are_tasks=True)
LAUNCHER = Allocation(nodes=NODES, tasks_per_node=1)
FAILED = Ending(state=JobState.FAILED, exit_status=1)
ECC = finding("ecc", ranks=(1,))


def suspects(verdict: Verdict) -> list[str]:
    return [one.node for one in verdict.suspects]


@pytest.mark.parametrize(
    ("state", "cause", "domain"),
    [
        (JobState.CANCELLED, "cancelled", Domain.USER),
        (JobState.TIMEOUT, "time-limit", Domain.SCHEDULER),
        (JobState.PREEMPTED, "preempted", Domain.SCHEDULER),
        (JobState.COMPLETED, "completed", Domain.NONE),
    ],
)
@pytest.mark.parametrize("gone", [(), ("node-02",)])
@pytest.mark.parametrize("unseen", ["", "no rights"])
def test_an_end_that_is_no_failure_stands_above_every_line_and_node(
    state: JobState, cause: str, domain: Domain, gone: tuple[str, ...], unseen: str
) -> None:
    verdict = diagnose([ECC], THREE, Ending(state=state, gone_nodes=gone), unseen)
    assert (verdict.cause, verdict.domain, verdict.remedy) == (cause, domain, Remedy.END)
    assert verdict.suspects == ()


@pytest.mark.parametrize(
    ("ending", "findings", "lost"),
    [
        (Ending(state=JobState.FAILED, gone_nodes=("node-03",)), [ECC], ["node-03"]),
        (Ending(gone_nodes=("node-03", "node-01")), [], ["node-03", "node-01"]),
        (Ending(state=JobState.NODE_FAIL), [ECC], []),
        (Ending(state=JobState.FAILED, gone_nodes=("node-99",)), [], None),
        (
            FAILED,
            [finding("node-failed", kind=Kind.NODE, nodes=("node-02",), task_gone=True)],
            ["node-02"],
        ),
        (
            FAILED,
            [finding("node-failed", kind=Kind.NODE, nodes=("node-99",), task_gone=True)],
            None,
        ),
        (FAILED, [finding("node-sick", kind=Kind.NODE, nodes=("node-02",))], None),
    ],
)
def test_a_node_that_the_scheduler_lost_stands_above_every_other_cause(
    ending: Ending, findings: list[Finding], lost: list[str] | None
) -> None:
    bug = finding("bug", domain=Domain.STORAGE, remedy=Remedy.HOLD, seen_at=Instant(START - 1))
    verdict = diagnose([bug, *findings], THREE, ending)
    assert (verdict.cause == "node-failure") is (lost is not None)
    if lost is not None:
        assert suspects(verdict) == lost
        assert (verdict.remedy is Remedy.RESTART) is (lost == [])
        assert sum(one.share for one in verdict.suspects) == pytest.approx(1.0 if lost else 0.0)
        assert verdict.sentence.endswith("; before that, the text of bug")


@pytest.mark.parametrize(
    ("allocation", "made", "expected"),
    [
        (THREE, finding("ecc", nodes=("node-02",)), ["node-02"]),
        (THREE, finding("ecc", nodes=("node-02.example.org",)), ["node-02"]),
        (THREE, finding("ecc", nodes=("node-02",), ranks=(0,)), ["node-02"]),
        (THREE, finding("ecc", ranks=(2,)), ["node-03"]),
        (TWO_EACH, finding("ecc", ranks=(2,)), ["node-02"]),
        (TWO_EACH, finding("ecc", ranks=(6,)), []),
        (TWO_EACH, finding("ecc", tasks=(5,)), ["node-03"]),
        (TWO_EACH, finding("ecc", tasks=(0,), ranks=(5,)), ["node-01"]),
        (LAUNCHER, finding("ecc", ranks=(2,)), []),
        (LAUNCHER, finding("ecc", tasks=(2,)), ["node-03"]),
        (Allocation(nodes=NODES), finding("ecc", tasks=(1,)), []),
        (Allocation(), finding("ecc", ranks=(1,), nodes=("node-02",)), []),
        (THREE, finding("ecc", nodes=("node-99",), ranks=(1,)), []),
        (THREE, finding("ecc"), []),
        (Allocation(nodes=("node-01",)), finding("ecc", ranks=(7,)), ["node-01"]),
        (Allocation(nodes=("node-01",)), finding("ecc", nodes=("node-99",), ranks=(0,)), []),
    ],
)
def test_blame_falls_on_the_node_of_the_line_and_on_nobody_where_it_cannot_be_placed(
    allocation: Allocation, made: Finding, expected: list[str]
) -> None:
    verdict = diagnose([made], allocation, FAILED)
    assert suspects(verdict) == expected
    assert verdict.cause == "ecc"
    wanted = Remedy.RESTART_EXCLUDING_NODE if expected else Remedy.RESTART
    assert verdict.remedy is wanted


def printed(rule: str, host: str, numbers: tuple[int, ...], offset: int = 0) -> Finding:
    if rule.startswith("slurm"):
        text = f"srun: error: {host}: task {numbers[0]}: Exited with exit code 1"
    else:
        text = f"  host      : {host}" if host else f"  rank      : {numbers[0]} (local_rank: 1)"
    made = finding(
        rule,
        nodes=(host,) if host else (),
        ranks=numbers,
        offset=offset,
        role=Role.SYMPTOM,
        domain=Domain.UNKNOWN,
        task_gone=rule.startswith("slurm"),
    )
    return msgspec.structs.replace(made, evidence=(Evidence(text=text, is_root=True),))


def test_what_the_launcher_prints_of_a_task_goes_before_arithmetic() -> None:
    died = printed("slurm-task-exited", "node-03", (1,))
    told = finding("ecc", tasks=(1,), offset=9)
    assert suspects(diagnose([told, died], THREE, FAILED)) == ["node-03"]
    other = finding("ecc", tasks=(0,), offset=9)
    assert suspects(diagnose([other, died], THREE, FAILED)) == ["node-03"], "the first death"
    soft = msgspec.structs.replace(other, domain=Domain.NETWORK)
    assert suspects(diagnose([soft, died], THREE, FAILED)) == [], "arithmetic is refuted"


def test_the_elastic_launchers_report_places_a_rank() -> None:
    host = printed("child-failed", "node-03.example.org", (), offset=10)
    rank = printed("child-failed", "", (9,), offset=11)
    told = finding("ecc", ranks=(9,))
    assert suspects(diagnose([told, host, rank], LAUNCHER, FAILED)) == ["node-03"]
    far = printed("child-failed", "", (9,), offset=40)
    assert suspects(diagnose([told, host, far], LAUNCHER, FAILED)) == []
    elsewhere = msgspec.structs.replace(rank, place=Place(file="other.out", offset=11, line=12))
    assert suspects(diagnose([told, host, elsewhere], LAUNCHER, FAILED)) == []


@pytest.mark.parametrize(
    ("count", "hit", "expected"),
    [
        (1, 1, 1),
        (2, 1, 1),
        (2, 2, 2),
        (3, 1, 1),
        (3, 2, 0),
        (4, 2, 2),
        (4, 3, 0),
        (8, 8, 0),
    ],
)
def test_what_most_nodes_show_is_nobodys_fault(count: int, hit: int, expected: int) -> None:
    nodes = tuple(f"n{number}" for number in range(count))
    allocation = Allocation(nodes=nodes, tasks_per_node=1, ranks_are_tasks=True)
    findings = [finding("ecc", ranks=(number,), offset=number) for number in range(hit)]
    verdict = diagnose(findings, allocation, FAILED)
    assert suspects(verdict) == list(nodes[:expected])
    assert verdict.ranks == tuple(range(hit))
    assert (verdict.remedy is Remedy.RESTART) is (expected == 0)


def test_every_node_that_shows_the_root_is_named_by_share_and_one_of_a_symptom_is_not() -> None:
    four = Allocation(nodes=(*NODES, "node-04"), tasks_per_node=1, ranks_are_tasks=True)
    verdict = diagnose(
        [
            finding("ecc", ranks=(1,)),
            finding("ecc", ranks=(3,), offset=5),
            finding("watchdog", ranks=(2,), role=Role.SYMPTOM, offset=9),
        ],
        four,
        FAILED,
    )
    assert [(one.node, one.share) for one in verdict.suspects] == [
        ("node-02", 0.5),
        ("node-04", 0.5),
    ]
    assert [one.rule for one in verdict.set_aside] == ["watchdog", "ecc"]


@pytest.mark.parametrize(
    ("root", "deaths", "expected"),
    [
        (finding("ecc"), [("node-03", 5), ("node-01", 9)], ["node-03"]),
        (finding("ecc"), [("node-01", 9), ("node-03", 5)], ["node-03"]),
        (finding("ecc"), [("node-99", 1), ("node-03", 5)], ["node-03"]),
        (finding("ecc"), [], []),
        (finding("ecc", domain=Domain.NETWORK), [("node-03", 5)], []),
        (finding("ecc", nodes=("node-99",), ranks=(0,)), [("node-03", 5)], []),
        (finding("ecc", remedy=Remedy.RESTART), [("node-03", 5)], []),
        (finding("ecc", nodes=("node-01",)), [("node-03", 5)], ["node-01"]),
    ],
)
def test_hardware_that_names_no_place_is_sought_where_the_first_task_died(
    root: Finding, deaths: list[tuple[str, int]], expected: list[str]
) -> None:
    died = [printed("slurm-task-died", node, (7,), offset) for node, offset in deaths]
    assert suspects(diagnose([root, *died], THREE, FAILED)) == expected


def test_several_tasks_dead_at_once_locate_nothing() -> None:
    both = finding("slurm-x", nodes=("node-01", "node-02"), role=Role.SYMPTOM, task_gone=True)
    assert suspects(diagnose([finding("ecc"), both], THREE, FAILED)) == []


@pytest.mark.parametrize(
    ("ending", "unseen", "cause", "remedy"),
    [
        (Ending(state=JobState.FAILED, exit_status=1), "", "unknown-failure", "confirm_then_stop"),
        (Ending(state=JobState.FAILED, exit_status=2), "", "usage-error", "stop"),
        (Ending(state=JobState.FAILED, exit_status=126), "", "not-executable", "stop"),
        (Ending(state=JobState.FAILED, exit_status=127), "", "command-not-found", "stop"),
        (Ending(state=JobState.FAILED, exit_signal=9), "", "unknown-failure", "confirm_then_stop"),
        (Ending(state=JobState.FAILED), "", "unknown-failure", "confirm_then_stop"),
        (Ending(state=JobState.FAILED, exit_status=127), "no rights", "logs-unseen", "report"),
        (Ending(state=JobState.FAILED, exit_status=1), "no rights", "logs-unseen", "report"),
        (Ending(state=JobState.OUT_OF_MEMORY), "", "out-of-memory", "confirm_then_stop"),
        (Ending(state=JobState.OUT_OF_MEMORY), "no rights", "out-of-memory", "confirm_then_stop"),
        (Ending(state=JobState.BOOT_FAIL), "", "boot-fail", "restart"),
        (Ending(state=JobState.BOOT_FAIL), "not there yet", "boot-fail", "restart"),
    ],
)
@pytest.mark.parametrize("findings", [[], [finding("bye", kind=Kind.ENDING)]])
def test_without_a_line_that_explains_the_end_state_and_exit_code_must_do(
    ending: Ending, unseen: str, cause: str, remedy: str, findings: list[Finding]
) -> None:
    verdict = diagnose(findings, THREE, ending, unseen)
    assert (verdict.cause, verdict.remedy.value) == (cause, remedy)
    assert verdict.suspects == ()
    if cause == "logs-unseen":
        assert unseen in verdict.sentence


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (Ending(state=JobState.FAILED, exit_signal=9), "ended by signal 9"),
        (Ending(state=JobState.FAILED, exit_status=3), "exit code 3"),
        (Ending(state=JobState.FAILED), "it failed"),
    ],
)
def test_an_unexplained_end_is_told_as_it_was(ending: Ending, words: str) -> None:
    assert words in diagnose([], THREE, ending).sentence


def test_a_line_explains_more_than_an_exit_code_or_files_that_are_partly_unseen() -> None:
    ending = Ending(state=JobState.FAILED, exit_status=127)
    assert diagnose([ECC], THREE, ending, "rank-3.out: no rights").cause == "ecc"


@pytest.mark.parametrize(
    ("sentence", "inside"),
    [
        ("The GPU fell off the bus.", "the GPU fell off the bus"),
        ("A GPU failed.", "a GPU failed"),
        ("GPU 3 failed.", "GPU 3 failed"),
        ("NCCL timed out", "NCCL timed out"),
        ("CUDA error: x", "CUDA error: x"),
        ("the file is gone. ", "the file is gone"),
        ("x", "x"),
        ("X", "X"),
        ("", ""),
        ("...", ""),
        ("Éclair failed.", "éclair failed"),
        ("2 ranks died.", "2 ranks died"),
    ],
)
def test_a_sentence_becomes_a_clause(sentence: str, inside: str) -> None:
    assert clause(sentence) == inside


FINDINGS = st.lists(
    st.builds(
        finding,
        st.sampled_from(["ecc", "bug", "slurm-task-died", "child-failed"]),
        role=st.sampled_from(Role),
        domain=st.sampled_from(Domain),
        remedy=st.sampled_from(Remedy),
        kind=st.sampled_from(Kind),
        ranks=st.lists(st.integers(0, 9), max_size=2).map(tuple),
        tasks=st.lists(st.integers(0, 9), max_size=2).map(tuple),
        nodes=st.lists(st.sampled_from([*NODES, "node-99", ""]), max_size=2).map(tuple),
        seen_at=st.integers(0, 5).map(lambda count: Instant(START + seconds(count))),
        offset=st.integers(0, 30),
        task_gone=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda one: one.id,
)
ENDINGS = st.builds(
    Ending,
    state=st.none() | st.sampled_from(sorted(ENDED)),
    exit_status=st.none() | st.integers(0, 255),
    exit_signal=st.none() | st.integers(0, 64),
    gone_nodes=st.lists(st.sampled_from([*NODES, "node-99"]), max_size=2).map(tuple),
)
PLACED = st.sampled_from([THREE, TWO_EACH, LAUNCHER, Allocation(nodes=NODES), Allocation()])


@given(FINDINGS, PLACED, ENDINGS, st.sampled_from(["", "no rights"]))
@settings(max_examples=200, deadline=None)
def test_whatever_was_found_a_verdict_keeps_the_laws(
    findings: list[Finding], allocation: Allocation, ending: Ending, unseen: str
) -> None:
    verdict = diagnose(findings, allocation, ending, unseen)
    nodes = suspects(verdict)
    assert set(nodes) <= set(allocation.nodes), "law 10: only nodes of its own"
    assert len(set(nodes)) == len(nodes)
    assert sum(one.share for one in verdict.suspects) == pytest.approx(float(bool(nodes)), abs=0.01)
    assert 0 < verdict.confidence <= 1
    assert verdict.cause
    assert verdict.sentence, "law 12"
    assert verdict.fingerprint
    excludes = (Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN)
    assert bool(nodes) is (verdict.remedy in excludes)
    if ending.state in (JobState.CANCELLED, JobState.COMPLETED):
        assert verdict.remedy is Remedy.END, "law 5"
    assert diagnose(findings, allocation, ending, unseen) == verdict


def test_a_line_that_names_nobody_blames_the_only_node_of_its_job() -> None:
    alone = Allocation(nodes=("node-07",))
    verdict = diagnose([finding("ecc")], alone, Ending(state=JobState.FAILED))
    assert [one.node for one in verdict.suspects] == ["node-07"]
    assert verdict.suspects[0].why == "the job ran nowhere else"


def test_a_cause_that_is_only_known_by_its_symptoms_is_tried_once_more() -> None:
    symptom = finding("exited", role=Role.SYMPTOM, domain=Domain.UNKNOWN, remedy=Remedy.RESTART)
    verdict = diagnose([symptom], Allocation(), Ending(state=JobState.FAILED))
    assert verdict.remedy is Remedy.CONFIRM_THEN_STOP
