"""Verdicts on stories from clusters, written without a look at how verdicts are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from functools import cache
from math import ceil
from zlib import crc32

import msgspec
import pytest

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.trouble import is_work, signs_of_hang
from relight.model.evidence import Window
from relight.model.findings import Domain, Evidence, Finding, Kind, Place, Provenance, Remedy, Role
from relight.model.instants import Instant, later, seconds, to_iso
from relight.model.jobs import Allocation, AttemptKey, JobKey, JobState, NodeFact, NodeState
from relight.model.signals import Mark, Reading
from relight.model.telemetry import Sample, Series, Sight
from relight.model.verdicts import Verdict
from relight.perception.attempts import PerceptionState, conclude, perceive
from relight.perception.ears import Ears, Lexicon
from relight.perception.kernel.hearing import Stretch, Watch, hear
from relight.perception.nodes import told_by_scheduler
from relight.perception.telemetry.judging import judge
from relight.policy.living import names_slow_node
from relight.rules.loading import load

ATTEMPT = AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0)
SINCE = Instant(1_775_000_000_000_000)
TROUBLE = 600.0
"""Seconds from the start of each window to its trouble."""
OUR_JOB = "7"
BIT_IDLE, BIT_POWER_CAP, BIT_THERMAL, BIT_HW_SLOWDOWN, BIT_BRAKE = 0x1, 0x4, 0x40, 0x8, 0x80

GPU_USE = {
    "DCGM_FI_DEV_GPU_UTIL": "util",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "engine",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram",
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "out",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "in",
    "DCGM_FI_PROF_NVLINK_TX_BYTES": "link",
    "DCGM_FI_PROF_NVLINK_RX_BYTES": "link",
    "DCGM_FI_DEV_SM_CLOCK": "clock",
    "DCGM_FI_DEV_GPU_TEMP": "temp",
}
_KEYS = ("util", "engine", "tensor", "dram", "power", "out", "in", "link", "clock", "temp")
MODES: dict[str, dict[str, float]] = {
    name: dict(zip(_KEYS, values, strict=True))
    for name, values in {
        "train": (98, 0.95, 0.36, 0.34, 610, 3.1e9, 2.4e9, 5.5e10, 1740, 66),
        "spin": (100, 1.0, 0.0, 0.01, 235, 3e5, 4e5, 2e3, 1980, 49),
        "idle": (0, 0.0, 0.0, 0.0, 118, 8e4, 6e4, 0, 1980, 41),
        "unused": (0, 0.0, 0.0, 0.0, 72, 2e4, 2e4, 0, 345, 33),
        "generate": (100, 0.92, 0.03, 0.71, 395, 4e8, 5e8, 8e9, 1965, 58),
        "evaluate": (66, 0.55, 0.05, 0.29, 335, 9e8, 8e8, 9e9, 1965, 55),
        "starved": (28, 0.27, 0.10, 0.10, 270, 9e8, 9e8, 1.5e10, 1965, 50),
        "bubble": (45, 0.43, 0.15, 0.15, 340, 1.4e9, 1.2e9, 2.4e10, 1950, 54),
    }.items()
}
SPREAD = {"util": 0.01, "tensor": 0.12, "dram": 0.10, "power": 0.03, "out": 0.25, "in": 0.25}
SPREAD |= {"link": 0.2, "clock": 0.006, "temp": 0.015, "engine": 0.02}
MOST = {"util": 100.0, "engine": 1.0, "tensor": 1.0, "dram": 1.0}

Value = Callable[[float], float | None]


def noise(*key: object) -> float:
    """Return a number from -1 to 1, mostly near 0, that depends on nothing but ``key``."""
    first = crc32(repr(key).encode()) * 2_654_435_761 % 2**32
    second = (first ^ first >> 15) * 2_246_822_519 % 2**32
    third = (second ^ second >> 13) * 3_266_489_917 % 2**32
    return (first + second + third) / (1.5 * 2**32) - 1


def at(count: float) -> Instant:
    return later(SINCE, seconds(count))


@cache
def lexicon() -> Lexicon:
    return Lexicon(load())


LIVING = Ending()


@dataclass
class Cluster:
    """What happened to one job: how its GPUs went on, what was written, what was said.

    Seconds count from the start of the window; at ``TROUBLE`` the last step was completed, the
    job slowed down or it ended. ``after`` is how long that was ago.
    """

    nodes: tuple[str, ...]
    trouble: str = "silent"
    gpus: int = 4
    step: float = 15
    after: float = 165
    profiled: bool = True
    switched_on: bool = False
    """Whether the fields that dcgm-exporter's own list leaves out are there."""
    started: float = -7200
    has_node_exporter: bool = True
    missing: float = 0.02
    ending: Ending = LIVING
    last_step: int = 4200
    unseen: str = ""
    logs_unseen: str = ""
    labelled: dict[tuple[str, int], str] = field(default_factory=dict)
    one_launcher: bool = False
    phases: list[tuple[float, str, frozenset[str], frozenset[int]]] = field(default_factory=list)
    changed: dict[tuple[str, str, str], Value] = field(default_factory=dict)
    added: dict[tuple[str, str, str], Value] = field(default_factory=dict)
    gaps: list[tuple[str, frozenset[str], float, float]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    scrapes: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)

    def turns(
        self, mode: str, *nodes: str, gpus: tuple[int, ...] = (), since: float = TROUBLE
    ) -> Cluster:
        """Let GPUs go on in another way; all nodes, or all GPUs, where none is named."""
        self.phases.append((since, mode, frozenset(nodes or self.nodes), frozenset(gpus)))
        return self

    def shows(self, metric: str, node: str, device: str | int, value: Value) -> Cluster:
        """Let one series be as ``value`` says, whatever it would have been."""
        key = (metric, node, str(device))
        (self.changed if metric in GPU_USE else self.added)[key] = value
        return self

    def loses(self, exporter: str, *nodes: str, since: float, until: float = 1e9) -> Cluster:
        """Let an exporter (``gpu``, ``node`` or ``both``) not be scraped for a time."""
        self.gaps.append((exporter, frozenset(nodes or self.nodes), since, until))
        return self

    def writes(self, *lines: str) -> Cluster:
        """Let the job print."""
        self.log += lines
        return self

    def kernel(self, node: str, *messages: str, when: float = TROUBLE) -> Cluster:
        """Let the kernel of ``node`` write."""
        times = [to_iso(at(when + number)) for number in range(len(messages))]
        data = "".join(
            f"{time} {node} kernel: {text}\n" for time, text in zip(times, messages, strict=True)
        )
        watch = Watch(
            ears=Ears(lexicon(), ATTEMPT, Provenance.KERNEL),
            node=node,
            since=SINCE,
            until=self.now,
            now=self.now,
            zone=UTC,
        )
        self.findings += hear(
            Stretch(file=f"/{node}", offset=0, data=data.encode()), watch
        ).findings
        return self

    def scheduler(self, node: str, state: NodeState, reason: str, *, who: str = "root") -> Cluster:
        """Let the scheduler say something new of ``node``."""
        before = NodeFact(cluster="main", name=node, state=NodeState.UP)
        now = NodeFact(
            cluster="main",
            name=node,
            state=state,
            reason=reason,
            is_drained=state is NodeState.DRAINED,
            reason_by=who,
            reason_at=at(TROUBLE + 5),
        )
        self.findings += told_by_scheduler(before, now, ATTEMPT, self.now, at(-3600))
        return self

    @property
    def now(self) -> Instant:
        """Return when it is judged."""
        return at(TROUBLE + self.after)

    @property
    def allocation(self) -> Allocation:
        """Return the nodes of the job and where its ranks run."""
        if self.one_launcher:
            return Allocation(nodes=self.nodes, tasks_per_node=1)
        return Allocation(nodes=self.nodes, tasks_per_node=self.gpus, ranks_are_tasks=True)

    @property
    def window(self) -> Window:
        """Return the time that metrics are asked about."""
        trouble = at(TROUBLE)
        return Window(
            attempt=ATTEMPT,
            allocation=self.allocation,
            since=SINCE,
            until=self.now,
            silent_since=trouble if self.trouble == "silent" else None,
            slow_since=trouble if self.trouble == "slow" else None,
            started_at=at(self.started),
        )

    def heard(self) -> tuple[Finding, ...]:
        """Return everything that was found, of whatever source."""
        sight = Sight(
            source="metrics",
            since=SINCE,
            until=self.now,
            series=() if self.unseen else tuple(self._series()),
            interval=self.step,
            unseen=self.unseen,
        )
        return (*self._rhythm(), *self._logged(), *self.findings, *judge(sight, self.window))

    def verdict(self) -> tuple[Verdict, tuple[Finding, ...]]:
        """Return who is to blame, and the findings that it was told by."""
        findings = self.heard()
        return diagnose(findings, self.allocation, self.ending, self.logs_unseen), findings

    def _logged(self) -> tuple[Finding, ...]:
        if not self.log:
            return ()
        text = "".join(f"{line}\n" for line in self.log).encode()
        reading = Reading(file="job-7.out", offset=0, data=text, mark=Mark(offset=len(text)))
        ears = Ears(lexicon(), ATTEMPT)
        heard = perceive(PerceptionState(), [reading], self.now, ears)
        return (*heard.findings, *conclude(heard.state, self.now, ears).findings)

    def _rhythm(self) -> tuple[Finding, ...]:
        """Return what the silence or the slowness of the job's own log makes."""
        if self.trouble not in ("silent", "slow"):
            return ()
        silent = self.trouble == "silent"
        place = Place(file="job-7.out", offset=81_000, line=900)
        rule = "no-progress" if silent else "slowdown"
        found = Finding(
            id=f"{rule}-1",
            detector="silence" if silent else "slowdown",
            rule=rule,
            family="hang" if silent else "slowdown",
            kind=Kind.HANG if silent else Kind.SLOW,
            role=Role.EITHER,
            domain=Domain.UNKNOWN,
            remedy=Remedy.RESTART if silent else Remedy.REPORT,
            attempt=ATTEMPT,
            seen_at=self.now,
            sentence="No step was completed for too long" if silent else "Its steps take longer",
            at=at(TROUBLE),
            place=place,
            evidence=(Evidence(text=f"step {self.last_step}", place=place, is_root=True),),
            step=self.last_step,
            fingerprint=f"{rule}|phase=steps" if silent else f"{rule}|domain=unknown",
        )
        return (found,)

    def _scrapes(self, exporter: str, node: str) -> tuple[int, ...]:
        """Return at which steps an exporter was scraped; all its series are, or none."""
        key = (exporter, node)
        if key not in self.scrapes:
            steps = range(int((TROUBLE + self.after) // self.step) + 1)
            self.scrapes[key] = tuple(
                number for number in steps if self._is_scraped(exporter, node, number * self.step)
            )
        return self.scrapes[key]

    def _is_scraped(self, exporter: str, node: str, when: float) -> bool:
        if (crc32(f"{exporter} {node} {when}".encode()) % 1000) / 1000 < self.missing:
            return False
        return not any(
            node in nodes and since <= when < until and of in (exporter, "both")
            for of, nodes, since, until in self.gaps
        )

    def _usual(self, shown: Shown, exporter: str, node: str, device: str) -> tuple[Sample, ...]:
        """Return the samples of a series to which nothing happened but what its GPU did."""
        late = lag(exporter, node, self.step)
        part = (exporter, node, device)
        row = column(shown, part, "train", self.step)
        for since, mode, nodes, gpus in self.phases:
            if node in nodes and (not gpus or device in {str(gpu) for gpu in gpus}):
                first = max(0, ceil((since + late) / self.step))
                row = row[:first] + column(shown, part, mode, self.step)[first:]
        return tuple([row[number] for number in self._scrapes(exporter, node)])

    def _told(self, exporter: str, node: str, value: Value) -> tuple[Sample, ...]:
        """Return the samples of a series that a story tells itself."""
        late = lag(exporter, node, self.step)
        values = [
            (number, value(number * self.step - late)) for number in self._scrapes(exporter, node)
        ]
        return tuple(
            Sample(at=at(number * self.step), value=told)
            for number, told in values
            if told is not None
        )

    def _series(self) -> Iterator[Series]:
        of_gpu = {**GPU_SHOWS, **(GPU_SHOWS_MORE if self.switched_on else {})}
        usual = {
            (metric, node, str(gpu)): shown
            for metric, shown in of_gpu.items()
            if self.profiled or "_PROF_" not in metric
            for node in self.nodes
            for gpu in range(self.gpus)
        }
        if self.has_node_exporter:
            for node in self.nodes:
                usual |= {(metric, node, of): shown for (metric, of), shown in NODE_SHOWS.items()}
        told = {**self.changed, **self.added}
        for metric, node, device in {**usual, **told}:
            exporter = "gpu" if metric.startswith("DCGM") else "node"
            labels = self._labels(node, device) if exporter == "gpu" else {}
            value = told.get((metric, node, device))
            samples = (
                self._usual(usual[metric, node, device], exporter, node, device)
                if value is None
                else self._told(exporter, node, value)
            )
            if samples:
                yield Series(
                    metric=metric, node=node, device=device, labels=labels, samples=samples
                )

    def _labels(self, node: str, device: str) -> dict[str, str]:
        gpu, _, xid = device.partition("/")
        job = self.labelled.get((node, int(gpu)))
        return ({"hpc_job": job} if job else {}) | ({"xid": xid} if xid else {})


Shown = Callable[[str, str, str, float], float]
"""What a series shows of a node and device that does something, at a time."""
LONGEST = 1600.0
"""Seconds of the longest window."""


@cache
def lag(exporter: str, node: str, step: float) -> float:
    """Return how long before each step of the server an exporter was scraped."""
    return (0.5 + noise("lag", exporter, node) / 2) * step


@cache
def column(shown: Shown, part: tuple[str, str, str], mode: str, step: float) -> tuple[Sample, ...]:
    """Return all samples of one series while its GPU does one thing; stories share them.

    ``part`` is the exporter, the node and the device.
    """
    exporter, node, device = part
    late = lag(exporter, node, step)
    return tuple(
        Sample(at=at(number * step), value=shown(node, device, mode, number * step - late))
        for number in range(int(LONGEST // step) + 1)
    )


def used(metric: str) -> Shown:
    """Return what a GPU shows of its use: its mode's level, with noise."""
    key = GPU_USE[metric]

    def shown(node: str, gpu: str, mode: str, when: float) -> float:
        told = MODES[mode][key] * (1 + SPREAD[key] * noise(metric, node, gpu, when))
        told *= 1 + 0.4 * SPREAD[key] * noise(metric, node, gpu)
        return min(round(told, 4), MOST.get(key, told))

    return shown


def still(value: float, *, each: float = 0.0, on: str = "") -> Shown:
    """Return a value that never changes: more by ``each`` GPU, or on one GPU alone."""

    def shown(_node: str, device: str, _mode: str, _when: float) -> float:
        return (value if not on or device == on else 0.0) + each * int(device or 0 if each else 0)

    return shown


def energy(node: str, gpu: str, _mode: str, when: float) -> float:
    return 4e11 * (2 + noise("energy", node, gpu)) + 4.1e5 * (when + 60)


def reasons(_node: str, _gpu: str, mode: str, _when: float) -> float:
    return float(BIT_IDLE if mode in ("idle", "unused") else 0)


def boot_time(node: str, _device: str, _mode: str, when: float) -> float:
    return 1_774_000_000 + round(1000 * noise("boot", node)) + round(noise(node, when))


GPU_SHOWS: dict[str, Shown] = {
    **{metric: used(metric) for metric in GPU_USE if "NVLINK" not in metric},
    "DCGM_FI_DEV_XID_ERRORS": still(0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": energy,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": still(0),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": still(1, on="3"),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": still(0, each=1),
}
GPU_SHOWS_MORE: dict[str, Shown] = {
    **{metric: used(metric) for metric in GPU_USE if "NVLINK" in metric},
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": reasons,
    "DCGM_FI_DEV_THERMAL_VIOLATION": still(3e9),
    "DCGM_FI_DEV_POWER_VIOLATION": lambda _node, _gpu, _mode, when: 8e12 + 2e6 * (when + 60),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": still(0),
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": still(2, on="2"),
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": still(0),
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": still(0, each=11),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": still(16),
    "DCGM_FI_DEV_PCIE_LINK_GEN": still(5),
}
NODE_SHOWS: dict[tuple[str, str], Shown] = {
    ("node_boot_time_seconds", ""): boot_time,
    ("node_vmstat_oom_kill", ""): still(3),
    ("node_load1", ""): lambda node, _of, _mode, when: 30 + 5 * noise("load", node, when),
    ("node_nfs_rpc_retransmissions_total", ""): still(40),
    ("node_cpu_seconds_total", ""): lambda _node, _of, _mode, when: 9e4 + 0.4 * when,
    **{
        (metric, card): still(value)
        for card in ("mlx5_0", "mlx5_1")
        for metric, value in (
            ("node_infiniband_state_id", 4),
            ("node_infiniband_link_downed_total", 2),
            ("node_infiniband_symbol_error_total", 17),
            ("node_infiniband_port_receive_errors_total", 5),
        )
    },
}


@dataclass(frozen=True)
class Expected:
    """What a careful operator concludes. Of several words, with ``|`` between, each will do.

    ``nodes`` have to be left out, ``may`` also may be. No others are, nor are others named.
    """

    decision: str
    domain: str = ""
    kind: str = ""
    nodes: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    drain: bool = True
    """Whether the node may be proposed to be drained."""


@dataclass(frozen=True)
class Concluded:
    """What was concluded, in the words of ``Expected``."""

    decision: str
    domain: str
    kind: str
    excluded: tuple[str, ...]
    named: tuple[str, ...]
    drains: bool
    sentence: str


_EXCLUDES = (Remedy.RESTART_EXCLUDING_NODE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN)
_DECISIONS = {
    Remedy.RESTART: "restart",
    Remedy.RESTART_CLEAN: "restart",
    Remedy.HOLD: "hold",
    Remedy.STOP: "stop",
    Remedy.CONFIRM_THEN_STOP: "confirm",
    Remedy.END: "none",
    Remedy.REPORT: "none",
}


def concluded(cluster: Cluster) -> Concluded:
    """Return what is concluded, as the core would follow it with ``slow = "restart"``."""
    verdict, findings = cluster.verdict()
    named = tuple(one.node for one in verdict.suspects)
    decision = "exclude" if verdict.remedy in _EXCLUDES and named else ""
    if not decision:
        decision = _DECISIONS.get(verdict.remedy, "restart")
    if cluster.trouble == "silent" and cluster.ending.state is None:
        is_seen_at_work = any(map(is_work, findings))
        if is_seen_at_work and not signs_of_hang(findings, at(TROUBLE)):
            decision = "none"
    if cluster.trouble == "slow" and verdict.kind is Kind.SLOW:
        decision = "exclude" if names_slow_node(verdict) else "none"
    return Concluded(
        decision=decision,
        domain=str(verdict.domain),
        kind=str(verdict.kind),
        excluded=named if decision == "exclude" else (),
        named=named,
        drains=verdict.remedy is Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN and decision == "exclude",
        sentence=verdict.sentence,
    )


def misses(got: Concluded, expected: Expected) -> list[str]:
    """Return in what a conclusion is not what was expected, the worst first."""
    allowed = {*expected.nodes, *expected.may}
    found: list[str] = []
    if set(got.excluded) - allowed:
        found.append("wrong node left out")
    elif set(got.named) - allowed:
        found.append("wrong node named")
    if set(expected.nodes) - set(got.excluded):
        found.append("right node missed")
    if got.decision not in expected.decision.split("|"):
        found.append("decision")
    if expected.domain and got.domain not in expected.domain.split("|"):
        found.append("domain")
    if expected.kind and got.kind not in expected.kind.split("|"):
        found.append("kind")
    if got.drains and not expected.drain:
        found.append("drain")
    return found


@dataclass(frozen=True)
class Story:
    """One story by its name, how it is told, and what is to be concluded."""

    name: str
    tell: Callable[[], Cluster]
    expected: Expected


STORIES: list[Story] = []


def story(expected: Expected) -> Callable[[Callable[[], Cluster]], Callable[[], Cluster]]:
    """Enter a story into the table; its function's name is its sentence."""

    def enter(tell: Callable[[], Cluster]) -> Callable[[], Cluster]:
        STORIES.append(Story(tell.__name__.replace("_", " "), tell, expected))
        return tell

    return enter


def named(count: int, pattern: str = "gpu-{:03}") -> tuple[str, ...]:
    return tuple(pattern.format(number) for number in range(1, count + 1))


EIGHT, FOUR = named(8), named(4, "nid{:06}")
HARDWARE, ANY_HANG = "hardware", "hardware|system_software|application|unknown|network"
FAILED = Ending(state=JobState.FAILED, exit_status=1, at=at(TROUBLE))


def jump(before: float, after: float, when: float = TROUBLE) -> Value:
    """Return a value that changes once."""
    return lambda now: before if now < when else after


def rise(before: float, a_second: float, since: float = TROUBLE) -> Value:
    """Return a counter that rises from ``since`` on."""
    return lambda now: before + float(int(max(0.0, now - since) * a_second))


def shaking(usual: float, changed: float, spread: float, key: str, since: float = TROUBLE) -> Value:
    """Return a value with noise that changes once."""
    return lambda now: (usual if now < since else changed) + spread * noise(key, now)


def always(value: float) -> Value:
    return lambda _: value


def trembling(usual: float, key: str) -> Value:
    return lambda now: usual + round(2 * noise(key, now))


def saving_power(key: str) -> Value:
    """Return the generation of a PCIe link that is slowed whenever nothing is to be sent."""
    return lambda now: 1.0 if noise(key, now) > 0.2 else 5.0


def at_intervals(key: str) -> Value:
    """Return the use of tensor cores that work every other 45 seconds."""
    return lambda now: 0.3 * (int(now // 45) % 2) + 0.01 * abs(noise(key, now))


def jump_to_nothing(metric: str) -> Value:
    """Return the value of a GPU that works and then cannot be asked any more."""
    usual = MODES["train"][GPU_USE[metric]]
    return lambda now: usual * (1 + 0.02 * noise(metric, now)) if now < TROUBLE else None


def slow_at_times(now: float) -> bool:
    return now >= TROUBLE and int(now // 15) % 5 < 2


@story(Expected("exclude", ANY_HANG, "hang|node", nodes=("gpu-003",)))
def one_gpu_idles_and_all_others_spin() -> Cluster:
    return Cluster(EIGHT).turns("spin").turns("idle", "gpu-003", gpus=(1,))


@story(Expected("exclude", ANY_HANG, "hang|node", nodes=("nid000002",)))
def one_gpu_idles_as_use_and_power_alone_tell() -> Cluster:
    told = Cluster(FOUR, step=30, after=240, profiled=False)
    return told.turns("spin").turns("idle", "nid000002", gpus=(0,))


@story(Expected("restart", "unknown|network", "hang"))
def all_gpus_spin_without_traffic() -> Cluster:
    return Cluster(EIGHT, switched_on=True).turns("spin")


@story(Expected("restart", "unknown|network", "hang"))
def all_gpus_show_full_use_at_a_third_of_their_power() -> Cluster:
    return Cluster(FOUR, step=30, after=300, profiled=False).turns("spin")


@story(Expected("none"))
def tensor_cores_work_while_the_log_is_held_in_a_buffer() -> Cluster:
    return Cluster(EIGHT, after=400)


@story(Expected("hold", "storage", "hang|crash|node"))
def all_gpus_idle_and_every_node_waits_for_one_file_server() -> Cluster:
    told = Cluster(FOUR, after=240).turns("idle")
    for node in FOUR:
        told.shows("node_nfs_rpc_retransmissions_total", node, "", rise(40, 1.5))
        told.shows("node_cpu_seconds_total", node, "", rise(9e4, 12))
        told.kernel(node, "nfs: server fs1 not responding, still trying", when=TROUBLE + 20)
    return told


@story(Expected("hold", "storage", "hang"))
def all_gpus_idle_while_requests_to_storage_are_sent_again_everywhere() -> Cluster:
    told = Cluster(EIGHT, step=30, after=300).turns("idle")
    for node in EIGHT:
        told.shows("node_nfs_rpc_retransmissions_total", node, "", rise(40, 0.8))
        told.shows("node_cpu_seconds_total", node, "", rise(9e4, 8))
    return told


@story(Expected("restart", "unknown|storage|application|network", "hang"))
def all_gpus_idle_and_nothing_else_is_seen() -> Cluster:
    return Cluster(FOUR).turns("idle")


@story(Expected("exclude", ANY_HANG, "hang|node", nodes=("gpu-006",)))
def a_whole_node_falls_silent_as_the_others_begin_to_spin() -> Cluster:
    told = Cluster(EIGHT, after=300).turns("spin")
    return told.loses("both", "gpu-006", since=TROUBLE + 5)


@story(Expected("exclude|restart", ANY_HANG, "hang|node", may=("gpu-006",)))
def only_the_gpu_exporter_of_one_node_dies_with_the_hang() -> Cluster:
    told = Cluster(EIGHT, after=300).turns("spin")
    return told.loses("gpu", "gpu-006", since=TROUBLE + 5)


@story(Expected("restart", "unknown|network", "hang"))
def an_exporter_had_died_six_minutes_before_while_steps_went_on() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    return told.loses("gpu", "gpu-002", since=TROUBLE - 360)


@story(Expected("restart", "unknown|network", "hang"))
def an_exporter_is_restarted_two_minutes_before_the_hang() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    return told.loses("both", "gpu-002", since=TROUBLE - 120, until=TROUBLE - 45)


@story(Expected("restart", "unknown|network", "hang"))
def exporters_are_restarted_one_after_another_during_the_hang() -> Cluster:
    told = Cluster(EIGHT, after=360).turns("spin")
    for number, node in enumerate(EIGHT):
        told.loses("gpu", node, since=TROUBLE + 20 + 30 * number, until=TROUBLE + 65 + 30 * number)
    return told


@story(Expected("restart", "unknown|network", "hang"))
def the_metrics_server_stops_scraping_all_nodes_with_the_hang() -> Cluster:
    return Cluster(EIGHT, after=300).turns("spin").loses("both", since=TROUBLE + 1)


@story(Expected("restart|hold", "unknown|network|hardware", "hang|node"))
def a_rack_of_half_the_nodes_is_no_longer_scraped() -> Cluster:
    told = Cluster(EIGHT, after=300).turns("spin")
    return told.loses("both", *EIGHT[:4], since=TROUBLE + 5)


@story(Expected("exclude", "hardware|system_software|unknown", "hang|node", nodes=("nid000003",)))
def one_node_starts_anew_and_the_others_spin() -> Cluster:
    told = Cluster(FOUR, after=420).turns("spin").turns("unused", "nid000003")
    told.loses("both", "nid000003", since=TROUBLE + 2, until=TROUBLE + 200)
    booted = 1_775_000_000 + 700
    return told.shows(
        "node_boot_time_seconds", "nid000003", "", jump(1_774_000_111, booted, TROUBLE + 150)
    )


@story(Expected("restart", "unknown|network", "hang"))
def boot_times_tremble_by_a_second_and_all_spin() -> Cluster:
    told = Cluster(FOUR, after=240).turns("spin")
    for node in FOUR:
        told.shows("node_boot_time_seconds", node, "", trembling(1_774_000_000, node))
    return told


@story(Expected("restart", "unknown|network", "hang"))
def the_last_xid_of_days_ago_still_stands_on_two_gpus() -> Cluster:
    told = Cluster(EIGHT).turns("spin")
    told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-004", 2, always(79.0))
    return told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-007", 2, always(48.0))


@story(Expected("exclude", HARDWARE, "hang|node|crash", nodes=("gpu-005",)))
def a_gpu_falls_off_its_bus_and_its_series_end() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin").turns("idle", "gpu-005", gpus=(3,))
    for metric in GPU_USE:
        if "NVLINK" not in metric:
            told.shows(metric, "gpu-005", 3, jump_to_nothing(metric))
    return told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-005", 3, jump(0, 79, TROUBLE - 2))


@story(
    Expected(
        "confirm|restart|exclude", ANY_HANG, "hang|crash|node", may=("nid000001",), drain=False
    )
)
def one_process_dies_of_an_illegal_access_and_the_others_wait_for_it() -> Cluster:
    told = Cluster(FOUR, after=240).turns("spin").turns("idle", "nid000001", gpus=(0,))
    return told.shows("DCGM_FI_DEV_XID_ERRORS", "nid000001", 0, jump(0, 31))


@story(Expected("restart", "unknown|network", "hang"))
def the_last_stage_of_a_pipeline_was_always_less_busy() -> Cluster:
    told = Cluster(EIGHT).turns("bubble", "gpu-008", "gpu-001", since=0)
    return told.turns("spin")


@story(Expected("restart", "unknown|network", "hang"))
def half_of_each_nodes_gpus_was_never_used() -> Cluster:
    told = Cluster(FOUR, after=240).turns("spin")
    return told.turns("unused", gpus=(2, 3), since=0)


@story(Expected("restart", "unknown|network", "hang"))
def one_node_of_four_keeps_spare_gpus_that_were_never_used() -> Cluster:
    told = Cluster(FOUR, after=240).turns("spin")
    return told.turns("unused", "nid000004", gpus=(2, 3), since=0)


@story(Expected("restart", "unknown|network", "hang"))
def a_neighbour_on_a_shared_node_ends_and_leaves_its_gpus_idle() -> Cluster:
    told = Cluster(named(2), after=240).turns("spin")
    told.labelled = {
        (node, gpu): "99" if node == "gpu-002" and gpu > 1 else OUR_JOB
        for node in told.nodes
        for gpu in range(4)
    }
    return told.turns("idle", "gpu-002", gpus=(2, 3), since=TROUBLE - 4)


@story(Expected("restart", "unknown|network", "hang"))
def a_neighbour_on_a_shared_node_trains_on_while_ours_spin() -> Cluster:
    told = Cluster(named(2), after=240).turns("spin")
    told.labelled = {
        (node, gpu): "99" if node == "gpu-002" and gpu > 1 else OUR_JOB
        for node in told.nodes
        for gpu in range(4)
    }
    return told.turns("train", "gpu-002", gpus=(2, 3))


@story(Expected("restart|none", "", ""))
def somebodys_gpus_work_on_a_node_that_may_be_shared() -> Cluster:
    return Cluster(FOUR, after=240).turns("spin").turns("train", "nid000002", gpus=(2, 3))


@story(Expected("exclude", ANY_HANG + "|storage", "hang|node", nodes=("nid000002",)))
def one_node_idles_with_its_disk_and_the_others_spin() -> Cluster:
    told = Cluster(FOUR, after=240).turns("spin").turns("idle", "nid000002")
    told.shows("node_cpu_seconds_total", "nid000002", "", rise(9e4, 25))
    return told.kernel(
        "nid000002",
        "INFO: task python3:4711 blocked for more than 120 seconds.",
        when=TROUBLE + 130,
    )


@story(Expected("exclude", ANY_HANG, "hang|node", nodes=("gpu-007",)))
def all_gpus_of_one_node_idle_and_the_others_spin() -> Cluster:
    return Cluster(EIGHT, step=30, after=300).turns("spin").turns("idle", "gpu-007")


@story(Expected("restart|exclude", ANY_HANG, "hang|node", may=("gpu-002", "gpu-006")))
def one_gpu_idles_on_each_of_two_nodes() -> Cluster:
    told = Cluster(EIGHT).turns("spin")
    return told.turns("idle", "gpu-002", gpus=(1,)).turns("idle", "gpu-006", gpus=(1,))


@story(Expected("restart|hold", ANY_HANG, "hang|node"))
def half_of_the_nodes_idle_and_half_spin() -> Cluster:
    return Cluster(EIGHT).turns("spin").turns("idle", *EIGHT[4:])


@story(Expected("restart|exclude", ANY_HANG, "hang|node", may=("box",), drain=False))
def one_gpu_of_a_single_machine_idles() -> Cluster:
    return Cluster(("box",), after=240).turns("spin").turns("idle", gpus=(2,))


@story(Expected("restart|none", "unknown|application|storage|network", "hang"))
def nothing_was_ever_computed_since_the_start() -> Cluster:
    told = Cluster(EIGHT, after=600, last_step=0)
    return told.turns("idle", since=0)


@story(Expected("restart|exclude", ANY_HANG + "|storage", "hang|node", may=("gpu-003",)))
def one_node_still_reads_its_shard_at_the_start_while_the_others_wait() -> Cluster:
    told = Cluster(EIGHT, after=600, last_step=0).turns("spin", since=0)
    told.turns("idle", "gpu-003", since=0)
    return told.shows("node_cpu_seconds_total", "gpu-003", "", rise(9e4, 20, 0))


@story(
    Expected("restart|exclude", "unknown|network|hardware|system_software", "", may=("gpu-005",))
)
def the_values_of_one_node_are_frozen_at_work_while_the_others_spin() -> Cluster:
    told = Cluster(EIGHT, after=420).turns("spin")
    for metric, key in GPU_USE.items():
        for gpu in range(4):
            frozen = MODES["train"][key] * (1 + 0.01 * gpu / 4)
            if "NVLINK" not in metric:
                told.shows(metric, "gpu-005", gpu, always(frozen))
    return told


@story(Expected("exclude", "hardware|network", "hang|node|crash", nodes=("gpu-004",)))
def one_port_of_one_node_goes_down() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    told.shows("node_infiniband_state_id", "gpu-004", "mlx5_1", jump(4, 1))
    return told.shows("node_infiniband_link_downed_total", "gpu-004", "mlx5_1", jump(2, 3))


@story(Expected("hold|restart", "network|unknown", "hang|node|crash"))
def a_switch_restarts_and_every_node_loses_its_link_for_a_moment() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    for node in EIGHT:
        told.shows("node_infiniband_link_downed_total", node, "mlx5_0", jump(2, 3, TROUBLE - 4))
    return told


@story(Expected("restart|exclude", "network|unknown|hardware", "hang|node", may=("gpu-003",)))
def a_link_went_down_eight_minutes_before_and_steps_went_on() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    return told.shows(
        "node_infiniband_link_downed_total", "gpu-003", "mlx5_0", jump(2, 3, TROUBLE - 480)
    )


@story(Expected("restart", "unknown|network", "hang"))
def counters_of_one_node_begin_anew_at_nought() -> Cluster:
    told = Cluster(EIGHT, after=240, switched_on=True).turns("spin")
    when = TROUBLE - 200
    for metric in ("node_infiniband_link_downed_total", "node_infiniband_symbol_error_total"):
        told.shows(metric, "gpu-006", "mlx5_0", jump(64, 0, when))
    told.shows("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "gpu-006", 1, jump(900, 0, when))
    return told.shows("DCGM_FI_DEV_THERMAL_VIOLATION", "gpu-006", 1, jump(7e12, 0, when))


@story(Expected("exclude", "hardware|network", "hang|node|crash", nodes=("nid000004",)))
def an_nvlink_of_one_gpu_recovers_again_and_again_as_all_stop() -> Cluster:
    told = Cluster(FOUR, after=240, switched_on=True).turns("spin")
    return told.shows(
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "nid000004", 2, rise(0, 0.1, TROUBLE - 10)
    )


@story(Expected("restart", "unknown|network", "hang"))
def every_gpu_repeats_a_transfer_now_and_then() -> Cluster:
    told = Cluster(FOUR, after=240).turns("spin")
    for node in FOUR:
        for gpu in range(4):
            told.shows("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", node, gpu, rise(100 + gpu, 0.02, 0))
    return told


@story(Expected("exclude", ANY_HANG, "hang|node", nodes=("gpu-021",)))
def one_gpu_of_many_nodes_idles_and_scrapes_are_lost() -> Cluster:
    told = Cluster(named(24), step=30, after=300, missing=0.06, has_node_exporter=False)
    return told.turns("spin").turns("idle", "gpu-021", gpus=(3,))


@story(Expected("restart", "unknown|network", "hang"))
def nodes_of_another_build_draw_half_the_power_in_all_they_do() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    for gpu in range(4):
        for node in EIGHT[:2]:
            told.shows("DCGM_FI_DEV_POWER_USAGE", node, gpu, shaking(310, 95, 5, f"{gpu}"))
    return told


@story(Expected("exclude", ANY_HANG, "hang|node|crash", nodes=("gpu-002",)))
def the_watchdog_speaks_on_all_ranks_but_the_one_whose_gpu_idles() -> Cluster:
    told = Cluster(named(4), after=700, ending=FAILED).turns("spin")
    told.turns("idle", "gpu-002", gpus=(3,))
    return told.writes(
        *(
            f"[rank{rank}]:[E1130 08:24:00.123456789 ProcessGroupNCCL.cpp:629] [Rank {rank}] "
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, "
            "OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600026 "
            "milliseconds before timing out."
            for rank in range(16)
            if rank != 7
        )
    )


THROTTLE = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
CLOCK, HEAT = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP"


@story(Expected("exclude", HARDWARE, "slow", nodes=("gpu-002",)))
def one_gpu_is_slowed_by_heat() -> Cluster:
    told = Cluster(EIGHT, "slow", after=480, switched_on=True)
    told.shows(CLOCK, "gpu-002", 0, shaking(1740, 1180, 30, "a"))
    told.shows(HEAT, "gpu-002", 0, shaking(67, 90, 1, "b"))
    told.shows("DCGM_FI_DEV_THERMAL_VIOLATION", "gpu-002", 0, rise(3e9, 4e8))
    return told.shows(THROTTLE, "gpu-002", 0, jump(0, BIT_THERMAL | BIT_HW_SLOWDOWN))


@story(Expected("exclude", HARDWARE, "slow", nodes=("nid000003",)))
def one_gpu_is_hot_and_slow_as_the_default_fields_tell() -> Cluster:
    told = Cluster(FOUR, "slow", step=30, after=600)
    told.shows(CLOCK, "nid000003", 0, shaking(1740, 1230, 25, "a"))
    return told.shows(HEAT, "nid000003", 0, shaking(66, 89, 1, "b"))


@story(Expected("exclude", HARDWARE, "slow", nodes=("gpu-008",)))
def a_power_supply_fails_and_brakes_all_gpus_of_one_node() -> Cluster:
    told = Cluster(EIGHT, "slow", after=480, switched_on=True)
    for gpu in range(4):
        told.shows(CLOCK, "gpu-008", gpu, shaking(1740, 840, 15, f"c{gpu}"))
        told.shows(THROTTLE, "gpu-008", gpu, jump(0, BIT_BRAKE | BIT_HW_SLOWDOWN))
    return told


@story(Expected("none", "", "slow"))
def all_nodes_are_capped_to_save_power() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600, switched_on=True)
    for node in EIGHT:
        for gpu in range(4):
            told.shows(CLOCK, node, gpu, shaking(1740, 1380, 40, f"{node}{gpu}"))
            told.shows(THROTTLE, node, gpu, jump(0, BIT_POWER_CAP))
            told.shows("DCGM_FI_DEV_POWER_VIOLATION", node, gpu, rise(8e12, 6e8))
    return told


@story(Expected("none", "", "slow"))
def the_cooling_of_the_hall_fails_and_all_nodes_are_hot() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True)
    for number, node in enumerate(FOUR):
        for gpu in range(4):
            told.shows(CLOCK, node, gpu, shaking(1740, 1300 - 20 * number, 60, f"{node}{gpu}"))
            told.shows(HEAT, node, gpu, shaking(66, 87 + number / 2, 1, f"t{node}{gpu}"))
            told.shows(THROTTLE, node, gpu, jump(0, BIT_THERMAL))
    return told


@story(Expected("none", "", "slow"))
def one_gpu_is_hot_and_as_fast_as_the_others() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True)
    return told.shows(HEAT, "nid000002", 3, shaking(82, 84, 1, "hot"))


@story(Expected("none", "storage", "slow"))
def all_gpus_starve_while_requests_to_storage_are_sent_again() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600).turns("starved")
    for node in EIGHT:
        told.shows("node_nfs_rpc_retransmissions_total", node, "", rise(40, 0.7))
        told.shows("node_cpu_seconds_total", node, "", rise(9e4, 10))
    return told


@story(Expected("exclude|none", "hardware|unknown", "slow", may=("gpu-003",)))
def one_gpu_throttles_two_scrapes_of_five() -> Cluster:
    told = Cluster(EIGHT, "slow", after=900, switched_on=True)
    told.shows(CLOCK, "gpu-003", 2, lambda now: 1150.0 if slow_at_times(now) else 1740.0)
    return told.shows(
        THROTTLE, "gpu-003", 2, lambda now: float(BIT_THERMAL) if slow_at_times(now) else 0.0
    )


@story(Expected("none", "", "slow"))
def one_clock_dips_for_a_single_scrape() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600, switched_on=True)
    return told.shows(
        CLOCK, "gpu-005", 1, lambda now: 900.0 if TROUBLE + 90 <= now < TROUBLE + 105 else 1740.0
    )


@story(Expected("exclude", HARDWARE, "slow", nodes=("nid000001",)))
def one_gpu_is_left_with_half_of_its_bus() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True)
    return told.shows("DCGM_FI_DEV_PCIE_LINK_WIDTH", "nid000001", 1, jump(16, 8))


@story(Expected("none", "", "slow"))
def links_save_power_on_gpus_that_wait_for_data() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True).turns("starved")
    for node in FOUR:
        for gpu in range(4):
            told.shows("DCGM_FI_DEV_PCIE_LINK_GEN", node, gpu, saving_power(f"{node}{gpu}"))
    return told


@story(Expected("exclude", "hardware|network", "slow", nodes=("gpu-004",)))
def a_cable_of_one_node_garbles_what_it_carries() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600)
    told.shows("node_infiniband_symbol_error_total", "gpu-004", "mlx5_1", rise(17, 60))
    return told.shows("node_infiniband_port_receive_errors_total", "gpu-004", "mlx5_1", rise(5, 4))


@story(Expected("none", "", "slow"))
def all_gpus_work_less_and_nobody_knows_why() -> Cluster:
    return Cluster(EIGHT, "slow", after=600, switched_on=True).turns("starved")


@story(Expected("none", "unknown", "slow"))
def it_is_slow_and_no_metrics_can_be_read() -> Cluster:
    return Cluster(FOUR, "slow", after=600, unseen="The metrics server did not answer.")


@story(Expected("exclude", HARDWARE, "slow", nodes=("gpu-003",)))
def the_job_and_the_clock_name_the_same_node() -> Cluster:
    told = Cluster(named(4), "slow", after=600)
    told.shows(CLOCK, "gpu-003", 1, shaking(1740, 1290, 25, "a"))
    return told.writes(
        "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. "
        "Affected ranks: {StragglerId(rank=9, node='gpu-003')}"
    )


@story(Expected("none", "", "slow"))
def silicon_of_one_node_was_always_three_percent_slower() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600, switched_on=True)
    for gpu in range(4):
        told.shows(CLOCK, "gpu-001", gpu, shaking(1690, 1688, 12, f"w{gpu}"))
    return told


