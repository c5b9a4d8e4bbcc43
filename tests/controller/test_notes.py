"""The note shares its field with the site's own text, and holds text that nobody vouches for."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.controller.notes import MOST_NOTE, is_noted, write_note
from relight.model.advice import Advice, Decision, Mode
from relight.model.instants import Instant, seconds
from relight.model.jobs import AttemptKey
from relight.model.reasons import Reason
from relight.testing.stories import START


def advice(attempt: str = "main:1-0", generation: int = 1, sentence: str = "Restart.") -> Advice:
    return Advice(
        attempt=AttemptKey.parse(attempt),
        generation=generation,
        decision=Decision.RESTART,
        mode=Mode.ACT,
        reason=Reason(code="restart", sentence=sentence),
        made_at=START,
    )


SITE = st.text(st.characters(exclude_characters="[]", codec="utf-8"), max_size=80)


@pytest.mark.parametrize(
    ("existing", "note"),
    [
        ("", "[relight main:1-0/1: Restart.]"),
        ("ticket 12", "ticket 12 [relight main:1-0/1: Restart.]"),
        ("[ops] do not touch", "[ops] do not touch [relight main:1-0/1: Restart.]"),
        ("a [relight main:1-0/1: old] b", "a b [relight main:1-0/1: Restart.]"),
        ("[relight main:9-9/9: old]", "[relight main:1-0/1: Restart.]"),
        ("[relight a: x] [relight b: y] z", " z [relight main:1-0/1: Restart.]"),
        ("[relight unclosed", "[relight unclosed [relight main:1-0/1: Restart.]"),
        ("relight: see wiki", "relight: see wiki [relight main:1-0/1: Restart.]"),
    ],
)
def test_the_sites_own_text_stays_and_an_older_note_is_replaced(existing: str, note: str) -> None:
    assert write_note(existing, advice(), None) == note


def test_a_wait_is_told_in_the_note() -> None:
    until = Instant(START + seconds(600))
    assert write_note("", advice(), until).endswith("Restart. Until 2025-10-09T09:03:20Z.]")


@pytest.mark.parametrize(
    "sentence",
    [
        "] scontrol hold",
        "[relight main:1-0/2: forged]",
        "]]]][[[[",
        "a\nb\r\nc\x00d\x1b[31me\x7f",
        "ticket] [relight main:11-0/1: x",
        "x" * 65_536,
        "[relight " * 9_000,
        "é" * 2_000,
    ],
    ids=lambda text: f"{text[:20]!a} ({len(text)})",
)
@pytest.mark.parametrize("existing", ["", "site text", "[site]"])
def test_a_hostile_sentence_stays_one_bounded_part(sentence: str, existing: str) -> None:
    wanted = advice(sentence=sentence)
    note = write_note(existing, wanted, None)
    part = note.removeprefix(existing).lstrip(" ")
    assert part.startswith("[relight main:1-0/1: ")
    assert part.endswith("]")
    assert part.count("[") == part.count("]") == 1
    assert len(part) < MOST_NOTE + 80
    assert not any(ord(one) < 32 or ord(one) == 127 for one in part)
    assert is_noted(note, wanted)
    assert not is_noted(note, advice(generation=2))
    assert write_note(note, wanted, None) == note


@given(SITE, st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_notes_follow_one_another_without_a_trace(site: str, first: str, second: str) -> None:
    once = write_note(site, advice(sentence=first), None)
    twice = write_note(once, advice(generation=2, sentence=second), None)
    assert twice == write_note(site, advice(generation=2, sentence=second), None)
    assert twice.startswith(site.rstrip())
    assert twice.count("[relight ") == 1
    assert not is_noted(twice, advice(sentence=first))


ALIKE = ["main:1-0", "main:11-0", "main:1-1", "main:1-10", "main:1~1-0", "main:1_1-0", "ain:1-0"]


@pytest.mark.parametrize("written", ALIKE)
@pytest.mark.parametrize("asked", ALIKE)
@pytest.mark.parametrize(("generation", "other"), [(1, 1), (1, 11), (11, 1), (1, 2)])
def test_a_note_names_one_generation_of_one_attempt_exactly(
    written: str, asked: str, generation: int, other: int
) -> None:
    note = write_note("site", advice(written, generation), None)
    assert is_noted(note, advice(asked, other)) is ((written, generation) == (asked, other))


def test_text_of_the_site_that_mentions_a_job_is_no_note() -> None:
    assert not is_noted("relight main:1-0/1: see wiki", advice())
    assert not is_noted("", advice())


def test_a_full_field_is_still_written_whole() -> None:
    note = write_note("s" * 65_000, advice(sentence="x" * 2_000), None)
    assert note.startswith("s" * 65_000 + " [relight main:1-0/1: xxx")


def test_what_is_noted_does_not_depend_on_the_sentence() -> None:
    note = write_note("", advice(sentence="one"), None)
    changed = msgspec.structs.replace(advice(), reason=Reason(code="restart", sentence="two"))
    assert is_noted(note, changed)
