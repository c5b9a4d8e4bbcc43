"""What the GPUs of a job show while no step is completed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.evidence import Window
from relight.model.findings import Domain, Finding, Remedy, Role
from relight.model.instants import EPOCH, from_unix, seconds
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.telemetry import Series, Sight
from relight.perception.telemetry.judging import judge
from relight.perception.telemetry.scenes import whose_gpus_are_not_told
from relight.rules.metrics.judging import instants
from relight.rules.metrics.notation import read_series

UTIL, TENSOR = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
POWER, DRAM = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_PROF_DRAM_ACTIVE"
TRAFFIC = "DCGM_FI_PROF_NVLINK_TX_BYTES"
NODES = ("node-1", "node-2", "node-3", "node-4")
SILENT = from_unix(600)
UNTIL = from_unix(840)

SPINS = {UTIL: "100x28", TENSOR: "0.45x19 0x8", POWER: "650x19 280x8"}
IDLES = {UTIL: "100x19 0x8", TENSOR: "0.45x19 0x8", POWER: "650x19 90x8"}
WORKS = {UTIL: "100x28", TENSOR: "0.45x28", POWER: "650x28"}
SPARE = {UTIL: "0x28", TENSOR: "0x28", POWER: "70x28"}
GONE = {UTIL: "100x19", TENSOR: "0.45x19", POWER: "650x19"}
LATE = {UTIL: "0x19 100x8", TENSOR: "0x28", POWER: "70x19 280x8"}
STOPPED = {UTIL: "100x19 0x3", TENSOR: "0.45x19 0x3", POWER: "650x19 90x3"}
HALF = {UTIL: "100x19 40x8", TENSOR: "0.45x19 0x8", POWER: "650x19 280x8"}
STREAMS = {UTIL: "100x28", TENSOR: "0x28", DRAM: "0.6x28", POWER: "400x28"}
EVALUATES = {UTIL: "100x19 60x8", TENSOR: "0.45x19 0.02x8", DRAM: "0.4x19 0.3+0.01x8"}
GENERATES = {UTIL: "100x28", TENSOR: "0.45x19 0.01x8", DRAM: "0.4x19 0.7x8", POWER: "650x19 390x8"}
SPINS_WITHOUT_PROFILE = {UTIL: "100x28", POWER: "650x19 280x8"}
BUSY_AT_FULL_POWER = {UTIL: "100x28", POWER: "650x28"}
STIRS = {UTIL: "100x28", TENSOR: "0.45x19 0x8", DRAM: "0.4x19 0.07x8", POWER: "650x19 280x8"}
STREAM_SPINS = {UTIL: "100x28", TENSOR: "0x28", DRAM: "0.6x19 0x8", POWER: "400x19 200x8"}
TALKS = {**SPINS, TRAFFIC: "9000000x28"}
QUIET = {**SPINS, TRAFFIC: "9000000x19 0x8"}

Gpu = Mapping[str, str]


def series_of(gpus: Mapping[tuple[str, str], Gpu], **labels: str) -> list[Series]:
    return [
        Series(
            metric=metric,
            node=node,
            device=device,
            labels=labels,
            samples=instants(EPOCH, seconds(30), read_series(values)),
        )
        for (node, device), gpu in gpus.items()
        for metric, values in gpu.items()
    ]


def job(gpus_a_node: int = 8, usual: Gpu = SPINS, **others: Gpu) -> dict[tuple[str, str], Gpu]:
    """Return four nodes of GPUs that all do as usual, but for ``others``: ``n2g3`` or ``n2``."""
    return {
        (node, str(gpu)): others.get(f"n{node[-1]}g{gpu}", others.get(f"n{node[-1]}", usual))
        for node in NODES
        for gpu in range(gpus_a_node)
    }


def window(nodes: tuple[str, ...] = NODES) -> Window:
    return Window(
        attempt=AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0),
        allocation=Allocation(nodes=nodes),
        since=EPOCH,
        until=UNTIL,
        silent_since=SILENT,
    )


def judged(series: Iterable[Series], asked: Window | None = None) -> tuple[Finding, ...]:
    sight = Sight(source="site", since=EPOCH, until=UNTIL, series=tuple(series))
    return judge(sight, asked or window())


NAMES = [
    pytest.param(job(n3g5=IDLES), ("node-3",), ("5",), id="one GPU idle among spinning ones"),
    pytest.param(job(n2g1=IDLES, n2g2=IDLES), ("node-2",), ("1", "2"), id="two GPUs of one node"),
    pytest.param(job(n4=IDLES), ("node-4",), tuple("01234567"), id="a whole node"),
    pytest.param(job(1, n1=IDLES), ("node-1",), ("0",), id="one node of four with one GPU each"),
    pytest.param(job(n1g0=IDLES, n2g4=SPARE), ("node-1",), ("0",), id="beside a GPU never used"),
    pytest.param(job(n1g0=IDLES, n2g4=HALF), ("node-1",), ("0",), id="beside an unclear one"),
]


@pytest.mark.parametrize(("gpus", "nodes", "devices"), NAMES)
def test_the_idle_one_among_spinning_ones_is_named(
    gpus: dict[tuple[str, str], Gpu], nodes: tuple[str, ...], devices: tuple[str, ...]
) -> None:
    (found,) = judged(series_of(gpus))
    assert (found.rule, found.nodes, found.devices) == ("gpu-idle-among-busy", nodes, devices)
    assert (found.role, found.domain) == (Role.ROOT, Domain.HARDWARE)
    assert found.remedy is Remedy.RESTART_EXCLUDING_NODE
    assert "node" not in found.fingerprint


def test_its_words_give_the_samples() -> None:
    (found,) = judged(series_of(job(n3g5=IDLES)))
    assert found.sentence == (
        "GPU 5 of node-3 is idle while 31 of the job's 32 GPUs spin without work: "
        "the process there is stuck or gone."
    )
    assert found.evidence[0].text == (
        "GPU 5 of node-3: utilisation 0 to 0 %, tensor active 0 (before: 0.45), "
        "power 90 W (before: 650 W) over 3 scrapes"
    )
    assert found.evidence[0].is_root


PATTERNS = [
    pytest.param(job(), "gpus-spin", id="all spin"),
    pytest.param(job(usual=QUIET), "gpus-spin", id="all spin, and the traffic is gone"),
    pytest.param(job(usual=STREAM_SPINS), "gpus-spin", id="a job without tensor cores spins"),
    pytest.param(job(usual=IDLES), "gpus-idle", id="all idle"),
    pytest.param(job(usual=SPARE), "gpus-idle", id="nothing was ever computed"),
    pytest.param(job(usual=WORKS), "gpus-work", id="all work"),
    pytest.param(job(usual=STREAMS), "gpus-work", id="a job without tensor cores works"),
    pytest.param(job(usual=WORKS, n1g0=HALF), "gpus-work", id="most work"),
    pytest.param(job(n1g0=GONE), "gpus-spin", id="one that cannot be seen among spinning ones"),
    pytest.param(job(usual=EVALUATES), "gpus-work", id="an evaluation, by its memory"),
    pytest.param(job(usual=GENERATES), "gpus-work", id="text is generated token by token"),
    pytest.param(job(n1g0=EVALUATES), "gpus-work", id="one evaluates and the others wait for it"),
    pytest.param(job(usual=SPINS_WITHOUT_PROFILE), "gpus-spin", id="less power at full use"),
    pytest.param(job(usual=BUSY_AT_FULL_POWER), "", id="full use and the usual power, no more"),
    pytest.param(job(usual=STIRS), "", id="memory that is neither still nor at work"),
    pytest.param(job(usual=TALKS), "", id="tensor cores rest and traffic goes on"),
    pytest.param(job(n1=IDLES, n2=IDLES, n3=IDLES), "", id="more than half idle"),
    pytest.param(job(n1g0=IDLES, n2g0=IDLES), "", id="idle ones on several nodes"),
    pytest.param(job(usual=WORKS, n1g0=IDLES), "", id="one idle while the others work"),
    pytest.param(job(n1g0=WORKS), "", id="one works while the others wait"),
    pytest.param(job(usual=HALF), "", id="half utilised"),
    pytest.param(job(n1g0=STOPPED), "gpus-spin", id="one that was idle when it was last seen"),
]


@pytest.mark.parametrize(("gpus", "rule"), PATTERNS)
def test_other_patterns_name_nobody(gpus: dict[tuple[str, str], Gpu], rule: str) -> None:
    found = [one for one in judged(series_of(gpus)) if one.rule != "gpu-count-lower"]
    assert [one.rule for one in found] == ([rule] if rule else [])
    assert not any(one.nodes or one.devices for one in found)


def test_a_gpu_that_was_idle_before_and_is_not_now_is_counted() -> None:
    (found,) = judged(series_of(job(n1g0=LATE)))
    assert found.sentence.startswith("31 of the job's 32 GPUs are busy without work")


def test_going_on_with_work_is_no_trouble() -> None:
    (found,) = judged(series_of(job(usual=WORKS)))
    assert (found.role, found.domain, found.remedy) == (Role.BENIGN, Domain.NONE, Remedy.REPORT)


def test_utilisation_alone_says_less() -> None:
    gpus = {part: {UTIL: gpu[UTIL]} for part, gpu in job(n2g0=IDLES).items()}
    (found,) = judged(series_of(gpus))
    assert (found.rule, found.role, found.nodes) == (
        "gpu-idle-among-busy",
        Role.EITHER,
        ("node-2",),
    )
    assert "may be waiting" in found.sentence
    assert judged(series_of({part: {UTIL: WORKS[UTIL]} for part in gpus})) == ()


def test_shares_of_the_engine_stand_in_for_utilisation() -> None:
    gpus = {
        part: {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": "1x19 0x8" if part[0] == "node-2" else "1x28"}
        for part in job(1)
    }
    (found,) = judged(series_of(gpus))
    assert found.nodes == ("node-2",)


def test_an_idle_gpu_is_not_blamed_where_as_many_cannot_be_seen() -> None:
    gpus = job(1, n1=IDLES)
    seen = {part: gpu for part, gpu in gpus.items() if part[0] in ("node-1", "node-2")}
    assert judged(series_of(seen)) == ()


def test_gpus_of_other_jobs_on_a_shared_node_are_left_out() -> None:
    ours = {part: gpu for part, gpu in job(n1g0=IDLES).items() if int(part[1]) < 4}
    others = {part: WORKS for part in job() if int(part[1]) >= 4}
    both = [*series_of(ours, hpc_job="7"), *series_of(others, hpc_job="8")]
    (found,) = judged(both)
    assert (found.nodes, found.devices) == (("node-1",), ("0",))


def test_where_a_node_shows_more_gpus_than_the_job_has_and_no_label_none_is_the_jobs() -> None:
    series = series_of(job(n1g0=IDLES))
    small = msgspec.structs.replace(window(), gpus_per_node=4)
    sight = Sight(source="site", since=EPOCH, until=UNTIL, series=tuple(series))
    assert judged(series, small) == ()
    assert whose_gpus_are_not_told(sight, small) == NODES
    whole = msgspec.structs.replace(window(), gpus_per_node=8)
    assert [one.nodes for one in judged(series, whole)] == [("node-1",)]
    assert whose_gpus_are_not_told(sight, whole) == ()


def test_what_was_not_asked_or_not_answered_is_not_judged() -> None:
    series = tuple(series_of(job(n3g5=IDLES)))
    assert judged(series, msgspec.structs.replace(window(), silent_since=None)) == ()
    just_now = msgspec.structs.replace(window(), silent_since=from_unix(795))
    assert judged(series, just_now) == ()
    unseen = Sight(source="site", since=EPOCH, until=UNTIL, series=series, unseen="It is down.")
    assert judge(unseen, window()) == ()


def test_nodes_of_others_are_not_seen() -> None:
    gpus = job(n4=IDLES)
    (found,) = judged(series_of(gpus), window(NODES[:3]))
    assert found.rule == "gpus-spin"


@given(st.lists(st.sampled_from([SPINS, SPINS, IDLES, WORKS, HALF]), min_size=8), st.data())
def test_series_that_are_missing_never_create_a_blame(does: list[Gpu], data: st.DataObject) -> None:
    gpus = {(node, str(gpu)): does[2 * n + gpu] for n, node in enumerate(NODES) for gpu in (0, 1)}
    series = series_of(gpus)
    missing = data.draw(st.integers(0, len(series) - 1))
    left = [one for number, one in enumerate(series) if number != missing]
    blamed = {node for one in judged(series) for node in one.nodes}
    assert {node for one in judged(left) for node in one.nodes} <= blamed


def test_the_same_silence_makes_the_same_finding_and_another_one_another() -> None:
    series = series_of(job(n3g5=IDLES))
    (first,) = judged(series)
    (again,) = judged(series, msgspec.structs.replace(window(), until=from_unix(900)))
    (later,) = judged(series, msgspec.structs.replace(window(), silent_since=from_unix(630)))
    assert first.id == again.id != later.id
    assert first.fingerprint == later.fingerprint


def test_hostile_labels_are_bounded_and_escaped() -> None:
    gpus = {("node-1", "\x1b[31m\n" + "x" * 9000): IDLES, ("node-1", "\x00"): SPINS}
    gpus = {**gpus, ("node-2", "0"): SPINS, ("node-2", "{}%s"): SPINS}
    (found,) = judged(series_of(gpus), window(NODES[:2]))
    text = found.sentence + "".join(one.text for one in found.evidence) + "".join(found.devices)
    assert text.isprintable()
    assert len(text) < 2_000


def test_a_node_whose_metrics_stop_is_told() -> None:
    gpus = job(n2=GONE)
    found = [one for one in judged(series_of(gpus)) if one.rule == "telemetry-gone"]
    assert [one.nodes for one in found] == [("node-2",)]
    assert "go on" in found[0].sentence


@pytest.mark.parametrize(
    "gpus",
    [
        pytest.param(job(usual=GONE), id="the server stopped for all"),
        pytest.param(job(n1=GONE, n2=GONE), id="for half of them"),
        pytest.param(job(n1g0=GONE), id="for one GPU only"),
    ],
)
def test_metrics_that_stop_for_more_or_less_than_a_node_are_not(
    gpus: dict[tuple[str, str], Gpu],
) -> None:
    assert not [one for one in judged(series_of(gpus)) if one.rule == "telemetry-gone"]


MACHINE = {"node_boot_time_seconds": "100x28"}
MACHINE_GONE = {"node_boot_time_seconds": "100x19"}
EARLY = {UTIL: "100x9", TENSOR: "0.45x9", POWER: "650x9"}
EIGHT_NODES = tuple(f"node-{number}" for number in range(1, 9))


def machines(**others: Gpu) -> dict[tuple[str, str], Gpu]:
    return {(node, ""): others.get(f"n{node[-1]}", MACHINE) for node in NODES}


@pytest.mark.parametrize(
    ("gpus", "role"),
    [
        pytest.param({**job(n2=GONE), **machines(n2=MACHINE_GONE)}, Role.EITHER, id="both at once"),
        pytest.param(job(n2=GONE), Role.SYMPTOM, id="the only exporter"),
        pytest.param(
            {**job(n2=GONE), **machines(n2={"node_boot_time_seconds": "100x9"})},
            Role.SYMPTOM,
            id="one long before the other",
        ),
    ],
)
def test_a_node_is_surely_gone_where_all_its_exporters_stop_together(
    gpus: dict[tuple[str, str], Gpu], role: Role
) -> None:
    (found,) = (one for one in judged(series_of(gpus)) if one.rule == "telemetry-gone")
    assert (found.nodes, found.role) == (("node-2",), role)


@pytest.mark.parametrize(
    "gpus",
    [
        pytest.param(job(n2=EARLY), id="steps were completed after its metrics stopped"),
        pytest.param(job(usual=WORKS, n2=GONE), id="the others work"),
        pytest.param(job(n2=GONE, n3=EVALUATES), id="one node works and the others wait for it"),
    ],
)
def test_a_node_that_the_job_goes_on_after_is_not_gone(gpus: dict[tuple[str, str], Gpu]) -> None:
    assert not [one for one in judged(series_of(gpus)) if one.nodes]


@pytest.mark.parametrize(("count", "named"), [(1, 1), (2, 2), (3, 0)])
def test_a_quarter_of_the_nodes_may_be_gone_and_more_are_a_shared_trouble(
    count: int, named: int
) -> None:
    gpus = {(node, "0"): GONE if n < count else SPINS for n, node in enumerate(EIGHT_NODES)}
    found = judged(series_of(gpus), window(EIGHT_NODES))
    assert len([one for one in found if one.rule == "telemetry-gone"]) == named


def test_an_idle_gpu_is_named_though_another_node_was_not_scraped_since_before() -> None:
    (found,) = judged(series_of(job(n3g5=IDLES, n2=EARLY)))
    assert (found.rule, found.nodes) == ("gpu-idle-among-busy", ("node-3",))


def test_an_exporter_that_stops_is_no_node_that_stops() -> None:
    boot = {(node, ""): {"node_boot_time_seconds": "100x28"} for node in NODES if node != "node-2"}
    gpus = job(n2=GONE)
    assert not [one for one in judged(series_of({**gpus, **boot})) if one.rule == "telemetry-gone"]