@story(Expected("exclude", HARDWARE, "slow", nodes=("nid000002",)))
def one_gpu_is_stuck_at_a_low_clock_since_the_start() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True, started=TROUBLE)
    told.shows(CLOCK, "nid000002", 3, shaking(1005, 1005, 8, "stuck"))
    return told.shows(THROTTLE, "nid000002", 3, always(float(BIT_HW_SLOWDOWN)))


@story(Expected("none", "", "slow"))
def the_gpu_of_a_neighbour_is_slowed_by_heat() -> Cluster:
    told = Cluster(named(2), "slow", after=600, switched_on=True)
    told.labelled = {
        (node, gpu): "99" if node == "gpu-002" and gpu > 1 else OUR_JOB
        for node in told.nodes
        for gpu in range(4)
    }
    told.shows(CLOCK, "gpu-002", 2, shaking(1740, 1100, 30, "n"))
    return told.shows(THROTTLE, "gpu-002", 2, jump(0, BIT_THERMAL))


KEY_ERROR = (
    "Traceback (most recent call last):",
    '  File "/home/alice/run/train.py", line 88, in <module>',
    "    main()",
    '  File "/home/alice/run/train.py", line 61, in main',
    '    rate = schedule["warmup"]',
    "KeyError: 'warmup'",
)


