from __future__ import annotations

import pytest

from relight.model.instants import Instant
from relight.perception.matching import HAS_HYPERSCAN, HyperscanMatcher, Matcher, SetMatcher
from relight.perception.progress.readings import (
    batch_size,
    epoch_length,
    measured,
    read_line,
)
from relight.perception.progress.states import ProgressState
from relight.perception.progress.tallies import Moment, Tally
from relight.perception.shapes import COUNTERS, SHAPES
from relight.perception.shapes.entries import Example, Says, Shape

BY_SET = SetMatcher(COUNTERS)
BY_BLOCK: Matcher = HyperscanMatcher(COUNTERS) if HAS_HYPERSCAN else BY_SET
EXAMPLES = [(shape, example) for shape in COUNTERS for example in shape.examples]


@pytest.mark.parametrize(("shape", "example"), EXAMPLES, ids=[shape.name for shape, _ in EXAMPLES])
def test_every_counter_reads_its_own_examples(shape: Shape, example: Example) -> None:
    line = example.line.encode()
    for matcher in (BY_SET, BY_BLOCK):
        numbers = [number for _, number in matcher.scan(line + b"\n")]
        assert COUNTERS.index(shape) in numbers
        check(shape, example, line, numbers)


def check(shape: Shape, example: Example, line: bytes, numbers: list[int]) -> None:
    number = COUNTERS.index(shape)
    match shape.says:
        case Says.STEP:
            told = read_line(numbers, line, is_failure=False)
            assert told is not None
            assert told.shape is shape
            tally = Tally(ProgressState())
            tally.step(told, Moment(Instant(0), 0.0), example.line)
            progress = tally.frozen().progress
            assert progress.best_step == example.step
            if example.seconds is not None:
                assert progress.step_seconds == pytest.approx(example.seconds, rel=1e-4)
        case Says.MEASURED:
            assert measured(number, line).seconds == example.seconds
        case Says.LENGTH:
            assert epoch_length(number, line) == example.step
        case Says.BATCH:
            assert batch_size(number, line) == example.step
        case _:
            pytest.fail("a shape that is no counter stands among the counters")


def test_every_counter_carries_an_example() -> None:
    assert [shape.name for shape in COUNTERS if not shape.examples] == []


def test_names_are_given_once() -> None:
    names = [shape.name for shape in (*COUNTERS, *SHAPES)]
    assert sorted(set(names)) == sorted(names)


def test_shapes_that_stand_on_every_line_are_kept_from_those_that_do_not() -> None:
    dense = {Says.STEP, Says.MEASURED, Says.LENGTH, Says.BATCH}
    assert all(shape.says in dense for shape in COUNTERS)
    assert not any(shape.says in dense for shape in SHAPES)
