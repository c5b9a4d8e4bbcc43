"""What a run survived, what came after its end, and what is left to explain it."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.courses import Course, Stretch
from relight.diagnosis.sifting import Sifted, is_mere_warning, sift
from relight.model.findings import Domain, End, Evidence, Finding, Kind, Place, Role
from relight.model.instants import Instant, seconds
from relight.model.progress import Progress
from relight.testing.stories import START, finding

FILE = "job-7.out"


def at(count: float) -> Instant:
    return Instant(START + seconds(count))


def found(rule: str, number: int, text: str = "", /, **fields: object) -> Finding:
    made = finding(rule, offset=number)
    evidence = (Evidence(text=text or rule, is_root=True),)
    place = Place(file=FILE, offset=number, line=number)
    made = msgspec.structs.replace(made, evidence=evidence, place=place)
    return msgspec.structs.replace(made, **fields)


def course(**fields: object) -> Course:
    progress = msgspec.structs.replace(Progress(first_step=1, last_step=100), **fields)
    return Course([Stretch(file=FILE, run=0, progress=progress)])


def kept(sifted: Sifted) -> list[str]:
    return [one.rule for one in sifted.live]


@pytest.mark.parametrize(
    ("step", "changes", "survived"),
    [
        (100, {}, False),
        (99, {}, False),
        (98, {}, True),
        (None, {}, True),
        (None, {"first_step": 100}, False),
        (90, {"report_seconds": 100.0, "step_seconds": 10.0}, False),
        (80, {"report_seconds": 100.0, "step_seconds": 10.0}, True),
        (50, {"last_step": None}, False),
    ],
)
def test_what_steps_went_on_after_was_survived(
    step: int | None, changes: dict[str, object], *, survived: bool
) -> None:
    sifted = sift([found("oom", 5, step=step)], course(**changes))
    assert kept(sifted) == ([] if survived else ["oom"])
    assert [one.why for one in sifted.set_aside] == (
        ["the run went on and completed steps after it"] if survived else []
    )


def test_another_files_steps_after_the_time_of_a_line_show_survival() -> None:
    elsewhere = Place(file="rank-3.out", offset=1, line=1)
    progress = Progress(first_step=0, last_step=100, report_seconds=1.0)
    steps = Course([Stretch(file=FILE, run=0, progress=progress, step_at=at(100))])
    early = found("oom", 5, place=elsewhere, at=at(10))
    late = found("oom", 6, place=elsewhere, at=at(99))
    timeless = found("oom", 7, place=elsewhere)
    assert [one.id for one in sift([early, late, timeless], steps).live] == [late.id, timeless.id]


def test_a_slow_run_goes_on_by_nature() -> None:
    assert kept(sift([found("slow", 5, step=10, kind=Kind.SLOW)], course())) == ["slow"]


def test_numbers_gone_bad_count_as_survived_only_when_the_last_of_them_was() -> None:
    first = found("nan", 5, step=10, kind=Kind.NUMERIC)
    last = found("nan", 9, step=100, kind=Kind.NUMERIC)
    assert kept(sift([first], course(loss=2.0))) == []
    assert kept(sift([first, last], course(loss=2.0))) == ["nan", "nan"]
    assert kept(sift([first], course(nan_losses=3))) == ["nan"], "a flood that was thinned"


def test_a_survived_error_explains_a_death_soon_after_that_nothing_else_explains() -> None:
    oom = found("oom", 5, step=95)
    old = found("old", 4, step=10)
    died = found("died", 9, step=100, role=Role.SYMPTOM)
    assert kept(sift([oom, old, died], course())) == ["oom", "died"]
    hung = found("hung", 9, step=100, role=Role.SYMPTOM, kind=Kind.HANG)
    assert kept(sift([oom, old, hung], course())) == ["hung"]


def ending(end: End, number: int) -> Finding:
    return found(f"end-{end}", number, ending=end, kind=Kind.ENDING, step=100)


def test_what_is_printed_after_a_run_was_told_to_stop_is_its_aftermath() -> None:
    before, after = (found("bug", number, step=100, domain=Domain.USER) for number in (5, 9))
    broken = found("ecc", 10, step=100, domain=Domain.HARDWARE)
    sifted = sift([before, ending(End.CANCELLED, 7), after, broken], course())
    assert [one.id for one in sifted.live] == [before.id, broken.id]
    assert sifted.ending is not None
    assert sifted.ending.ending is End.CANCELLED
    assert [one.id for one in sifted.aftermath] == [after.id]


def test_what_breaks_while_processes_are_taken_down_is_noise_but_a_lost_result_is_not() -> None:
    abort = msgspec.structs.replace(found("abort", 9, step=100), family="segfault")
    full = msgspec.structs.replace(
        found("full", 10, step=100, domain=Domain.STORAGE), family="disk_full"
    )
    sifted = sift([ending(End.FINISHED, 7), abort, full], course())
    assert kept(sifted) == ["full"]
    assert sifted.is_finished
    assert [one.rule for one in sifted.teardown] == ["abort"]
    assert kept(sift([abort], course(is_finished=True))) == []


def test_of_several_endings_the_first_counts_unless_the_framework_says_that_it_finished() -> None:
    cancelled, finished = ending(End.CANCELLED, 7), ending(End.FINISHED, 9)
    preempted = ending(End.PREEMPTED, 5)
    assert sift([cancelled, finished], course()).ending == cancelled
    assert sift([finished, ending(End.CANCELLED, 11)], course()).ending == finished
    assert sift([cancelled], course(is_finished=True)).ending is None
    assert sift([preempted], course(is_finished=True)).ending == preempted


def test_a_line_that_says_what_broke_only_guesses_at_an_ending() -> None:
    guess = ending(End.PREEMPTED, 7)
    crash = found("heartbeat", 8, place=guess.place, step=100, role=Role.EITHER)
    sifted = sift([guess, crash], course())
    assert sifted.ending is None
    assert kept(sifted) == ["heartbeat"]


def test_harmless_lines_are_told_and_nothing_else() -> None:
    sifted = sift([found("noise", 5, role=Role.BENIGN, step=100)], course())
    assert kept(sifted) == []
    assert [one.why for one in sifted.set_aside] == ["it looks alarming and is harmless"]


def test_what_a_launcher_tries_again_is_survived_when_nothing_fails_after() -> None:
    retry = msgspec.structs.replace(
        found("retry", 7, role=Role.BENIGN, step=100), family="benign_retry_recovered"
    )
    first, second = (found("bug", number, step=100) for number in (5, 9))
    assert kept(sift([first, retry], course())) == []
    assert kept(sift([first, retry, second], course())) == ["bug", "bug"]


@pytest.mark.parametrize(
    ("text", "kind", "mere"),
    [
        ("Warning: falling back, because ModuleNotFoundError", Kind.CRASH, True),
        ("2026-03-01 10:00:00 WARNING hub.py - retrying", Kind.CRASH, True),
        ("[2026-03-01] [INFO] cannot reach the hub, trying again", Kind.CRASH, True),
        ("W0301 10:00:00.1 socket.cpp] refused", Kind.CRASH, True),
        ("2026-03-01 ERROR hub.py - refused (WARNING: last try)", Kind.CRASH, False),
        ("a:1:2 [0] NCCL WARN NET/IB : port error", Kind.CRASH, False),
        ("RuntimeError: boom", Kind.CRASH, False),
        ("STRAGGLER DETECTION WARNING: rank 5", Kind.SLOW, False),
        ("WARNING: node has been marked dead", Kind.NODE, False),
    ],
)
def test_a_line_may_call_itself_a_warning(text: str, kind: Kind, *, mere: bool) -> None:
    assert is_mere_warning(found("x", 1, text, kind=kind)) is mere


@pytest.mark.parametrize(
    ("silent", "until", "still"),
    [
        (600, None, False),
        (1300, None, True),
        (3600, None, True),
        (1300, 1300, True),
        (3600, 3600, False),
        (7200 + 120, 7320, False),
        (5400, 5400, True),
        (86_400, 86_400, True),
    ],
)
def test_a_run_stood_still_when_its_steps_stopped_long_before_its_log(
    silent: int, until: int | None, *, still: bool
) -> None:
    progress = Progress(last_step=5, report_seconds=10.0)
    stretch = Stretch(
        file=FILE, run=0, progress=progress, step_at=START, last_at=at(silent), dress="a"
    )
    told = Course([stretch])
    assert told.stood_still(None if until is None else at(until)) is still, "zones differ by hours"


def test_a_course_without_times_tells_of_no_silence() -> None:
    assert Course().silence() is None
    assert not course().stood_still()


def test_a_run_that_had_been_ended_and_began_again_broke_of_what_came_then() -> None:
    preempted = msgspec.structs.replace(ending(End.PREEMPTED, 5), step=10)
    full = found("full", 9, step=100)
    sifted = sift([preempted, full], course())
    assert sifted.ending is None
    assert kept(sifted) == ["full"]
    assert sift([preempted], course()).ending == preempted, "a notice that steps went on after"


def test_a_run_whose_last_step_is_saved_is_done() -> None:
    abort = msgspec.structs.replace(found("abort", 9, step=100), family="segfault")
    assert kept(sift([abort], course(total=100, best_checkpoint=100))) == []
    assert kept(sift([abort], course(total=100, best_checkpoint=90))) == ["abort"]
    assert kept(sift([abort], course(total=100))) == ["abort"]