def on_ranks(count: int, lines: tuple[str, ...]) -> list[str]:
    return [f"[rank{rank}]: {line}" for rank in range(count) for line in lines]


@story(Expected("stop", "application|user", "crash"))
def a_mistake_on_all_ranks_ends_with_xid_45_on_all_gpus() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    for node in FOUR:
        for gpu in range(4):
            told.shows("DCGM_FI_DEV_XID_ERRORS", node, gpu, jump(0, 45, TROUBLE + 1))
    return told.writes(*on_ranks(16, KEY_ERROR))


@story(Expected("stop", "application|user", "crash"))
def a_mistake_beside_an_xid_79_of_last_week() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    told.shows("DCGM_FI_DEV_XID_ERRORS", "nid000003", 1, always(79.0))
    return told.writes(*on_ranks(16, KEY_ERROR))


@story(Expected("exclude", HARDWARE, "crash|node", nodes=("gpu-002",)))
def a_gpu_falls_off_its_bus_and_all_ranks_complain_of_nccl() -> Cluster:
    told = Cluster(named(4), "end", after=180, ending=FAILED).turns("idle")
    told.kernel(
        "gpu-002",
        "NVRM: Xid (PCI:0000:b3:00): 79, pid=812, name=python, GPU has fallen off the bus.",
        when=TROUBLE - 12,
    )
    return told.writes(
        *(
            f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: "
            "ProcessGroupNCCL.cpp:2251, remote process exited or there was a network error"
            for rank in range(0, 16, 3)
        )
    )


