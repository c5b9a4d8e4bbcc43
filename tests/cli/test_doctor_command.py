"""What ``relight doctor`` says of things that are well, that are not, and that cannot be seen."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relight.cli import app
from relight.cli.checkups import Check, Standing, check_cluster, check_kernel_logs, check_store
from relight.daemon.clock import now
from relight.model.instants import EPOCH, in_seconds
from relight.model.jobs import JobFact, NodeFact
from relight.model.seen import Seen, Unseen
from relight.settings.records import Cluster, Settings
from relight.settings.records import Store as StoreSettings
from relight.store import Store
from relight.testing.metrics import VictoriaMetrics, steady, unavailable
from relight.testing.slurm import SlurmCluster

Said = tuple[int, dict[str, list[Check]], str]
Say = Callable[[str], Said]
NODES = ("gpu-01", "gpu-02", "gpu-03")


@pytest.fixture
def say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    """Write settings, run the command, and give its exit code and what it says of each thing."""

    def run(settings: str) -> Said:
        config = tmp_path / "relight.toml"
        config.write_text(f'{settings}\n[store]\npath = "{tmp_path}/state"\n')
        code = app.run(["doctor", "--config", str(config), "--json"])
        seen = capsys.readouterr()
        checks: dict[str, list[Check]] = {}
        for one in json.loads(seen.out)["checks"]:
            found = Check(**one | {"standing": Standing(one["standing"])})
            checks.setdefault(found.what, []).append(found)
        return code, checks, seen.err

    return run


class PretendEyes:
    """Eyes that see what they are told to see."""

    def __init__(
        self,
        nodes: Seen[tuple[NodeFact, ...]] | Unseen,
        jobs: Seen[tuple[JobFact, ...]] | Unseen = Seen(()),  # noqa: B008 - a frozen value
    ) -> None:
        self._nodes = nodes
        self._jobs = jobs

    def nodes(self) -> Seen[tuple[NodeFact, ...]] | Unseen:
        """Return the nodes told."""
        return self._nodes

    def jobs(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return the jobs told."""
        return self._jobs

    def job(self, scheduler_id: str) -> Seen[JobFact | None] | Unseen:
        """Return that it was not looked for."""
        return Unseen(f"{scheduler_id} was not looked for")


def node(name: str, gpus: int = 0) -> NodeFact:
    return NodeFact(cluster="main", name=name, gpus=gpus)


def test_settings_that_cannot_be_used_are_told_problem_by_problem(say: Say) -> None:
    code, checks, _ = say('[cluster.main]\nkind = "slrm"\npoll = 7')
    assert code == 1
    assert list(checks) == ["settings"]
    told = [one.sentence for one in checks["settings"]]
    assert len(told) == 2
    assert "cluster.main.kind" in told[0]


def test_what_is_not_there_is_told_with_what_to_do(say: Say, tmp_path: Path) -> None:
    code, checks, _ = say(
        f'[cluster.main]\nkind = "slurm"\nbin_dir = "{tmp_path}"\ntelemetry = "dcgm"\n'
        f'kernel_logs = ["{tmp_path}/%N.log"]\nattribution = ["second"]\n'
        '[telemetry.dcgm]\nurl = "http://127.0.0.1:1"\n'
        '[attribution.second]\nurl = "http://127.0.0.1:1"'
    )
    assert code == 1
    standings = {what: one.standing.value for what, (one,) in checks.items()}
    assert standings == {
        "settings": "ok",
        "rules": "ok",
        "store": "ok",
        "cluster main": "problem",
        "telemetry dcgm, cluster main": "problem",
        "kernel logs of main": "warning",
        "attribution second": "warning",
    }
    assert "bin_dir" in checks["cluster main"][0].cure
    assert "No server answers at" in checks["telemetry dcgm, cluster main"][0].sentence


def test_a_cluster_without_telemetry_is_told_what_it_goes_without(say: Say, tmp_path: Path) -> None:
    _, checks, _ = say(
        f'[cluster.main]\nkind = "slurm"\nbin_dir = "{tmp_path}"\n'
        '[telemetry.spare]\nurl = "http://127.0.0.1:1"'
    )
    assert "so it is not asked" in checks["telemetry spare"][0].sentence
    (only,) = checks["telemetry of cluster main"]
    assert (only.standing, only.cure) == (
        Standing.WARNING, "Name a metrics server in its key telemetry.",
    )  # fmt: skip


def test_rules_that_cannot_be_used_are_a_problem(say: Say, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "site.toml").write_text('[[metric_rule]]\nid = "x"\n')
    code, checks, _ = say(
        f'[cluster.main]\nkind = "slurm"\n[rules]\ndirectories = ["{tmp_path}/rules"]'
    )
    assert code == 1
    assert "site.toml" in checks["rules"][0].sentence


