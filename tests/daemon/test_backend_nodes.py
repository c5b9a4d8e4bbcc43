"""What a node's fact tells the jobs that run on it, over a real store and a real Slurm."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from relight.clients.slurm.commands import Commands
from relight.clients.slurm.eyes import SlurmEyes
from relight.controller.observing import NODES_EVERY, Observer
from relight.daemon.backends import Backend
from relight.daemon.clock import now
from relight.model.advice import Mode
from relight.model.findings import Finding
from relight.model.instants import Instant, later, seconds
from relight.model.jobs import JobFact, JobState, NodeFact, NodeState
from relight.model.observations import Observation
from relight.store import Change, Store, StoreBusy
from relight.testing.slurm import SlurmCluster
from relight.testing.stories import COMMENT, KEY, NODES, START, book, fact

NOW = later(START, seconds(1_800))
UP = NodeFact(
    cluster="main", name=NODES[1], state=NodeState.UP, booted_at=later(START, seconds(-9_000))
)


class FragileStore(Store):
    """A store whose next commits fail, as they do while another process holds the database."""

    failures = 0

    def commit(self, change: Change) -> None:
        """Write all of a change, or fail as scripted."""
        if self.failures:
            self.failures -= 1
            raise StoreBusy("another process holds the database: try again")
        super().commit(change)


class Life:
    """A backend over a store, and what a controller tells it."""

    def __init__(self, path: Path) -> None:
        self.now: Instant = NOW
        self.store = FragileStore.open(str(path))
        self.backend = Backend(self.store, {"main": book(Mode.MONITOR)}, "rules", lambda: self.now)
        self.sequence = 0

    def see(self, *facts: JobFact, nodes: tuple[NodeFact, ...] = ()) -> None:
        """Let the controller see something; the jobs that were there before are still there."""
        self.sequence += 1
        self.backend.observe(
            Observation(
                cluster="main",
                sequence=self.sequence,
                at=self.now,
                complete=True,
                jobs=facts,
                present=("7", "8"),
                nodes=nodes,
            )
        )

    def findings(self, attempt: int = 0) -> list[str]:
        """Return the rules of what was found about an attempt."""
        case = self.store.case(KEY)
        assert case is not None
        known = case.attempt(attempt)
        return [] if known is None else [one.rule for one in known.findings]

    def told(self) -> int:
        """Return how many stimuli were journalled."""
        return len(list(self.store.journal()))


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "relight.db")
    life.see(fact(JobState.RUNNING), nodes=(UP,))
    yield life
    life.store.close()


def changed(**fields: object) -> NodeFact:
    if fields.get("reason"):
        fields.setdefault("reason_at", later(NOW, seconds(-5)))
    return msgspec.structs.replace(UP, **fields)


DRAINED = {"state": NodeState.DRAINED, "is_drained": True}


@pytest.mark.parametrize(
    ("node", "rules"),
    [
        (changed(state=NodeState.DOWN, reason="Not responding"), ["node-down"]),
        (changed(**DRAINED, reason="Kill task failed"), ["node-drained"]),
        (changed(state=NodeState.UNKNOWN, is_silent=True), ["node-not-responding"]),
        (changed(booted_at=later(START, seconds(600))), ["node-rebooted"]),
        (changed(**DRAINED, reason="x", reason_at=later(START, seconds(-9))), []),
        (changed(scheduler_state="ALLOCATED"), []),
        (msgspec.structs.replace(UP, name="another", state=NodeState.DOWN), []),
    ],
)
def test_a_nodes_news_reach_the_job_that_runs_on_it(
    life: Life, node: NodeFact, rules: list[str]
) -> None:
    life.see(nodes=(node,))
    assert life.findings() == rules


def test_a_node_that_did_not_change_is_no_news(life: Life) -> None:
    node = changed(state=NodeState.DOWN, reason="dead")
    life.see(nodes=(node,))
    told = life.told()
    for _ in range(3):
        life.see(nodes=(node, UP)[:1])
    assert life.told() == told


def test_a_job_on_other_nodes_is_told_nothing(life: Life) -> None:
    life.see(fact(JobState.RUNNING, scheduler_id="8", nodes=("node-09",)))
    told = life.told()
    life.see(nodes=(changed(is_silent=True),))
    assert life.told() == told + 1


def test_news_that_the_store_did_not_take_are_news_the_next_time(life: Life) -> None:
    node = changed(**DRAINED, reason="Kill task failed")
    life.store.failures = 1
    with pytest.raises(StoreBusy):
        life.see(nodes=(node,))
    assert life.findings() == []
    life.see(nodes=(node,))
    assert life.findings() == ["node-drained"]


def test_a_node_found_down_after_the_end_may_still_explain_it(life: Life) -> None:
    life.see(fact(JobState.FAILED, exit_status=1))
    life.now = later(NOW, seconds(299))
    life.see(nodes=(changed(state=NodeState.DOWN, reason="Not responding"),))
    assert life.findings() == ["node-down"]
    case = life.store.case(KEY)
    assert case is not None
    (finding,) = case.attempts[0].findings
    assert not finding.task_gone
    assert case.attempts[0].gone_nodes == ()


def test_long_after_the_end_nothing_of_a_node_is_of_interest(life: Life) -> None:
    life.see(fact(JobState.FAILED, exit_status=1))
    life.now = later(NOW, seconds(301))
    life.see(nodes=(changed(state=NodeState.DOWN, reason="Not responding"),))
    assert life.findings() == []


def test_the_next_attempt_is_not_told_what_befell_the_one_before(life: Life) -> None:
    began = later(NOW, seconds(60))
    life.see(fact(JobState.RUNNING, 1, started_at=began, submitted_at=NOW))
    life.now = later(NOW, seconds(90))
    life.see(nodes=(changed(**DRAINED, reason="Kill task failed"),))
    assert life.findings(0) == ["node-drained"]
    assert life.findings(1) == []


class Watched:
    """A job on a real Slurm, seen by a real observer, told to a backend."""

    def __init__(self, cluster: SlurmCluster, path: Path) -> None:
        self.cluster = cluster
        self.life = Life(path)
        self.ahead = 0
        self.observer = Observer("main", SlurmEyes("main", Commands(cluster.env, cluster.within)))
        options = ["-N2", "-w", "node-01,node-02", f"--comment={COMMENT}"]
        self.job = cluster.submit("sleep 600", options=options)
        cluster.wait_state(self.job, "RUNNING")
        self.look()

    def look(self) -> None:
        """Look once, by a clock that goes ahead so that nodes are looked at each time."""
        self.ahead += NODES_EVERY
        self.life.now = Instant(now() + self.ahead)
        observation, seen = self.observer.look(self.life.now)
        assert not observation.unseen
        self.life.backend.observe(observation)
        self.observer.accepted(observation, seen)

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found about the job's attempts."""
        case = self.life.store.newest_case("main", self.job)
        assert case is not None
        return tuple(one for attempt in case.attempts for one in attempt.findings)

    def wait(self, rule: str, timeout: float = 60.0) -> Finding:
        """Look until something is found by ``rule``."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            self.look()
            for finding in self.findings():
                if finding.rule == rule:
                    return finding
            time.sleep(0.3)
        raise AssertionError(f"{rule} was not found; but {self.findings()}")


@pytest.fixture
def watched(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(slurm_cluster, tmp_path / "relight.db")
    yield watched
    watched.life.store.close()


Hurt = Callable[[SlurmCluster], None]


def _update(**fields: str) -> Hurt:
    def hurt(cluster: SlurmCluster) -> None:
        words = [f"{name}={value}" for name, value in fields.items()]
        cluster.run("scontrol", "update", "NodeName=node-02", *words)

    return hurt


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("hurt", "rule", "words"),
    [
        (_update(State="DRAIN", Reason="replace a DIMM"), "node-drained", "replace a DIMM"),
        (_update(State="DRAIN", Reason="NHC: no IB port"), "node-drained", "check of its health"),
        (_update(State="DOWN", Reason="dead"), "node-down", "dead"),
        (_update(State="DRAIN", Reason="Kill task failed"), "node-drained", "could not be killed"),
    ],
)
def test_what_is_done_to_a_node_of_a_real_slurm_is_found(
    watched: Watched, hurt: Hurt, rule: str, words: str
) -> None:
    hurt(watched.cluster)
    finding = watched.wait(rule)
    assert words in finding.sentence
    assert "by root" in finding.sentence
    assert finding.nodes == ("node-02",)
    assert finding.at is not None
    watched.look()
    assert [one.rule for one in watched.findings()] == [rule]


@pytest.fixture
def impatient(tmp_path: Path, slurm_cluster: SlurmCluster) -> Iterator[Watched]:
    """Give a job on a Slurm of its own that soon takes a silent node for down."""
    folder = Path(tempfile.mkdtemp(prefix="relight-slurm-"))
    try:
        with SlurmCluster.start(
            folder, nodes=2, settings={"SlurmdTimeout": "6"}, root=slurm_cluster.root
        ) as cluster:
            watched = Watched(cluster, tmp_path / "relight.db")
            yield watched
            watched.life.store.close()
    finally:
        shutil.rmtree(folder.resolve(), ignore_errors=True)


@pytest.mark.slurm
def test_a_real_node_that_loses_a_gpu_and_one_that_loses_its_daemon_are_found(
    impatient: Watched,
) -> None:
    cluster = impatient.cluster
    seven = (
        f"NodeName=node-01 Name=gpu File={cluster.folder}/gpus/nvidia[0-7]\n"
        f"NodeName=node-02 Name=gpu File={cluster.folder}/gpus/nvidia[0-6]\n"
    )
    (cluster.folder / "gres.conf").write_text(seven)
    cluster.run("scontrol", "reconfigure")
    assert "(7 < 8)" in impatient.wait("node-gpus-missing").sentence
    cluster.kill_node("node-01")  # Slurm asks a node no more whose registration it refused
    silent = impatient.wait("node-not-responding")
    assert not silent.task_gone
    impatient.wait("node-down")
    rules = [one.rule for one in impatient.findings()]
    assert rules == ["node-gpus-missing", "node-not-responding", "node-down"]