@story(Expected("exclude", HARDWARE, "crash|node", nodes=("nid000004",)))
def memory_fails_by_two_bits_and_a_process_says_so() -> Cluster:
    told = Cluster(FOUR, "end", after=180, ending=FAILED, switched_on=True).turns("idle")
    told.shows("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "nid000004", 2, jump(0, 1, TROUBLE - 8))
    told.shows("DCGM_FI_DEV_XID_ERRORS", "nid000004", 2, jump(0, 48, TROUBLE - 8))
    return told.writes(
        "[rank14]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
    )


@story(Expected("stop|confirm", "application|user", "crash"))
def the_memory_is_too_small_beside_a_row_that_was_remapped() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    told.shows("DCGM_FI_DEV_XID_ERRORS", "nid000001", 2, jump(0, 63, TROUBLE - 300))
    return told.writes(
        *(
            f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
            "2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free."
            for rank in range(16)
        )
    )


@story(Expected("exclude", "hardware|system_software", "node|crash", nodes=("gpu-005",)))
def the_scheduler_says_that_a_node_went_down() -> Cluster:
    ending = Ending(state=JobState.NODE_FAIL, gone_nodes=("gpu-005",), at=at(TROUBLE))
    told = Cluster(EIGHT, "end", after=200, ending=ending).turns("idle")
    return told.loses("both", "gpu-005", since=TROUBLE - 60)


@story(Expected("confirm|stop|restart", "application|user", "crash|node"))
def a_node_runs_out_of_memory_and_kills_a_rank() -> Cluster:
    ending = Ending(state=JobState.OUT_OF_MEMORY, exit_status=0, exit_signal=9, at=at(TROUBLE))
    told = Cluster(FOUR, "end", after=120, ending=ending).turns("idle")
    told.shows("node_vmstat_oom_kill", "nid000002", "", jump(3, 4, TROUBLE - 6))
    return told.writes(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have "
        "been OOM Killed.",
        "srun: error: nid000002: task 7: Out Of Memory",
    )


@story(Expected("confirm|restart", "unknown|network", "crash|hang"))
def watchdogs_of_all_ranks_time_out_and_all_machines_look_well() -> Cluster:
    told = Cluster(named(2), "end", after=120, ending=FAILED).turns("idle")
    return told.writes(
        *(
            f"[rank{rank}]:[E1130 08:24:00.123456789 ProcessGroupNCCL.cpp:629] [Rank {rank}] "
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, "
            "OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600026 "
            "milliseconds before timing out."
            for rank in range(8)
        )
    )


@story(Expected("none", "none|user", "ending|crash"))
def a_person_cancels_it_and_every_gpu_shows_xid_45() -> Cluster:
    ending = Ending(state=JobState.CANCELLED, exit_signal=15, at=at(TROUBLE))
    told = Cluster(FOUR, "end", after=120, ending=ending).turns("idle")
    for node in FOUR:
        for gpu in range(4):
            told.shows("DCGM_FI_DEV_XID_ERRORS", node, gpu, jump(0, 45, TROUBLE + 1))
    return told


@story(Expected("exclude", HARDWARE, "crash|node", nodes=("gpu-002",)))
def a_mistake_of_the_user_as_a_gpu_falls_off_its_bus() -> Cluster:
    told = Cluster(named(4), "end", after=180, ending=FAILED).turns("idle")
    told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-002", 1, jump(0, 79, TROUBLE - 20))
    return told.writes(
        "[rank5]: RuntimeError: CUDA error: unspecified launch failure",
        *(f"[rank5]: {line}" for line in KEY_ERROR),
    )


@story(Expected("exclude", HARDWARE, "crash|node", nodes=("gpu-001",)))
def a_row_can_no_longer_be_remapped() -> Cluster:
    told = Cluster(named(2), "end", after=180, ending=FAILED).turns("idle")
    told.shows("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gpu-001", 0, jump(0, 1, TROUBLE - 15))
    told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-001", 0, jump(0, 64, TROUBLE - 15))
    return told.writes(
        "[rank0]: RuntimeError: CUDA error: an illegal memory access was encountered"
    )


@story(Expected("hold", "storage", "crash|node"))
def every_node_loses_the_file_server_and_reads_fail() -> Cluster:
    told = Cluster(FOUR, "end", after=180, ending=FAILED).turns("idle")
    for node in FOUR:
        told.kernel(node, "nfs: server fs1 not responding, timed out", when=TROUBLE - 30)
        told.shows("node_nfs_rpc_retransmissions_total", node, "", rise(40, 2, TROUBLE - 120))
    return told.writes(
        *(f"[rank{rank}]: OSError: [Errno 5] Input/output error" for rank in range(16))
    )


@story(Expected("exclude", HARDWARE, "crash|node", nodes=("nid000003",)))
def the_scheduler_counts_fewer_gpus_after_the_end() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    told.scheduler(
        "nid000003",
        NodeState.DRAINED,
        "gres/gpu count reported lower than configured (7 < 8)",
        who="slurm",
    )
    return told.writes("[rank10]: RuntimeError: CUDA error: unknown error")


@story(Expected("stop", "application|user", "crash"))
def a_person_drains_a_node_as_the_job_fails_by_mistake() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    told.scheduler("nid000002", NodeState.DRAINED, "bios update friday", who="bob")
    return told.writes(*on_ranks(16, KEY_ERROR))


def spread_over(
    cluster: Cluster, node: str, gpus: range, metric: str, value: Callable[[int], Value]
) -> Cluster:
    """Let one series of several GPUs be as ``value`` says."""
    for gpu in gpus:
        cluster.shows(metric, node, gpu, value(gpu))
    return cluster


@story(Expected("none", "", "slow"))
def one_gpu_has_more_to_do_and_is_kept_at_its_power_limit() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True)
    told.shows(CLOCK, "nid000003", 2, shaking(1600, 1590, 20, "busy"))
    told.shows("DCGM_FI_DEV_POWER_USAGE", "nid000003", 2, shaking(694, 695, 5, "busy-p"))
    return told.shows(THROTTLE, "nid000003", 2, always(float(BIT_POWER_CAP)))


