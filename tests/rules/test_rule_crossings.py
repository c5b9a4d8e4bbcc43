"""Rules beside one another: who hears whose lines, and where each rule stands."""

from __future__ import annotations

from importlib.resources.abc import Traversable

import pytest

from relight.model.findings import Role
from relight.rules.loading import load, packaged_files
from relight.rules.patterns import CompiledRule
from relight.rules.schema import Rule

RULES = load()
COMPILED = {rule.id: CompiledRule(rule) for rule in RULES}
ROOTS = tuple((rule, COMPILED[rule.id]) for rule in RULES if rule.role is Role.ROOT)
MOST_LINES = 400


@pytest.mark.parametrize("rule", [rule for rule, _ in ROOTS], ids=lambda rule: rule.id)
def test_a_line_that_shows_one_cause_shows_no_other(rule: Rule) -> None:
    for hit in rule.hits:
        others = [
            other.id
            for other, compiled in ROOTS
            if other.id != rule.id and compiled.captures(hit.encode()) is not None
        ]
        assert others == [], hit


@pytest.mark.parametrize("file", packaged_files(), ids=lambda file: file.name)
def test_a_file_of_rules_says_what_it_holds_and_stays_short(file: Traversable) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert text.count("\n") <= MOST_LINES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_speaks_in_whole_sentences(rule: Rule) -> None:
    assert rule.sentence.endswith(".")
    assert rule.why.endswith(".")
    assert not rule.title.endswith(".")


def test_no_two_rules_say_the_same() -> None:
    assert len({rule.title for rule in RULES}) == len(RULES)
    assert len({rule.sentence for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("terminate called after throwing an instance of 'c10::DistBackendError'",
         {"nccl-taking-process-down"}),
        ("terminate called after throwing an instance of 'std::bad_alloc'",
         {"host-allocation-failed"}),
        ("terminate called after throwing an instance of 'std::runtime_error'",
         {"native-exception"}),
        ("  what():  [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)",
         {"nccl-watchdog-timeout"}),
        ('    "message": "RuntimeError: NCCL error in: x.cpp:1, unhandled system error"',
         {"nccl-system-error"}),
        ('    "message": "RendezvousConnectionError: The connection to the C10d store has failed."',
         {"rendezvous-failed"}),
        ("FileNotFoundError: Dataset not found: train (/data/bin)", {"data-not-found"}),
        ("RuntimeError: Parent directory /scratch/ckpt does not exist.", {"checkpoint-not-found"}),
        ("python: can't open file '/home/u/t.py': [Errno 116] Stale file handle",
         {"stale-file-handle"}),
        ("OSError: [Errno 112] Host is down: '/mnt/smb/data'", {"filesystem-io-error"}),
        ("MisconfigurationException: No supported gpu backend found!", {"gpu-not-visible"}),
        ("urllib.error.HTTPError: HTTP Error 403: rate limit exceeded", {"hub-request-failed"}),
        ("requests.exceptions.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
         {"http-request-failed"}),
        ("slurmstepd: error: pyxis:     mkdir: cannot create directory: Input/output error",
         {"container-start-failed", "filesystem-io-error"}),
        ("[2024-05-01 10:00:00] INFO Overall training speed: 40 iterations in 0:00:12 (0.3 s / it)",
         set()),
        ("node7 kernel: mlx5_core 0000:5e:00.0: Detected insufficient power on the PCIe slot (27W)",
         {"adapter-underpowered"}),
        ("nvme nvme0: I/O 321 QID 9 timeout, completion polled", {"kernel-disk-retried"}),
    ],
)  # fmt: skip
def test_a_line_that_two_rules_might_claim_is_heard_by_the_right_one(
    line: str, rules: set[str]
) -> None:
    heard = {name for name, one in COMPILED.items() if one.captures(line.encode()) is not None}
    assert heard == rules
