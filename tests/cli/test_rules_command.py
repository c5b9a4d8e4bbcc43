"""``relight rules``: list, show, explain, check, test, pages."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path

import pytest

from relight.cli.app import run
from relight.rules.causes import load_causes
from relight.rules.loading import load
from relight.rules.metrics import load_metric_rules

SITE = """
[[rule]]
id = "site-pump-stopped"
family = "node_failure"
kind = "node"
role = "root"
domain = "hardware"
remedy = "restart_excluding_node"
title = "A pump stopped"
sentence = "The pump of {node} stopped."
patterns = ['cooling pump of (?P<node>\\w{1,20}) stopped']
evidence = "the site's own runbook"
why = "The node gets hot without it."
hits = ["cooling pump of node7 stopped", "! cooling pump of node8 stopped at noon"]
misses = [{ text = "cooling pump of node7 started", why = "it works" }]

[[override]]
id = "disk-full"
remedy = "hold"
"""


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where no settings are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RELIGHT_CONFIG", raising=False)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "pumps.toml").write_text(SITE)
    return folder


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run(["rules", *words]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_the_listing_as_json_tells_of_each_rule_what_others_need(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listed = json.loads(told(capsys, "list", "--json"))
    lines = [one for one in listed if one["form"] == "line"]
    assert [one["id"] for one in lines] == [rule.id for rule in load()]
    for one in lines:
        assert one["family"]
        assert one["pattern"]
        assert all(len(needle) >= 4 for needle in one["needles"])


def test_one_family_can_be_listed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(told(capsys, "list", "--json", "--family", "disk_full"))
    assert {one["family"] for one in listed} == {"disk_full"}
    assert "known are benign_retry" in told(capsys, "list", "--family", "x", code=4)


def test_a_rule_is_shown_with_its_reason_and_its_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = told(capsys, "show", "gpu-fallen-off-bus")
    for expected in ("gpu_fallen_off_bus", "why", "source", "expressions", "hears"):
        assert expected in shown


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no-progress", "told by: the job's log"),
        ("gpu-idle-among-busy", "told by: metrics of the nodes"),
        ("rank-left-no-dump", "what is done: Restart once"),
        ("node-down", "the scheduler's word on nodes"),
        ("fabric-manager-error-by-metrics", "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE"),
        ("collective-mismatch", "told by: the dumps of the ranks' flight recorder"),
    ],
)
def test_every_cause_can_be_looked_up(
    capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    shown = told(capsys, "show", name)
    assert said in shown
    assert f"{name}: " in shown
    assert shown == told(capsys, "explain", name)
    assert json.loads(told(capsys, "show", name, "--json"))["id"] == name
    assert name in told(capsys, "list")


def test_a_sites_own_rule_over_metrics_is_listed_and_shown(
    capsys: pytest.CaptureFixture[str], site: Path
) -> None:
    text = resources.files("relight.rules.metrics").joinpath("fabric.toml").read_text()
    (site / "fabric.toml").write_text(text.replace("fabric-manager-error-", "site-fabric-error-"))
    name, rules = "site-fabric-error-by-metrics", ("--rules", str(site))
    assert "(the site's)" in told(capsys, "show", name, *rules)
    assert name in told(capsys, "list", *rules)
    listed = json.loads(told(capsys, "list", "--json", *rules))
    assert name in [one["id"] for one in listed if one["form"] == "metric"]
    alone = told(capsys, "list", "--family", "fabricmanager_not_running", *rules)
    assert name in alone
    assert "no-progress" not in alone


def test_a_rule_that_is_not_there_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "did you mean disk-full?" in told(capsys, "show", "disk-ful", code=4)


def test_a_rule_that_the_site_changed_says_so(
    capsys: pytest.CaptureFixture[str], site: Path
) -> None:
    shown = told(capsys, "show", "disk-full", "--rules", str(site))
    assert "remedy: hold" in shown
    assert "changed by the site" in shown
    assert "(the site's)" in told(capsys, "show", "site-pump-stopped", "--rules", str(site))


def test_settings_name_the_directories_of_rules(
    capsys: pytest.CaptureFixture[str], site: Path, tmp_path: Path
) -> None:
    settings = f'[cluster.main]\nkind = "slurm"\n[rules]\ndirectories = ["{site}"]\n'
    (tmp_path / "relight.toml").write_text(settings)
    assert "A pump stopped" in told(capsys, "show", "site-pump-stopped")
    (tmp_path / "relight.toml").write_text("this is wrong")
    assert "the rules of the settings are not heard" in told(capsys, "show", "disk-full")


def test_a_line_is_explained_with_its_writer_and_what_it_means(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "3: [rank3]: OSError: [Errno 28] No space left on device: '/scratch/x.pt'"
    explained = told(capsys, "explain", line)
    for expected in ("rank 3", "task 3", "disk-full", "path=/scratch/x.pt"):
        assert expected in explained
    assert json.loads(told(capsys, "explain", line, "--json"))[0]["captures"]
    assert "no rule hears it" in told(capsys, "explain", "all is well", code=1)


def test_a_benign_rule_is_said_to_silence_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    line = "For debugging consider passing CUDA_LAUNCH_BLOCKING=1 cooling pump of node7 stopped"
    assert "benign" in told(capsys, "explain", line)


def test_good_rules_of_a_site_pass_the_check(
    capsys: pytest.CaptureFixture[str], site: Path, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_text("step 1\nstep 2\n")
    checked = told(capsys, "check", str(site / "pumps.toml"), "--healthy", str(logs))
    assert checked.startswith("ok: ")
    assert "of the site: disk-full, site-pump-stopped" in checked
    assert "1 healthy logs" in checked


def test_the_packaged_rules_keep_every_law_and_are_silent_in_healthy_logs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    checked = told(capsys, "check")
    assert checked.startswith(f"ok: {len(load())} rules")
    assert " 0 healthy logs" not in checked


def test_every_problem_of_a_file_is_told_at_once(
    capsys: pytest.CaptureFixture[str], site: Path
) -> None:
    bad = SITE.replace('why = "The node gets hot without it."', 'why = ""')
    (site / "pumps.toml").write_text(bad.replace("node_failure", "pump_failure"))
    checked = told(capsys, "check", str(site), code=1)
    assert "why is empty" in checked
    assert 'did you mean "node_failure"?' in checked


def test_a_rule_that_is_heard_in_a_healthy_log_fails_the_check_unless_the_ledger_knows(
    capsys: pytest.CaptureFixture[str], site: Path, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "well.log").write_text("step 1\ncooling pump of node7 stopped\n")
    (logs / "ill.log").write_text("cooling pump of node7 stopped\n")
    index = [{"id": "well", "kind": "healthy"}, {"id": "ill", "kind": "crash"}]
    (logs / "index.jsonl").write_text("\n".join(map(json.dumps, index)))
    words = ("check", str(site), "--healthy", str(logs))
    assert "well is healthy, but site-pump-stopped is heard" in told(capsys, *words, code=1)
    ledger = tmp_path / "ledger.toml"
    entry = 'log = "well"\nrule = "site-pump-stopped"\nsince = 2026-11-29\nwhy = "a drill"\n'
    ledger.write_text(f"[[heard]]\n{entry}")
    assert told(capsys, *words, "--ledger", str(ledger)).startswith("ok")
    ledger.write_text(f"[[heard]]\n{entry.replace('pump-stopped', 'pump-burnt')}")
    assert "remove the entry" in told(capsys, *words, "--ledger", str(ledger), code=1)
    ledger.write_text(f"[[heard]]\n{entry.replace('2026-11-29', '7')}")
    assert "since" in told(capsys, *words, "--ledger", str(ledger), code=1)


def test_rules_are_tried_on_a_log(
    capsys: pytest.CaptureFixture[str], site: Path, tmp_path: Path
) -> None:
    log = tmp_path / "a.log"
    log.write_text("ok\ncooling pump of node7 stopped\ncooling pump of node7 stopped\n")
    (heard,) = json.loads(told(capsys, "test", str(log), "--rules", str(site), "--json"))
    assert (heard["rule"], heard["lines"], heard["line"]) == ("site-pump-stopped", 2, 2)


def test_a_log_that_cannot_be_tried_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "no such file" in told(capsys, "test", str(tmp_path / "gone.log"), code=1)
    os.mkfifo(tmp_path / "pipe")
    assert "named pipe" in told(capsys, "test", str(tmp_path / "pipe"), code=1)


def test_each_rule_gets_a_page_and_the_index_lists_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told(capsys, "pages", str(tmp_path / "pages"))
    written = {path.stem for path in (tmp_path / "pages").glob("*.md")}
    known = {rule.id for rule in load()} | {rule.id for rule in load_metric_rules()}
    known |= {cause.id for cause in load_causes()}
    assert written == known | {"README"}
    index = (tmp_path / "pages" / "README.md").read_text()
    assert all(f"]({name}.md)" in index for name in known)
