from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from relight.cli.config import app
from relight.settings.explaining import markdown
from relight.settings.keys import KEYS

RUNNER = CliRunner()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "relight.toml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cluster main (local, 0 opt-ins): MONITOR ONLY, relight says what it would do"),
        ("[policy.default]\nmode = 'act'", "in every partition ACTS under default"),
        (
            "partitions = ['a', 'b']\n[policy.x]\nmode = 'act'\n[policy.y]\nmode = 'approve'",
            "in a, b ACTS under x and ACTS AFTER A YES under y",
        ),
        ("mode = 'monitor'\n[policy.x]\nmode = 'act'", "MONITOR ONLY"),
        (
            "[policy.x]\nmode = 'act'\n[policy.y]\nmode = 'act'\nhang = 'report'",
            "  LIVING JOBS that hang, or worse, are restarted too under x\n",
        ),
        (
            "[telemetry.m]\nurl = 'http://127.0.0.1:9'",
            "note: telemetry.m is never asked: no cluster names it in telemetry\n",
        ),
        ("[[opt_in]]\ncluster = 'main'", "(local, 1 opt-in)"),
    ],
)
def test_check_says_aloud_which_clusters_can_be_changed(file: Path, text: str, said: str) -> None:
    file.write_text(f"[cluster.main]\nkind = 'local'\n{text}\n")
    result = RUNNER.invoke(app, ["check", "--config", str(file)])
    assert result.exit_code == 0
    assert result.output.startswith(f"ok: {file}\n")
    assert said in result.output


def test_check_prints_every_problem_and_fails(file: Path) -> None:
    file.write_text("[cluster.main]\nkind = 'x'\n[serve]\nport = 'y'\n")
    result = RUNNER.invoke(app, ["check", "--config", str(file)])
    assert result.exit_code == 1
    assert f"{file}:2: cluster.main.kind" in result.output
    assert f"{file}:4: serve.port" in result.output
    assert result.output.endswith("2 problems\n")


def test_explain_tells_what_a_key_does_and_where_its_default_comes_from() -> None:
    result = RUNNER.invoke(app, ["explain", "policy.default.max_restarts"])
    assert result.exit_code == 0
    assert result.output == (
        "policy.NAME.max_restarts\n"
        "  Bounds the restarts without progress; a comment can only lower it.\n"
        "  allowed:     a whole number from 0 to 1000\n"
        "  default:     3\n"
        "  why:         The number in NVIDIA's examples; Determined allows 5, "
        "a Kubernetes Job 6.\n"
        "  environment: RELIGHT_POLICY__NAME__MAX_RESTARTS\n"
    )


def test_explain_without_a_key_tells_all() -> None:
    output = RUNNER.invoke(app, ["explain"]).output
    assert all(f"{key.pattern}\n  {key.meaning}" in output for key in KEYS)
    assert RUNNER.invoke(app, ["explain", "--markdown"]).output == markdown() + "\n"


def test_explain_answers_a_misspelt_key_with_the_nearest() -> None:
    result = RUNNER.invoke(app, ["explain", "serve.prot"])
    assert result.exit_code == 2
    assert result.output == '"serve.prot" is not a key; did you mean serve.port?\n'
