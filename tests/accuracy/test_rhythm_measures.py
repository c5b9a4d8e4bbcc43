"""The measuring of rhythms: lives that can be repeated, honest clocks, fair judgement."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from accuracy.__main__ import main
from accuracy.answers import ears
from accuracy.clocks import pieces, polls
from accuracy.judging import Outcome, Worth, outcome
from accuracy.labels import LabelError
from accuracy.lives import Life, life
from accuracy.living import Pause
from accuracy.replays import log_of, replayed, runs_of
from accuracy.rhythms import quantile, tasks, upper_bound
from accuracy.traits import Told
from accuracy.troubles import HANGS, Injected, Trouble
from accuracy.watching import Alarm, lived
from accuracy.written import BEGUN

from relight.model.findings import Kind
from relight.model.instants import between, in_seconds
from relight.model.pulses import Beat

SEEDS = range(40, 52)
BY_SHORT_STEPS = 7
"""A seed whose life has short steps and every sort of pause."""


def seconds_of(one: Life) -> list[float]:
    return [in_seconds(between(BEGUN, pulse.heard_at)) for pulse in one.pulses]


def test_the_same_seed_gives_the_same_life_and_another_seed_another() -> None:
    assert life(3, 0.2) == life(3, 0.2)
    assert life(3, 0.2) != life(4, 0.2)
    assert tasks(20, 1) == tasks(20, 1)
    assert {one.trouble for one in tasks(40, 1)} == set(Trouble)


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_are_heard_in_order_and_after_they_were_written(seed: int) -> None:
    one = life(seed, 0.5)
    heard = seconds_of(one)
    assert heard == sorted(heard)
    assert all(number >= 0 for number in heard)
    assert heard[-1] <= one.watched + 200


@pytest.mark.parametrize("trouble", [one for one in HANGS if one is not Trouble.COUNTS_ON])
def test_nothing_is_heard_of_a_life_after_it_stopped_but_what_was_on_its_way(
    trouble: Trouble,
) -> None:
    for seed in SEEDS:
        one = life(seed, 0.5, trouble)
        late = [at for at in seconds_of(one) if at > one.injected.at + 65]
        assert late == []
        assert one.watched > one.injected.at + 3_600


def test_a_life_that_counts_on_shows_no_step_any_more_but_another_counter() -> None:
    one = life(BY_SHORT_STEPS, 0.5, Trouble.COUNTS_ON)
    late = {
        pulse.what
        for pulse, at in zip(one.pulses, seconds_of(one), strict=True)
        if at > one.injected.at + 65
    }
    assert late == {Beat.MOVED}


def test_steps_rise_but_where_the_life_starts_again_in_place() -> None:
    for seed in SEEDS:
        one = life(seed, 0.5)
        steps = [pulse.step or 0 for pulse in one.pulses if pulse.what is Beat.STEP]
        falls = sum(later <= earlier for earlier, later in pairwise(steps))
        assert falls <= len(one.traits.restarts)


@pytest.mark.parametrize(
    ("trouble", "since", "factor"),
    [
        (Trouble.SLOWS, -1, 1.0),
        (Trouble.SLOWS, 0, 2.0),
        (Trouble.SLOWS_GRADUALLY, 300, 1.5),
        (Trouble.SLOWS_GRADUALLY, 6000, 2.0),
        (Trouble.SLOWS_A_WHILE, 899, 2.0),
        (Trouble.SLOWS_A_WHILE, 901, 1.0),
        (Trouble.STOPS, 10, 1.0),
    ],
)
def test_steps_take_longer_as_the_trouble_says(
    trouble: Trouble, since: float, factor: float
) -> None:
    wrong = Injected(trouble=trouble, at=1000, drop=0.5, lasts=900)
    assert wrong.factor(1000 + since) == pytest.approx(factor)


def test_a_throughput_halved_for_a_quarter_of_an_hour_loses_half_of_it() -> None:
    wrong = Injected(trouble=Trouble.SLOWS_A_WHILE, at=1000, drop=0.5, lasts=900)
    assert wrong.minutes_lost(5000) == pytest.approx(7.5, rel=0.01)
    gradual = msgspec.structs.replace(wrong, trouble=Trouble.SLOWS_GRADUALLY)
    assert gradual.factor(gradual.reached) == pytest.approx(1 / 0.85)


STAMPED = b"""2026-01-01 10:00:00 start
2026-01-01 10:00:10 step 1
no stamp, beside 2026-01-01
2026-01-01 10:00:05 late news
built on 2027-01-01 00:00:00
2026-01-01 10:01:10 step 2
[collector: lines left out]
2026-01-01 11:00:00 step 400
2026-01-03 11:00:00 the next day
"""
MEGATRON = b"""training
 iteration 1/ 9 | elapsed time per iteration (ms): 5000.0 |
 iteration 2/ 9 | elapsed time per iteration (ms): 7000.0 |
 iteration 12/ 9 | elapsed time per iteration (ms): 100.0 |