@story(Expected("none", "", "slow"))
def two_models_of_gpus_run_at_their_own_clocks() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600)
    for node in EIGHT[6:]:
        spread_over(told, node, range(4), CLOCK, lambda gpu: shaking(1410, 1410, 0, str(gpu)))
    return told


@story(Expected("exclude", HARDWARE, "slow", nodes=("gpu-002",)))
def one_node_of_two_is_slowed_by_heat() -> Cluster:
    told = Cluster(named(2), "slow", after=600, switched_on=True)
    spread_over(told, "gpu-002", range(4), CLOCK, lambda gpu: shaking(1740, 1200, 30, f"x{gpu}"))
    spread_over(told, "gpu-002", range(4), HEAT, lambda gpu: shaking(67, 89, 1, f"y{gpu}"))
    return spread_over(told, "gpu-002", range(4), THROTTLE, lambda _: jump(0, BIT_THERMAL))


@story(Expected("exclude|none", HARDWARE, "slow", may=("box",)))
def one_gpu_of_a_single_machine_is_slowed_by_heat() -> Cluster:
    told = Cluster(("box",), "slow", after=600, switched_on=True)
    told.shows(CLOCK, "box", 2, shaking(1740, 1100, 30, "x"))
    return told.shows(THROTTLE, "box", 2, jump(0, BIT_THERMAL))