@pytest.mark.parametrize(
    ("eyes", "standing", "words", "asked"),
    [
        (PretendEyes(Unseen("squeue failed")), "problem", "nodes are not seen: squeue failed", ()),
        (PretendEyes(Seen((node("n1"),)), Unseen("it is busy")), "problem", "it is busy", ()),
        (PretendEyes(Seen(())), "warning", "0 nodes", ()),
        (PretendEyes(Seen((node("n1"), node("n2")))), "ok", "2 nodes, 0 with GPUs", ("n1", "n2")),
        (PretendEyes(Seen((node("n1", 8), node("n2")))), "ok", "1 with GPUs, 0 jobs", ("n1",)),
    ],
)
def test_a_cluster_tells_which_nodes_the_rest_is_about(
    eyes: PretendEyes, standing: str, words: str, asked: tuple[str, ...]
) -> None:
    check, nodes = check_cluster("main", eyes)
    assert check.standing.value == standing
    assert words in check.sentence
    assert nodes == asked


def test_kernel_logs_are_counted_by_node(tmp_path: Path) -> None:
    (tmp_path / "gpu-01.log").write_text("")
    (tmp_path / "gpu-02.log").mkdir()
    os.mkfifo(tmp_path / "gpu-03.log")
    cluster = Cluster(name="main", kernel_logs=(f"{tmp_path}/%N.log",))
    (check,) = check_kernel_logs(cluster, NODES, EPOCH)
    assert check.standing is Standing.WARNING
    assert check.sentence.endswith("can be read for 1 of 3 nodes, not for gpu-[02-03].")
    (check,) = check_kernel_logs(cluster, NODES[:1], EPOCH)
    assert check.standing is Standing.OK
    (check,) = check_kernel_logs(cluster, NODES[1:], EPOCH)
    assert check.standing is Standing.PROBLEM
    assert list(check_kernel_logs(Cluster(name="main"), NODES, EPOCH)) == []


def test_kernel_logs_whose_lines_bear_no_time_are_told(tmp_path: Path) -> None:
    (tmp_path / "gpu-01.log").write_text("[ 812.678901] usb 1-1: new high-speed USB device\n")
    cluster = Cluster(name="main", kernel_logs=(f"{tmp_path}/%N.log",))
    (check,) = check_kernel_logs(cluster, NODES[:1], EPOCH)
    assert check.standing is Standing.WARNING
    assert "no line of gpu-01 bears a time of day" in check.sentence


def test_a_store_is_well_missing_or_broken(tmp_path: Path) -> None:
    def standing(path: Path) -> tuple[str, str]:
        check = check_store(Settings(store=StoreSettings(path=str(path))))
        return check.standing.value, check.sentence

    assert standing(tmp_path / "new" / "deeper") == (
        "ok", f"{tmp_path}/new/deeper is made at the first start.",
    )  # fmt: skip
    made = tmp_path / "made"
    made.mkdir()
    assert "made at the first start" in standing(made)[1]
    Store.open(f"sqlite:///{made}/relight.db").close()
    assert standing(made) == ("ok", f"{made} can be written, and its database can be used.")
    (made / "relight.db").write_bytes(b"no database" * 100)
    assert standing(made)[0] == "problem"
    (tmp_path / "file").write_text("")
    assert standing(tmp_path / "file")[0] == "problem"
    assert standing(tmp_path / "file" / "below")[0] == "problem"


@pytest.fixture
def metrics(tmp_path: Path) -> Iterator[VictoriaMetrics]:
    if (why := unavailable()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no metrics server: {why}")
        pytest.skip(f"no metrics server: {why}")
    folder = tmp_path / "metrics"
    folder.mkdir()
    with VictoriaMetrics.start(folder) as started:
        yield started


@pytest.mark.slurm
def test_a_real_cluster_and_a_real_metrics_server_are_told_node_by_node(
    say: Say, slurm_cluster: SlurmCluster, metrics: VictoriaMetrics, tmp_path: Path
) -> None:
    end = int(in_seconds(now()))
    first, *others = slurm_cluster.nodes
    metrics.push(
        steady("DCGM_FI_DEV_GPU_UTIL", 100.0, range(end - 240, end, 15), Hostname=name, gpu="0")
        for name in others
    )
    for name in slurm_cluster.nodes:
        (tmp_path / f"{name}.log").write_text("")
    settings = (
        f'[cluster.main]\nkind = "slurm"\nslurm_conf = "{slurm_cluster.conf}"\n'
        f'telemetry = "vm"\nkernel_logs = ["{tmp_path}/%N.log"]\nattribution = ["second"]\n'
        f'[telemetry.vm]\nurl = "{metrics.url}"\n[attribution.second]\nurl = "{metrics.url}"'
    )
    code, checks, _ = say(settings)
    assert code == 0
    assert checks["cluster main"][0].standing is Standing.OK
    known, *blind = checks["telemetry vm, cluster main"]
    assert known.sentence.startswith("It knows 3 of 4 nodes by the label Hostname, and 1 of the")
    assert known.sentence.endswith(f"scraped every 15 s; not {first}.")
    assert all(one.standing is Standing.WARNING for one in blind)
    assert any("CLOCK_THROTTLE_REASONS" in one.sentence for one in blind)
    assert checks["kernel logs of main"][0].standing is Standing.OK
    assert checks["attribution second"][0].standing is Standing.OK


def test_the_table_is_for_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert app.run(["doctor", "--config", str(tmp_path / "none.toml")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["what", "how", "it", "is"]
    assert lines[1].startswith("problem  settings")
