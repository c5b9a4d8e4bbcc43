"""Lines of dying programs, in the dress that launchers and shippers give them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relight.model.findings import Remedy, Role
from relight.rules.loading import load
from relight.rules.patterns import CompiledRule

RULES = {rule.id: rule for rule in load()}
COMPILED = {name: CompiledRule(rule) for name, rule in RULES.items()}
CORPUS = Path(__file__).parents[2] / "corpus" / "code"
BY_TRACEBACK = "user_code_exception"
"""Plain exceptions are heard by the traceback they end, not by a rule."""

DRESSED = (
    "{}",
    "3: {}",
    "[rank3]: {}",
    "3: [rank3]: {}",
    "[default3]:{}",
    "[1,3]<stderr>:{}",
    "(Worker pid=77, ip=10.0.0.4) {}",
    "2025-03-04T10:11:12.123Z worker-3 {}",
    "\x1b[31m{}\x1b[0m",
    "{}\r",
)


def heard(line: str) -> dict[str, dict[str, str]]:
    """Return the captures of each rule that hears the line."""
    found = {name: rule.captures(line.encode()) for name, rule in COMPILED.items()}
    return {name: captures for name, captures in found.items() if captures is not None}


@pytest.mark.parametrize("dress", DRESSED)
@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("ModuleNotFoundError: No module named 'apex'", "module-not-found"),
        ("RuntimeError: Error(s) in loading state_dict for GPT:", "shape-mismatch"),
        ("_pickle.UnpicklingError: pickle data was truncated", "checkpoint-corrupt"),
        ("OSError: image file is truncated (9 bytes not processed)", "data-corrupt"),
        ("RuntimeError: received 0 items of ancdata", "too-many-open-files"),
        ("Signal 9 (SIGKILL) received by PID 4242", "process-killed"),
        ("FloatingPointError: Minimum loss scale reached (0.0001).", "loss-scale-exhausted"),
    ],
)
def test_a_fault_is_heard_in_every_dress(dress: str, line: str, rule: str) -> None:
    assert rule in heard(dress.format(line))


@pytest.mark.parametrize(
    ("line", "rule", "captured"),
    [
        (
            "ERROR: Rank 12, node node-4, device 4, iteration #1200: Possible transient error!!",
            "silent-data-corruption",
            {"rank": "12", "node": "node-4", "device": "4", "step": "1200"},
        ),
        (
            "mpirun noticed that process rank 3 with PID 77 on node n-12 exited on signal 9 (X).",
            "process-killed",
            {"rank": "3", "node": "n-12"},
        ),
        (
            "AssertionError: Rank 3: found NaN in local grad norm in backward pass",
            "loss-nan-abort",
            {"rank": "3"},
        ),
        (
            "Memory on the node (IP: 10.0.62.231, ID: e5d9) where the task was running was 27GB",
            "ray-memory-monitor-kill",
            {"node": "10.0.62.231"},
        ),
        (
            "  exitcode  : -9 (pid: 4242)",
            "child-failed",
            {"code": "-9"},
        ),
    ],
)
def test_what_a_line_names_is_captured(line: str, rule: str, captured: dict[str, str]) -> None:
    assert heard(line)[rule].items() >= captured.items()


@pytest.mark.parametrize(
    "line",
    [
        "step 120 error_rate=0.01 oom_events=0 nan_count=0 killed_tasks=0 exit_code=0",
        "check_for_nan_in_loss_and_grad ....................... True",
        "{'loss': 0.1474, 'grad_norm': nan, 'learning_rate': 0.0001, 'epoch': 0.04}",
        "{'eval_loss': nan, 'eval_runtime': 0.01, 'epoch': 0.66}",
        "WARNING: vocab size 50257 is not divisible by 128, padding to 50304",
        "unexpected key in source state_dict: fc.weight",
        "Killing subprocess 1080504",
        "DataLoader created with 16 workers, timeout 120 seconds",
        "Saving model checkpoint to /out/checkpoint-500",
        "except KeyboardInterrupt:",
        "The answer: the process was Killed",
        "loss info is printed every 10 steps",
    ],
)
def test_what_only_looks_like_a_fault_is_not_heard(line: str) -> None:
    assert [name for name in heard(line) if RULES[name].role is not Role.BENIGN] == []


def test_a_symptom_of_the_launcher_never_says_stop() -> None:
    for name in ("child-failed", "process-killed", "worker-lost", "mpi-rank-failed"):
        assert RULES[name].role is Role.SYMPTOM
        assert RULES[name].remedy is Remedy.RESTART


def labels() -> list[dict[str, object]]:
    """Return the labels of the cases that show their cause."""
    lines = (CORPUS / "labels.jsonl").read_text().splitlines()
    return [label for label in map(json.loads, lines) if label["root_lines_ok"]]


@pytest.mark.parametrize("label", labels(), ids=lambda label: str(label["id"]))
def test_each_case_has_a_rule_of_its_family_on_its_root_line(label: dict[str, object]) -> None:
    lines = (CORPUS / "cases" / f"{label['id']}.log").read_bytes().split(b"\n")
    families = label["acceptable_family"]
    ranked = label["root_lines_ok"]
    assert isinstance(families, list)
    assert isinstance(ranked, list)
    found = {
        RULES[name].family
        for number in ranked
        for name, rule in COMPILED.items()
        if rule.captures(lines[number - 1]) is not None
    }
    assert found & set(families) or BY_TRACEBACK in families
