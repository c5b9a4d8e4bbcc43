"""The first sentence: parties by name, the exception's own words, a place told once."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.sentences import completed, message_of, plainly, sentence_of
from relight.model.findings import Evidence, Finding, Kind, Role
from relight.testing.stories import finding


def told(
    sentence: str, text: str = "", family: str = "config_error", kind: Kind = Kind.CRASH
) -> Finding:
    role = Role.SYMPTOM if kind is Kind.HANG else Role.ROOT
    return msgspec.structs.replace(
        finding("broken", kind=kind, role=role),
        family=family,
        sentence=sentence,
        evidence=(Evidence(text=text, is_root=True),),
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("A rank (65) waited.", "Rank 65 waited."),
        ("PyTorch ended a rank (0) after it.", "PyTorch ended rank 0 after it."),
        ("A task (3) on n1 died.", "Task 3 on n1 died."),
        ("A rank (0, 1 and 4 more) waited.", "Ranks 0, 1 and 4 more waited."),
        ("Slurm says that a node (10.0.3.192) failed.", "Slurm says that node 10.0.3.192 failed."),
        ("A GPU (0000:3b:00) of n1 failed.", "GPU 0000:3b:00 of n1 failed."),
        ("An AMD GPU (3) hung.", "AMD GPU 3 hung."),
        ("A rank waited.", "A rank waited."),
        ("1792 of 2048 had come.", "1792 of 2048 had come, 256 had not."),
        (
            "They did not meet: 1 of 2 came, h2 was not.",
            "They did not meet: 1 of 2 came, 1 did not, h2 was not.",
        ),
        ("2 of 2 came.", "2 of 2 came."),
    ],
)
def test_who_is_known_is_named_and_who_did_not_come_is_counted(written: str, said: str) -> None:
    assert plainly(written) == said


@pytest.mark.parametrize(
    ("sentence", "nodes", "ranks", "said"),
    [
        ("It broke.", ("n1",), (3,), "it broke (rank 3 on n1)"),
        ("It broke on n1.", ("n1",), (), "it broke on n1"),
        ("It broke on n1.", ("n1", "n2"), (), "it broke on n1 (likewise n2)"),
        ("A process of rank 1 broke.", (), (0, 1), "a process of rank 1 broke (likewise rank 0)"),
        (
            "A process of rank 1 broke.",
            ("n1",),
            (0, 1),
            "a process of rank 1 broke (likewise rank 0 on n1)",
        ),
        ("A process of rank 1 broke.", ("n1",), (1,), "a process of rank 1 broke (n1)"),
    ],
)
def test_a_place_is_told_once_and_who_else_as_such(
    sentence: str, nodes: tuple[str, ...], ranks: tuple[int, ...], said: str
) -> None:
    assert sentence_of(told(sentence), nodes, ranks) == said


def test_ranks_that_wait_point_at_another_one() -> None:
    waits = told("A rank (0) waited.", kind=Kind.HANG, family="nccl_collective_timeout")
    assert sentence_of(waits, ("n1",), (7,)) == "rank 0 waited; it is probably rank 7"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[rank1]: AttributeError: no attribute 'shape'", "no attribute 'shape'"),
        ("ray.exceptions.RayActorError: The actor died.", "The actor died"),
        (
            "hydra.errors.ConfigCompositionException: key 'a' is not in struct",
            "key 'a' is not in struct",
        ),
        ("AssertionError", ""),
        ("srun: error: n1: task 0 failed", ""),
    ],
)
def test_the_message_is_what_stands_behind_the_name_of_the_exception(
    line: str, message: str
) -> None:
    assert message_of(line) == message


def test_a_long_message_is_cut_between_words() -> None:
    said = message_of("ValueError: " + "word " * 2000)
    assert said.endswith("word …")
    assert len(said) < 130
    assert len(message_of("ValueError: " + "x" * 100_000)) < 130


@pytest.mark.parametrize(
    ("sentence", "line", "said"),
    [
        ("Shapes do not fit.", "RuntimeError: 3 is not 4", 'shapes do not fit: "3 is not 4"'),
        (
            "An exception: KeyError in f.",
            "KeyError: 'schema'",
            "an exception: KeyError in f: 'schema'",
        ),
        (
            "It cannot be used: size 4.",
            "ValueError: size 4 for 2",
            'it cannot be used: "size 4 for 2"',
        ),
        ("It cannot be used: size 4.", "ValueError: size 4", "it cannot be used: size 4"),
    ],
)
def test_the_message_is_quoted_once(sentence: str, line: str, said: str) -> None:
    assert sentence_of(told(sentence, line), (), ()) == said


def test_a_message_of_what_its_family_tells_already_is_not_quoted() -> None:
    full = told("The quota is used up.", "OSError: [Errno 122] Quota", "disk_quota_exceeded")
    assert sentence_of(full, (), ()) == "the quota is used up"
    assert completed("the quota is used up", full, "more") == "the quota is used up"


@pytest.mark.parametrize(
    ("line", "below", "said"),
    [
        (
            "RuntimeError: Error(s) in loading M:",
            "\\tsize mismatch",
            'no: "Error(s) in loading M: size mismatch"',
        ),
        ("RuntimeError: It is over", "srun: error: n1", 'no: "It is over"'),
        (
            "AssertionError: Check batch related parameters. It is certainly not",
            "equal to 4 * 8",
            'no: "Check batch related parameters. It is certainly not equal to 4 * 8"',
        ),
        (
            "AssertionError: Check batch related parameters. It is certainly not",
            "wandb: syncing",
            'no: "Check batch related parameters. It is certainly not"',
        ),
    ],
)
def test_a_message_that_stops_in_the_middle_goes_on_below(line: str, below: str, said: str) -> None:
    one = told("No.", line)
    assert completed(sentence_of(one, (), ()), one, below) == said