@story(Expected("none", "", "slow"))
def rank_nought_writes_logs_and_only_its_node_waits_for_files() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600)
    told.shows("node_nfs_rpc_retransmissions_total", "gpu-001", "", rise(40, 0.1))
    return told.shows("node_cpu_seconds_total", "gpu-001", "", rise(9e4, 2))


@story(Expected("none", "", "slow"))
def one_node_starves_most_while_all_wait_for_data() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600).turns("starved")
    told.turns("idle", "gpu-004")
    return spread_over(
        told, "gpu-004", range(4), CLOCK, lambda gpu: shaking(1740, 345, 5, f"{gpu}")
    )


@story(Expected("none", "", "slow"))
def one_gpu_goes_to_a_low_clock_for_want_of_work() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True).turns("starved")
    told.turns("idle", "nid000002", gpus=(1,))
    told.shows(CLOCK, "nid000002", 1, shaking(1740, 345, 3, "idle"))
    return told.shows(THROTTLE, "nid000002", 1, jump(0, BIT_IDLE))


@story(Expected("none", "", "slow"))
def temperatures_differ_by_ten_degrees_as_ever() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600, switched_on=True)
    for number, node in enumerate(EIGHT):
        for gpu in range(4):
            usual = 58 + 1.5 * number + gpu
            told.shows(HEAT, node, gpu, shaking(usual, usual, 1, f"{node}{gpu}"))
    return told


@story(Expected("exclude", HARDWARE, "slow", nodes=("gpu-020",)))
def one_node_of_forty_is_slowed_and_a_few_scrapes_are_lost() -> Cluster:
    told = Cluster(
        named(40), "slow", gpus=4, step=30, after=700, missing=0.08, has_node_exporter=False
    )
    spread_over(told, "gpu-020", range(4), CLOCK, lambda gpu: shaking(1740, 1320, 40, f"x{gpu}"))
    return spread_over(told, "gpu-020", range(4), HEAT, lambda gpu: shaking(66, 88, 1, f"y{gpu}"))


@story(Expected("none", "", "slow"))
def a_spare_bus_was_always_half_as_wide_on_one_kind_of_node() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600, switched_on=True)
    for node in EIGHT[:3]:
        spread_over(told, node, range(4), "DCGM_FI_DEV_PCIE_LINK_WIDTH", lambda _: always(8.0))
    return told


@story(Expected("restart", "unknown|network", "hang"))
def a_rank_that_only_embeds_hardly_ever_used_its_gpu() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin").turns("idle", "gpu-003", gpus=(0,))
    told.shows("DCGM_FI_DEV_GPU_UTIL", "gpu-003", 0, lambda now: 4.0 * (noise("embed", now) > 0.1))
    told.shows("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu-003", 0, always(0.01))
    told.shows("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gpu-003", 0, always(0.0))
    told.shows("DCGM_FI_PROF_DRAM_ACTIVE", "gpu-003", 0, always(0.001))
    return told.shows("DCGM_FI_DEV_POWER_USAGE", "gpu-003", 0, shaking(121, 120, 2, "embed"))


@story(Expected("restart", "unknown|network", "hang"))
def an_exporter_is_restarted_with_the_hang_and_then_shows_the_same_spin() -> Cluster:
    told = Cluster(EIGHT, after=300).turns("spin")
    return told.loses("gpu", "gpu-006", since=TROUBLE - 5, until=TROUBLE + 80)


@story(Expected("restart|exclude", ANY_HANG, "hang|node", may=("gpu-002",)))
def an_exporter_stops_three_minutes_into_the_hang() -> Cluster:
    told = Cluster(EIGHT, after=420).turns("spin")
    return told.loses("gpu", "gpu-002", since=TROUBLE + 190)


