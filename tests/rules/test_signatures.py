from __future__ import annotations

import pytest

from relight.model.findings import Remedy, Role
from relight.rules.linting import lint
from relight.rules.loading import load, revision
from relight.rules.patterns import CompiledRule
from relight.rules.schema import Rule

RULES = load()
COMPILED = {rule.id: CompiledRule(rule) for rule in RULES}
MOST_OTHERS = 2
ACCUSING = {rule.id for rule in RULES if rule.role is not Role.BENIGN}
"""Benign rules are there to hear such lines."""

HEALTHY = (
    "val_error: 0.12 train_error: 0.10",
    "NCCL INFO NET/Plugin: No plugin found (libnccl-net.so), using internal implementation",
    "libibverbs: Warning: couldn't load driver 'libhfi1verbs-rdmav34.so'",
    "UserWarning: Failed to load image Python extension",
    "[W ProcessGroupNCCL.cpp:4115] using GPU 0 to perform barrier as devices used by this process",
    "Warning: WARNING: destroy_process_group() was not called before program exit",
    "resource_tracker: There appear to be 6 leaked semaphore objects to clean up at shutdown",
    "[W socket.cpp:601] [c10d] The client socket cannot be initialized to connect to [localhost]",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1",
    "huggingface/tokenizers: The current process just got forked, after parallelism was used",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "wandb: Network error (ReadTimeout), entering retry loop.",
    "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "number of skipped iterations:   0 | number of nan iterations:   0 |",
    "srun: job 42 queued and waiting for resources",
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_each_packaged_rule_passes_its_own_lint(rule: Rule) -> None:
    assert lint(rule) == []


@pytest.mark.parametrize("line", HEALTHY)
def test_no_rule_matches_a_line_of_a_healthy_run(line: str) -> None:
    assert [name for name in ACCUSING if COMPILED[name].captures(line.encode()) is not None] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_hit_of_one_rule_is_no_hit_of_many_others(rule: Rule) -> None:
    for hit in rule.hits:
        others = {
            name
            for name, compiled in COMPILED.items()
            if name in ACCUSING - {rule.id} and compiled.captures(hit.encode()) is not None
        }
        assert len(others) <= MOST_OTHERS, (hit, others)


@pytest.mark.parametrize(
    ("rule", "line", "expected"),
    [
        (
            "slurm-task-exited",
            "srun: error: node-[02-03]: tasks 4-7: Exited with exit code 13",
            {"node": "node-[02-03]", "rank": "4-7", "code": "13"},
        ),
        ("slurm-node-failure", "srun: error: Node failure on node-02", {"node": "node-02"}),
        (
            "gpu-fallen-off-bus",
            "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, name=python, GPU has fallen off the bus.",
            {"device": "0000:b3:00", "code": "79"},
        ),
        (
            "nccl-ib-completion-error",
            "NCCL WARN NET/IB : Got completion from peer 10.1.2.3<4000> with status=12 opcode=0",
            {"peer": "10.1.2.3", "code": "12"},
        ),
        ("module-not-found", "ModuleNotFoundError: No module named 'amp_C'", {"module": "amp_C"}),
        (
            "slurm-launch-failed",
            "srun: error: Task launch for StepId=23.0 failed on node hpc-01: Job prolog failed",
            {"node": "hpc-01", "reason": "Job prolog failed"},
        ),
    ],
)
def test_captures_name_what_the_line_names(rule: str, line: str, expected: dict[str, str]) -> None:
    assert expected.items() <= (COMPILED[rule].captures(line.encode()) or {}).items()


def test_symptoms_never_ask_for_a_node_to_go() -> None:
    for rule in RULES:
        if rule.role is Role.SYMPTOM:
            assert rule.remedy in {Remedy.RESTART, Remedy.REPORT}, rule.id


def test_only_the_scheduler_says_that_a_task_is_gone() -> None:
    assert {rule.id for rule in RULES if rule.task_gone} == {
        "slurm-node-failure",
        "slurm-task-exited",
        "slurm-task-died",
    }


def test_the_revision_changes_with_any_rule() -> None:
    assert revision(RULES) == revision(load())
    assert revision(RULES) != revision(RULES[1:])