evaluated
 iteration 1/ 9 | elapsed time per iteration (ms): 5000.0 |
"""
NANO = b"step:1/9 train_time:1000ms\nstep:2/9 train_time:1500ms\nstep:3/9 train_time:10ms\n"
BARS = b"Test: [10/99] x time: 0.5 \rTest: [20/99] x time: 0.5 \rTest: [20/99] x time: 0.5 \r\n"


@pytest.mark.parametrize(
    ("data", "stamped", "pauses", "seconds"),
    [
        (STAMPED, True, {}, [0, 10, 10, 10, 10, 70, 70, 71, 72]),
        (MEGATRON, False, {}, [0, 5, 12, 13, 13, 18]),
        (MEGATRON, False, {5: 40.0}, [0, 5, 12, 13, 53, 58]),
        (NANO, False, {}, [1, 1.5, 1.5]),
        (BARS, False, {}, [0.5, 5.5, 5.5]),
        (b"", True, {}, []),
        (b"\r\n\x00\xff\r\r\n", False, {}, [0, 0, 0]),
    ],
)
def test_lines_get_the_time_that_the_log_itself_tells(
    data: bytes,
    stamped: bool,  # noqa: FBT001 - a table
    pauses: dict[int, float],
    seconds: list[float],
) -> None:
    found = pieces(data, stamped=stamped, pauses=dict(pauses))
    first = found[0].at - round(seconds[0] * 1e6) if found else 0
    assert [in_seconds(one.at - first) for one in found] == pytest.approx(seconds)
    assert b"".join(data[one.offset : one.end] for one in found) == data


def test_a_reader_that_polls_meets_every_byte_once_and_never_before_it_was_written() -> None:
    found = pieces(STAMPED, stamped=True, pauses={})
    met = list(polls(found, 1.0))
    assert b"".join(STAMPED[start:end] for _, start, end in met) == STAMPED
    assert all(later[0] > earlier[0] for earlier, later in pairwise(met))
    assert met[0][0] >= found[0].at


def test_an_index_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    assert runs_of(tmp_path) == []
    folder = tmp_path / "timelines"
    folder.mkdir()
    (folder / "index.jsonl").write_text("{}\n")
    with pytest.raises(LabelError, match="line 1"):
        runs_of(tmp_path)
    (folder / "index.jsonl").write_text(json.dumps({"id": "a", "kind": "slow"}) + "\n")
    with pytest.raises(LabelError, match=r"a\.log is missing"):
        runs_of(tmp_path)


QUIET = life(BY_SHORT_STEPS, 0.5)


def lived_with(alarms: list[Alarm], *pauses: Pause, trouble: Trouble = Trouble.NONE) -> Outcome:
    wrong = Injected(trouble=trouble, at=5_000, drop=0.5)
    one = msgspec.structs.replace(QUIET, pauses=pauses, injected=wrong, watched=9_000, pulses=())
    return outcome(one, alarms)


def paused(began: float, ended: float, told: Told, kind: str = "checkpoint") -> Pause:
    return Pause(kind=kind, began=began, ended=ended, told=told)


def silent(at: float) -> Alarm:
    return Alarm(kind=Kind.HANG, rule="no-progress", at=at, sentence="", limit=120)


@pytest.mark.parametrize(
    ("pauses", "worth"),
    [
        ((), Worth.FALSE),
        ((paused(3000, 3400, Told.NOTHING),), Worth.UNTOLD),
        ((paused(3000, 3400, Told.END),), Worth.UNTOLD),
        ((paused(3000, 3400, Told.BOTH),), Worth.FALSE),
        ((paused(3000, 4400, Told.BOTH),), Worth.LONGER),
        ((paused(1000, 1300, Told.END), paused(3000, 3400, Told.END)), Worth.RECORD),
        ((paused(1000, 1500, Told.END), paused(3000, 3400, Told.END)), Worth.FALSE),
        ((paused(3000, 3400, Told.NOTHING, "start-up"),), Worth.FALSE),
        ((paused(100, 400, Told.NOTHING),), Worth.FALSE),
    ],
)
def test_an_alarm_in_a_healthy_life_is_false_unless_no_log_could_have_told(
    pauses: tuple[Pause, ...], worth: Worth
) -> None:
    assert lived_with([silent(3200)], *pauses).alarms == ((worth, silent(3200)),)


def test_an_alarm_counts_as_found_only_after_trouble_began_and_of_its_kind() -> None:
    slow = Alarm(kind=Kind.SLOW, rule="slowdown", at=5_700, sentence="", minutes_lost=5)
    hung = lived_with([silent(5_200)], trouble=Trouble.STOPS)
    assert (hung.found, hung.delay, hung.alarms) == (silent(5_200), 200, ())
    assert lived_with([slow], trouble=Trouble.STOPS).found is None
    found = lived_with([silent(5_200), slow], trouble=Trouble.SLOWS)
    assert (found.found, found.delay) == (slow, 700)
    assert found.lost == pytest.approx(700 / 60 / 2, rel=0.01)
    assert found.alarms == ((Worth.FALSE, silent(5_200)),)
    early = msgspec.structs.replace(slow, at=4_000)
    assert lived_with([early], trouble=Trouble.SLOWS).alarms == ((Worth.FALSE, early),)


@pytest.mark.parametrize(
    ("count", "hours", "bound"),
    [(0, 1000, 3.0), (0, 0, float("inf")), (1, 1000, 4.74), (10, 1000, 16.96), (100, 1000, 118.1)],
)
def test_the_bound_of_a_rate_is_poissons(count: int, hours: float, bound: float) -> None:
    assert upper_bound(count, hours) == pytest.approx(bound, rel=0.01)


def test_a_quantile_of_nothing_is_nought() -> None:
    assert quantile([], 0.5) == 0
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([3, 1, 2], 0.95) == 3


LOG = b"".join(
    b"[2026-01-01 10:%02d:%02d] iteration %d/ 5000 | elapsed time per iteration (ms): 10000.0 | "
    b"lm loss: 2.0 |\n" % (step // 6, step % 6 * 10, step)
    for step in range(1, 300)
)


def corpus(folder: Path, *, at: int | None = None) -> Path:
    """Write a log of fifty minutes, which stands still for ten after step ``at``."""
    lines = LOG.splitlines(keepends=True)
    if at is not None:
        lines = lines[:at] + lines[at + 60 :]
    (folder / "timelines").mkdir(parents=True)
    (folder / "timelines" / "a.log").write_bytes(b"".join(lines))
    entry = {"id": "a", "kind": "healthy", "lines": len(lines), "has_timestamps": True}
    (folder / "timelines" / "index.jsonl").write_text(json.dumps(entry) + "\n")
    return folder


def test_a_log_is_replayed_by_its_own_time_and_a_gap_in_it_is_told(tmp_path: Path) -> None:
    (well,) = runs_of(corpus(tmp_path / "well"))
    listening = ears()
    quiet = replayed(well, log_of(tmp_path / "well", well).read_bytes(), listening)
    assert quiet.alarms == ()
    assert quiet.hours == pytest.approx(0.83, abs=0.01)
    (gap,) = runs_of(corpus(tmp_path / "gap", at=200))
    told = replayed(gap, log_of(tmp_path / "gap", gap).read_bytes(), listening)
    assert [one.rule for one in told.alarms] == ["no-progress"]
    assert 1990 + 120 < told.alarms[0].at < 2600


def test_a_life_that_stops_is_told_once_and_within_seconds_of_its_limit() -> None:
    one = life(BY_SHORT_STEPS, 0.5, Trouble.STOPS)
    became = outcome(one, lived(one))
    assert became.found is not None
    assert became.found.beyond <= 15
    assert became.delay < 600


def test_the_page_tells_hours_rates_and_every_trouble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = corpus(tmp_path)
    few = ["--rhythms", "--corpus", str(folder), "--lives", "22", "--hours", "0.2"]
    assert main(few) == 0
    page = capsys.readouterr().out
    assert "| healthy | 1 | 0.8 | 0 |" in page
    for trouble in Trouble:
        assert trouble is Trouble.NONE or f"| {trouble.value} |" in page
    (folder / "timelines" / "index.jsonl").write_text("{}\n")
    assert main(few) == 2
    assert "line 1" in capsys.readouterr().err


def test_as_json_every_life_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.joinpath("nothing").touch()
    assert (
        main(["--rhythms", "--corpus", str(tmp_path), "--lives", "2", "--hours", "0.2", "--json"])
        == 0
    )
    said = msgspec.json.decode(capsys.readouterr().out)
    assert [msgspec.convert(one, Outcome).seed for one in said["lives"]] == [
        one.seed for one in tasks(2, 1)
    ]