@story(Expected("exclude", HARDWARE, "hang|node|crash", nodes=("gpu-004",)))
def the_firmware_of_a_gpu_no_longer_answers() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin").turns("idle", "gpu-004", gpus=(1,))
    return told.kernel(
        "gpu-004",
        "NVRM: Xid (PCI:0000:4e:00): 119, pid=912, name=python, Timeout after 45s of waiting for "
        "RPC response from GPU1 GSP! Expected function 76 (GSP_RM_CONTROL).",
        when=TROUBLE + 46,
    )


@story(Expected("restart", "unknown|network", "hang"))
def a_row_is_remapped_and_all_spin() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-002", 2, jump(0, 63, TROUBLE - 100))
    return told.kernel(
        "gpu-002",
        "NVRM: Xid (PCI:0000:ad:00): 63, pid='<unknown>', Row Remapper: "
        "New row marked for remapping",
        when=TROUBLE - 100,
    )


@story(Expected("exclude|restart", "hardware", "hang|node|crash", may=("gpu-007",)))
def memory_fails_in_a_contained_way_as_all_stop() -> Cluster:
    told = Cluster(EIGHT, after=240, switched_on=True).turns("spin")
    told.turns("idle", "gpu-007", gpus=(2,))
    told.shows("DCGM_EXP_XID_ERRORS_COUNT", "gpu-007", "2/94", jump(0, 1))
    return told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-007", 2, jump(0, 94))


@story(Expected("exclude", HARDWARE, "hang|node|crash", nodes=("gpu-001",)))
def the_same_xid_again_is_told_by_its_count_alone() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin").turns("idle", "gpu-001", gpus=(3,))
    told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-001", 3, always(74.0))
    return told.shows("DCGM_EXP_XID_ERRORS_TOTAL", "gpu-001", "3/74", jump(4, 9, TROUBLE - 4))


@story(Expected("restart", "unknown|network", "hang"))
def an_exporter_forgets_and_learns_an_old_xid_again() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    told.loses("gpu", "gpu-005", since=TROUBLE - 240, until=TROUBLE - 180)
    return told.shows(
        "DCGM_FI_DEV_XID_ERRORS", "gpu-005", 0, lambda now: 31.0 if now < TROUBLE - 200 else 0.0
    )


@story(Expected("restart|exclude", "", "hang|node", may=("gpu-002",)))
def the_gpu_of_a_neighbour_falls_off_its_bus_as_ours_spin() -> Cluster:
    told = Cluster(named(2), after=240).turns("spin")
    told.labelled = {
        (node, gpu): "99" if node == "gpu-002" and gpu > 1 else OUR_JOB
        for node in told.nodes
        for gpu in range(4)
    }
    return told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-002", 2, jump(0, 79, TROUBLE - 30))


@story(Expected("none|restart", "", ""))
def it_reaches_its_limit_and_all_nodes_are_started_anew_afterwards() -> Cluster:
    ending = Ending(state=JobState.TIMEOUT, exit_signal=15, at=at(TROUBLE))
    told = Cluster(FOUR, "end", after=290, ending=ending).turns("idle")
    told.loses("both", since=TROUBLE + 60, until=TROUBLE + 200)
    for node in FOUR:
        told.shows(
            "node_boot_time_seconds",
            node,
            "",
            jump(1_774_000_000, 1_775_000_000 + TROUBLE + 150, TROUBLE + 150),
        )
    return told


@story(Expected("none", "none", "ending|crash"))
def it_finishes_well_on_a_hot_node() -> Cluster:
    ending = Ending(state=JobState.COMPLETED, exit_status=0, at=at(TROUBLE))
    told = Cluster(FOUR, "end", after=120, ending=ending, switched_on=True).turns("idle")
    told.shows(CLOCK, "nid000002", 1, always(1150.0))
    return told.shows(THROTTLE, "nid000002", 1, always(float(BIT_THERMAL)))


@story(Expected("restart", "unknown|network", "hang"))
def one_port_of_every_node_was_never_connected() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    for node in EIGHT:
        told.shows("node_infiniband_state_id", node, "mlx5_9", always(1.0))
    return told


@story(Expected("restart", "unknown|network", "hang"))
def one_port_of_one_node_was_never_connected() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin")
    return told.shows("node_infiniband_state_id", "gpu-006", "mlx5_1", always(1.0))


@story(Expected("exclude", ANY_HANG, "hang|node|crash", nodes=("nid000003",)))
def one_gpu_idles_and_its_node_answers_the_scheduler_no_more() -> Cluster:
    told = Cluster(FOUR, after=300).turns("spin").loses("both", "nid000003", since=TROUBLE + 10)
    before = NodeFact(cluster="main", name="nid000003", state=NodeState.UP)
    silent = msgspec.structs.replace(before, is_silent=True)
    told.findings += told_by_scheduler(before, silent, ATTEMPT, told.now, at(-3600))
    return told


@story(Expected("restart|hold", "unknown|network|storage", "hang"))
def nothing_but_silence_and_no_metrics_can_be_read() -> Cluster:
    return Cluster(FOUR, after=300, unseen="The metrics server did not answer.")


@story(Expected("restart", "unknown|network", "hang"))
def one_gpu_of_a_pair_had_been_hot_and_all_spin() -> Cluster:
    told = Cluster(EIGHT, after=240, switched_on=True).turns("spin")
    told.shows(HEAT, "gpu-003", 1, shaking(84, 60, 1, "warm"))
    return told.shows("DCGM_FI_DEV_THERMAL_VIOLATION", "gpu-003", 1, rise(3e9, 1e7, 100))


@story(Expected("restart|none", "unknown|application|storage|network", "hang"))
def data_is_prepared_by_the_processors_while_all_gpus_idle() -> Cluster:
    told = Cluster(EIGHT, step=30, after=420).turns("idle")
    for node in EIGHT:
        told.shows("node_load1", node, "", always(190.0))
    return told


@story(Expected("none"))
def a_long_step_whose_communication_alternates_with_work() -> Cluster:
    told = Cluster(FOUR, after=400)
    for node in FOUR:
        for gpu in range(4):
            told.shows("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", node, gpu, at_intervals(f"{node}{gpu}"))
    return told


@story(Expected("stop", "application|user", "crash"))
def a_mistake_ends_it_and_the_exporters_of_one_node_stop_afterwards() -> Cluster:
    told = Cluster(FOUR, "end", after=290, ending=FAILED).turns("idle")
    told.loses("both", "nid000002", since=TROUBLE + 40)
    return told.writes(*on_ranks(16, KEY_ERROR))


@story(Expected("restart|confirm|stop", "application|user|unknown", ""))
def a_process_is_killed_for_memory_and_all_gpus_spin() -> Cluster:
    told = Cluster(FOUR, after=240).turns("spin")
    return told.shows("node_vmstat_oom_kill", "nid000002", "", jump(3, 4))


@story(Expected("exclude", HARDWARE, "", nodes=("gpu-007",), may=("gpu-002",)))
def one_gpu_idles_and_another_falls_off_its_bus() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin").turns("idle", "gpu-002", gpus=(3,))
    told.turns("idle", "gpu-007", gpus=(1,))
    return told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-007", 1, jump(0, 79, TROUBLE - 2))


@story(Expected("exclude", ANY_HANG, "hang|node", nodes=("gpu-002",)))
def one_gpu_idles_and_a_gpu_of_another_node_is_hot() -> Cluster:
    told = Cluster(EIGHT, after=240, switched_on=True).turns("spin")
    told.turns("idle", "gpu-002", gpus=(3,))
    told.shows(THROTTLE, "gpu-006", 0, always(float(BIT_THERMAL)))
    return told.shows(HEAT, "gpu-006", 0, shaking(88, 80, 1, "hot"))


@story(Expected("confirm|stop|restart", "application|user", ""))
def every_gpu_meets_the_same_illegal_access() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    for node in FOUR:
        told.kernel(
            node,
            "NVRM: Xid (PCI:0000:1b:00): 31, pid=711, name=python, Ch 00000008, intr 00000000. "
            "MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f_2e000000.",
            when=TROUBLE - 2,
        )
    return told.writes(
        *(
            f"[rank{rank}]: RuntimeError: CUDA error: an illegal memory access was encountered"
            for rank in range(16)
        )
    )


@story(
    Expected(
        "restart|exclude|hold", "storage|network|hardware|system_software", "", may=("gpu-003",)
    )
)
def one_client_of_the_file_system_is_evicted() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin").turns("idle", "gpu-003")
    return told.kernel(
        "gpu-003",
        "LustreError: 167-0: scratch-MDT0000-mdc-ffff9f3c: This client was evicted by "
        "scratch-MDT0000; in progress operations using this service will fail.",
        when=TROUBLE + 20,
    )


@story(Expected("none", "", "slow"))
def heat_that_passed_eight_minutes_ago_while_it_is_slow_still() -> Cluster:
    told = Cluster(EIGHT, "slow", after=900, switched_on=True)
    told.shows(
        CLOCK, "gpu-003", 2, lambda now: 1200.0 if TROUBLE <= now < TROUBLE + 120 else 1740.0
    )
    return told.shows(
        THROTTLE,
        "gpu-003",
        2,
        lambda now: float(BIT_THERMAL) if TROUBLE <= now < TROUBLE + 120 else 0.0,
    )


@story(Expected("none|exclude", "", "slow", may=("gpu-003",)))
def heat_that_began_a_minute_ago_while_it_is_slow_for_fifteen() -> Cluster:
    told = Cluster(EIGHT, "slow", after=900, switched_on=True)
    told.shows(CLOCK, "gpu-003", 2, shaking(1740, 1200, 10, "late", TROUBLE + 830))
    return told.shows(THROTTLE, "gpu-003", 2, jump(0, BIT_THERMAL, TROUBLE + 830))


