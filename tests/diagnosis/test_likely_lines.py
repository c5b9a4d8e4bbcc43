"""Which lines are worth a look, and what shows a death."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.reports import Shown
from relight.perception.likely import MOST_LIKELY, death_in, likely_lines


def lines(*texts: str) -> list[Shown]:
    return [Shown(file="a", line=number, text=text) for number, text in enumerate(texts, 1)]


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("worker 3 exited with code 77", True),
        ("command terminated with exit code 1", True),
        ("['python', 'train.py'] exits with return code = -9", True),
        ("Process returned non-zero exit status 2", True),
        ("./run.sh: line 3: 4711 Aborted (core dumped) python train.py", True),
        ("Killed", True),
        ("WARNING worker 3 exited with code 77", True),
        ("2026-03-01 10:00:00,123 - WARNING - worker 3 exited with code 77", True),
        ("2026-03-01 10:00:00,123 - WARNING - retrying: worker 3 exited with code 77", False),
        ("Segmentation fault (core dumped)", True),
        ("terminate called after throwing an instance of 'std::bad_alloc'", True),
        ("Job 'raysubmit_aa' failed", True),
        ("container exited successfully with exit code 0", False),
        ("command terminated with exit code 0", False),
        ("step 100 loss 2.1", False),
        ("0 tests failed", False),
        ("retrying: the job failed with exit code 1", False),
        ("Training finished", False),
        ("worker started with code path /x", False),
    ],
)
def test_a_death_shows_in_its_words(text: str, *, dead: bool) -> None:
    assert (death_in(lines("before", text, "after", "after", "after", "after")) is not None) is dead


def test_an_exception_on_the_last_line_is_a_death() -> None:
    assert death_in(lines("step 1", "frob.FluxError: out of flux")) is not None
    assert death_in(lines("step 1", "[default0]:frob.FluxError: out of flux")) is not None
    assert death_in(lines("frob.FluxError: out of flux", *["step 1"] * 9)) is None


def test_the_likeliest_line_comes_first_and_repeats_count_less() -> None:
    told = likely_lines(
        lines(
            "INFO error rate 0.1",
            *(f"cannot open shard {number}" for number in range(50)),
            "FATAL: flux capacitor lost",
            '  File "x.py", line 3, in error_handler',
            "frob.FluxError: out of flux",
            "",
            "all is well",
        )
    )
    assert [one.text for one in told[:2]] == [
        "FATAL: flux capacitor lost",
        "frob.FluxError: out of flux",
    ]
    assert "cannot open shard 0" in {one.text for one in told}
    assert "all is well" not in {one.text for one in told}
    assert len(told) <= MOST_LIKELY


def test_a_log_without_such_lines_gives_none() -> None:
    assert likely_lines(lines("step 1", "step 2")) == ()
    assert likely_lines([]) == ()
    assert death_in([]) is None


@given(st.lists(st.text(max_size=200), max_size=30))
def test_any_text_can_be_scored(texts: list[str]) -> None:
    told = likely_lines(lines(*texts))
    assert {one.text for one in told} <= set(texts)
    death_in(lines(*texts))
