"""The project's own labelled logs keep being read right: what works does not break unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from accuracy.answers import ears
from accuracy.healthy import FOLDER, logs
from accuracy.labels import cases_of, timelines_of
from accuracy.measuring import Measured, measure
from accuracy.scoring import shares

from relight.perception.ears import Ears

CORPUS = Path(__file__).parents[2] / "corpus"
FLOORS = {
    "kind": 98,
    "domain": 95,
    "decision": 97,
    "root line": 95,
    "node": 90,
}
"""Per cent right on each folder of cases; the examiners' logs among them."""


@pytest.fixture(scope="module")
def listening() -> Ears:
    """Give ears for all packaged rules."""
    return ears()


def alarming(measured: Measured) -> list[str]:
    """Return the cases that were told to stop, or raised an alarm, and should not."""
    return [
        one.case.label.id
        for one in measured.outcomes
        if one.score.false_stop or one.score.false_alarm
    ]


@pytest.mark.parametrize(
    "folder", sorted(path.parent.name for path in CORPUS.glob("*/labels.jsonl"))
)
def test_a_folder_of_cases_is_read_right(folder: str, listening: Ears) -> None:
    measured = measure(folder, cases_of(CORPUS / folder), listening)
    reached = {name: one.percent for name, one in shares(measured.scores["relight"]).items()}
    low = {name: reached[name] for name, floor in FLOORS.items() if (reached[name] or 100) < floor}
    assert low == {}, "make accuracy lists every miss"
    assert alarming(measured) == []


def test_no_generated_healthy_log_raises_an_alarm(listening: Ears) -> None:
    measured = measure("healthy", timelines_of(CORPUS / "healthy"), listening)
    assert alarming(measured) == []


def test_the_healthy_logs_are_those_that_are_generated() -> None:
    generated = {f"{name}.log": data for name, data, _ in logs()}
    written = {path.name: path.read_bytes() for path in FOLDER.glob("*.log")}
    assert written.keys() == generated.keys()
    differing = [name for name, data in generated.items() if written[name] != data]
    assert differing == [], "run python -m accuracy.healthy"