@story(Expected("none", "", "slow"))
def one_gpu_counts_more_time_at_its_power_limit_at_the_same_clock() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600, switched_on=True)
    return told.shows("DCGM_FI_DEV_POWER_VIOLATION", "gpu-003", 2, rise(8e12, 9e7, 0))


@story(Expected("none", "", "slow"))
def blank_values_stand_for_what_a_gpu_does_not_have() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True)
    blank = float(0x7FFFFFFFFFFFFFF0)
    for metric in (
        HEAT,
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        THROTTLE,
    ):
        told.shows(metric, "nid000003", 0, always(blank))
    return told


@story(Expected("restart|exclude", "", "", may=("gpu-005",)))
def an_exporter_is_first_seen_after_the_hang_and_shows_an_xid() -> Cluster:
    told = Cluster(EIGHT, after=300).turns("spin")
    told.loses("gpu", "gpu-005", since=0, until=TROUBLE + 60)
    return told.shows("DCGM_FI_DEV_XID_ERRORS", "gpu-005", 0, always(79.0))


@story(Expected("hold|restart", "storage|unknown|network", ""))
def one_node_is_not_scraped_as_storage_stops_everywhere() -> Cluster:
    told = Cluster(FOUR, after=300).turns("idle").loses("both", "nid000002", since=TROUBLE - 200)
    for node in FOUR:
        told.kernel(node, "nfs: server fs1 not responding, still trying", when=TROUBLE + 20)
    return told


@story(Expected("exclude", HARDWARE, "slow", nodes=("gpu-008",)))
def one_node_is_down_to_a_lower_clock_since_it_is_slow_without_a_reason() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600)
    return spread_over(
        told, "gpu-008", range(4), CLOCK, lambda gpu: shaking(1740, 1410, 10, f"d{gpu}")
    )


@story(Expected("none|restart", "none|unknown", "hang"))
def full_use_and_the_usual_power_with_a_log_that_prints_seldom() -> Cluster:
    return Cluster(FOUR, step=30, after=300, profiled=False)


@story(Expected("none"))
def answers_are_generated_with_busy_memory_and_idle_tensor_cores() -> Cluster:
    return Cluster(FOUR, after=600).turns("generate")


@story(Expected("none"))
def an_evaluation_keeps_tensor_cores_little_busy() -> Cluster:
    return Cluster(FOUR, after=400, switched_on=True).turns("evaluate")


@story(Expected("none"))
def one_gpu_evaluates_while_the_others_wait_at_a_barrier() -> Cluster:
    told = Cluster(FOUR, after=300).turns("spin")
    return told.turns("evaluate", "nid000001", gpus=(0,))


@story(Expected("hold|restart", "storage|unknown|network", "hang|node|crash"))
def the_rank_that_writes_a_checkpoint_waits_for_the_file_server() -> Cluster:
    told = Cluster(FOUR, after=420).turns("spin").turns("idle", "nid000001", gpus=(0,))
    told.shows("node_nfs_rpc_retransmissions_total", "nid000001", "", rise(40, 1))
    told.shows("node_cpu_seconds_total", "nid000001", "", rise(9e4, 3))
    return told.kernel(
        "nid000001", "nfs: server fs1 not responding, still trying", when=TROUBLE + 65
    )


THROTTLE = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
CLOCK, HEAT = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP"


@story(Expected("none", "", "slow"))
def the_last_stage_has_less_to_do_and_a_lower_clock_as_ever() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600).turns("bubble", "gpu-008", since=0)
    for gpu in range(4):
        told.shows(CLOCK, "gpu-008", gpu, shaking(1410, 1410, 60, f"s{gpu}"))
    return told


@story(Expected("exclude", HARDWARE, "slow", nodes=("gpu-017",), may=("gpu-018",)))
def two_neighbours_in_a_rack_of_thirty_two_nodes_are_slowed_by_heat() -> Cluster:
    told = Cluster(named(32), "slow", step=30, after=600, has_node_exporter=False, switched_on=True)
    for node in ("gpu-017", "gpu-018"):
        for gpu in range(4):
            low = 1150 if node == "gpu-017" else 1290
            told.shows(CLOCK, node, gpu, shaking(1740, low, 25, f"{node}{gpu}"))
            told.shows(HEAT, node, gpu, shaking(66, 88, 1, f"t{node}{gpu}"))
            told.shows(THROTTLE, node, gpu, jump(0, BIT_THERMAL))
    return told


@story(Expected("stop", "application|user", "crash"))
def a_process_of_a_neighbour_is_killed_for_memory_as_ours_fails_by_mistake() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    told.shows("node_vmstat_oom_kill", "nid000002", "", jump(3, 4, TROUBLE - 200))
    return told.writes(*on_ranks(16, KEY_ERROR))


@story(Expected("stop", "application|user", "crash"))
def a_mistake_ends_it_and_one_node_is_started_anew_two_minutes_later() -> Cluster:
    told = Cluster(FOUR, "end", after=290, ending=FAILED).turns("idle")
    told.loses("both", "nid000002", since=TROUBLE + 100, until=TROUBLE + 200)
    booted = jump(1_774_000_000, 1_775_000_000 + TROUBLE + 150, TROUBLE + 150)
    told.shows("node_boot_time_seconds", "nid000002", "", booted)
    return told.writes(*on_ranks(16, KEY_ERROR))


@story(Expected("none", "", "slow"))
def blank_values_appear_for_a_while() -> Cluster:
    told = Cluster(FOUR, "slow", after=600, switched_on=True)
    blank = float(0x7FFFFFFFFFFFFFF0)
    for metric in (
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    ):
        told.shows(
            metric, "nid000003", 0, lambda now: blank if TROUBLE < now < TROUBLE + 200 else 0.0
        )
    return told


@story(Expected("none"))
def one_node_is_no_longer_scraped_while_all_others_work_on() -> Cluster:
    return Cluster(EIGHT, after=400).loses("both", "gpu-003", since=TROUBLE + 60)


@story(Expected("none"))
def one_node_was_not_scraped_for_long_while_all_others_work_on() -> Cluster:
    return Cluster(EIGHT, after=400).loses("both", "gpu-003", since=TROUBLE - 240)


@story(Expected("restart", "unknown|network", "hang"))
def one_node_was_no_longer_scraped_four_minutes_before_the_last_step() -> Cluster:
    return Cluster(EIGHT, after=240).turns("spin").loses("both", "gpu-003", since=TROUBLE - 240)


@story(Expected("restart", "unknown|network", "hang"))
def the_only_exporter_of_a_node_stopped_four_minutes_before_the_last_step() -> Cluster:
    told = Cluster(EIGHT, step=30, after=240, has_node_exporter=False).turns("spin")
    return told.loses("gpu", "gpu-003", since=TROUBLE - 240)


@story(Expected("exclude", ANY_HANG, "hang|node", nodes=("gpu-006",)))
def a_gpu_idles_and_another_node_was_not_scraped_since_long_before() -> Cluster:
    told = Cluster(EIGHT, after=240).turns("spin").turns("idle", "gpu-006", gpus=(2,))
    return told.loses("both", "gpu-003", since=TROUBLE - 240)


@story(Expected("none", "", "slow"))
def one_node_of_an_older_kind_runs_at_its_own_lower_clock_as_ever() -> Cluster:
    told = Cluster(EIGHT, "slow", after=600)
    for gpu in range(4):
        told.shows(CLOCK, "gpu-008", gpu, always(1410.0))
        told.shows("DCGM_FI_DEV_POWER_USAGE", "gpu-008", gpu, shaking(380, 380, 9, f"p{gpu}"))
    return told


@story(Expected("none"))
def answers_are_generated_token_by_token_with_tensor_cores_at_one_percent() -> Cluster:
    told = Cluster(FOUR, after=400).turns("generate")
    for node in FOUR:
        for gpu in range(4):
            told.shows("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", node, gpu, always(0.01))
    return told


@story(Expected("none"))
def two_nodes_are_no_longer_scraped_while_all_others_work_on() -> Cluster:
    return Cluster(EIGHT, after=300).loses("both", "gpu-003", "gpu-004", since=TROUBLE + 30)


@story(Expected("stop", "application|user", "crash"))
def a_mistake_ends_it_and_all_its_nodes_are_started_anew_afterwards() -> Cluster:
    told = Cluster(FOUR, "end", after=290, ending=FAILED).turns("idle")
    for node in FOUR:
        booted = jump(1_774_000_000, 1_775_000_750, TROUBLE + 150)
        told.shows("node_boot_time_seconds", node, "", booted)
    return told.writes(*on_ranks(16, KEY_ERROR))


@story(Expected("stop", "application|user", "crash"))
def a_mistake_ends_it_and_a_process_is_killed_for_memory_a_minute_later() -> Cluster:
    told = Cluster(FOUR, "end", after=290, ending=FAILED).turns("idle")
    told.shows("node_vmstat_oom_kill", "nid000002", "", jump(3, 4, TROUBLE + 60))
    return told.writes(*on_ranks(16, KEY_ERROR))


@story(Expected("stop", "application|user", "crash"))
def a_mistake_on_all_ranks_beside_one_xid_31() -> Cluster:
    told = Cluster(FOUR, "end", after=120, ending=FAILED).turns("idle")
    told.shows("DCGM_FI_DEV_XID_ERRORS", "nid000002", 2, jump(0, 31))
    return told.writes(*on_ranks(16, KEY_ERROR))


@pytest.mark.parametrize("told", STORIES, ids=[told.name for told in STORIES])
def test_a_story_is_concluded_as_a_careful_operator_would(told: Story) -> None:
    got = concluded(told.tell())
    assert not misses(got, told.expected), f"{misses(got, told.expected)}: {got}"
