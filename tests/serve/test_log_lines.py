"""What users write cannot forge a line of the log, nor act on the terminal that shows it."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from relight.daemon.logging import set_up_logging

FORGED = "\n2026-01-01T00:00:00.000000Z [info     ] all is well"
HOSTILE = f"/scratch/\x1b[2J\x1b]0;title\x07{FORGED}\r\x9b\u202e\u2028\ud800"
LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+Z \[\w+ *\] ")


@pytest.fixture(autouse=True)
def _usual_logging() -> Iterator[None]:
    """Take the service's logging back after each test."""
    yield
    structlog.reset_defaults()


def _fail() -> None:
    raise ValueError(HOSTILE)


def _check(text: str, events: int) -> None:
    lines = text.removesuffix("\n").split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    begun = [line for line in lines if LINE.match(line)]
    assert len(begun) == events
    assert all(LINE.match(line) or line.startswith("    ") for line in lines)


def test_a_hostile_path_stays_within_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging()
    log = structlog.get_logger("relight.test")
    sentence = f"reading {HOSTILE}"
    log.info(sentence, path=HOSTILE, where=Path(HOSTILE), many=[HOSTILE], count=3)
    log.warning("plain words stay as they are: größe 東京", is_well=True, nothing=None)
    log.info("with a key", **{HOSTILE: 1})
    text = capsys.readouterr().err
    _check(text, 3)
    assert r"reading /scratch/\x1b[2J\x1b]0;title\x07\n2026-01-01" in text
    assert "größe 東京" in text
    assert "count=3" in text


def test_a_traceback_keeps_its_lines_and_none_of_them_looks_like_an_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_logging()
    log = structlog.get_logger("relight.test")
    try:
        _fail()
    except ValueError:
        log.exception("a turn failed", wait=0.4)
        log.exception("the same again")
    text = capsys.readouterr().err
    _check(text, 2)
    assert "    Traceback (most recent call last):\n" in text
    assert "    ValueError: /scratch/\\x1b[2J" in text


@pytest.mark.parametrize("failure", [OSError("No space left on device"), ValueError("closed")])
def test_a_log_that_cannot_be_written_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise failure

    monkeypatch.setattr(sys, "stderr", Full())
    set_up_logging()
    structlog.get_logger("relight.test").error("nobody hears this")
