from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.model.allowances import Allowances
from relight.model.findings import Domain, Finding, Kind, Remedy
from relight.model.instants import Instant, from_unix, in_seconds, seconds
from relight.model.jobs import AttemptKey, JobKey
from relight.model.pulses import Beat, Pulse
from relight.perception.rhythm.following import excuse, follow
from relight.perception.rhythm.limits import limit_of
from relight.perception.rhythm.silences import silence
from relight.perception.rhythm.states import Phase, Rhythm
from relight.perception.rhythm.watching import watch

ATTEMPT = AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0)
ALLOWED = Allowances()
BEGAN = 1_900_000_000.0
POLL = 2.0


class Told(NamedTuple):
    """What a log tells, so many seconds after what it told before."""

    after: float
    what: Beat = Beat.STEP
    step: int | None = None
    loss: float | None = None
    scale: float | None = None
    data_seconds: float | None = None
    total: int | None = None


def steps(
    count: int, each: float, first: int = 1, every: int = 1, data_seconds: float | None = None
) -> list[Told]:
    return [
        Told(each, step=first + number * every, data_seconds=data_seconds)
        for number in range(count)
    ]


class Life:
    """An attempt that is listened to each ``POLL`` seconds."""

    def __init__(
        self,
        *,
        prints_times: bool = True,
        earlier: float | None = None,
        allowed: Allowances = ALLOWED,
    ) -> None:
        self.rhythm = Rhythm()
        self._allowed = allowed
        self.now = 0.0
        self.found: list[tuple[float, Finding]] = []
        self._prints_times = prints_times
        self._earlier = earlier
        self._round([])

    def live(self, told: Iterable[Told], then: float = 0.0) -> Life:
        """Let the log tell all that, and then nothing for so many seconds."""
        at = self.now
        waiting: list[Pulse] = []
        for one in told:
            at += one.after
            while self.now < at:
                self._round(waiting)
                waiting = []
            waiting.append(self._pulse(one, at))
        end = at + then
        while self.now < end or waiting:
            self._round(waiting)
            waiting = []
        return self

    def _pulse(self, one: Told, at: float) -> Pulse:
        return Pulse(
            what=one.what,
            heard_at=self._instant(self.now + POLL),
            at=self._instant(at) if self._prints_times else None,
            step=one.step,
            loss=one.loss,
            scale=one.scale,
            data_seconds=one.data_seconds,
            total=one.total,
            text=f"step {one.step}",
        )

    def _round(self, pulses: Sequence[Pulse]) -> None:
        self.now += POLL
        now = self._instant(self.now)
        heard = [msgspec.structs.replace(one, heard_at=now) for one in pulses]
        watched = watch(
            self.rhythm,
            heard,
            now,
            attempt=ATTEMPT,
            allowances=self._allowed,
            heard_at=now,
            earlier=self._earlier,
            has_grown=bool(heard),
            tails=("the last line",),
        )
        self.rhythm = watched.rhythm
        self.found += [(self.now, one) for one in watched.findings]

    @staticmethod
    def _instant(at: float) -> Instant:
        return from_unix(BEGAN + at)

    def of(self, kind: Kind) -> list[tuple[float, Finding]]:
        """Return the findings of one kind, and when they were made."""
        return [one for one in self.found if one[1].kind is kind]


@pytest.mark.parametrize("prints_times", [True, False])
@pytest.mark.parametrize(
    ("each", "every", "most"), [(2.0, 1, 120), (30.0, 1, 150), (200.0, 1, 1000), (60.0, 100, 120)]
)
def test_a_stop_is_told_by_the_limit(
    each: float, every: int, most: float, *, prints_times: bool
) -> None:
    life = Life(prints_times=prints_times).live(steps(30, each, every=every))
    assert life.rhythm.phase is Phase.STEADY
    limit = in_seconds(limit_of(life.rhythm, ALLOWED).span)
    assert limit <= most + 3 * POLL
    stopped = life.now
    life.live([], then=2 * limit)
    assert [one.rule for _, one in life.found] == ["no-progress"]
    assert stopped + limit - POLL <= life.found[0][0] <= stopped + limit + 3 * POLL


def test_a_silence_is_told_once_and_the_next_one_is_another_finding() -> None:
    life = Life().live(steps(40, 2.0), then=1000).live(steps(40, 2.0, first=41), then=1100)
    hangs = [one for _, one in life.of(Kind.HANG)]
    assert len(hangs) == 2
    assert hangs[0].id != hangs[1].id
    assert hangs[0].fingerprint == hangs[1].fingerprint == "no-progress|phase=steady"
    assert hangs[0].step == 40
    assert hangs[0].remedy is Remedy.RESTART
    texts = [one.text for one in hangs[0].evidence]
    assert texts[0] == "step 40"
    assert texts[-1] == "the last line"
    assert any("The limit is" in text for text in texts)
    assert "after step 40 (usually one each 2.0 s" in hangs[0].sentence


HEALTHY = {
    "it starts for 25 minutes and compiles for 5": [
        Told(1500, Beat.SET_UP),
        Told(300, step=1),
        *steps(50, 1.0, first=2),
    ],
    "each checkpoint takes ten minutes and is announced": [
        told
        for turn in range(3)
        for told in (*steps(50, 2.0, first=1 + 50 * turn), Told(0, Beat.SAVING), Told(600))
        if told.step is not None or told.what is not Beat.STEP
    ],
    "an evaluation of 25 minutes is announced": [
        *steps(50, 2.0),
        Told(1, Beat.EVALUATING),
        Told(1500, Beat.EVALUATED),
        *steps(50, 2.0, first=51),
    ],
    "an evaluation shows its bar for an hour": [
        *steps(50, 2.0),
        Told(1, Beat.EVALUATING),
        *[Told(10, Beat.MOVED) for _ in range(360)],
        *steps(50, 2.0, first=51),
    ],
    "one rank says that it saves before another tells the step": [
        *steps(49, 2.0),
        Told(2.0, Beat.SAVING, step=50),
        Told(0.1, step=50),
        Told(600, Beat.SAVED, step=50),
        *steps(50, 2.0, first=51),
    ],
    "one rank says that it evaluates, but not when, before another tells the step": [
        *steps(49, 2.0),
        Told(2.0, Beat.EVALUATING),
        Told(0.1, step=50),
        Told(600, step=51),
        *steps(50, 2.0, first=52),
    ],
    "an evaluation told only at its end follows a checkpoint, the third time": [
        told
        for turn in range(3)
        for told in (
            *steps(50, 2.0, first=1 + 50 * turn),
            Told(1, Beat.SAVING),
            Told(30, Beat.SAVED),
            Told(100 + turn, Beat.EVALUATED),
        )
    ],
    "it restarts in place again, which takes longer to be told": [
        *steps(60, 2.0),
        Told(80, Beat.RESUMED),
        Told(100, step=41),
        *steps(60, 2.0, first=42),
        Told(150, Beat.RESUMED),
        Told(100, step=81),
        *steps(60, 2.0, first=82),
    ],
    "it restarts in place from the step before and says nothing": [
        *steps(60, 2.0),
        Told(100, step=59),
        *steps(3, 2.0, first=60),
        Told(115, step=64),
    ],
    "an epoch ends with half an hour of something else": [
        *[Told(2.0, step=number, total=100) for number in range(1, 101)],
        Told(1750, step=101, total=100),
        *steps(50, 2.0, first=102),
    ],
    "it restarts in place and loads for 20 minutes": [
        *steps(60, 2.0),
        Told(5, Beat.SET_UP),
        Told(1200, step=41),
        *steps(60, 2.0, first=42),
    ],
    "a pause that nobody announced comes again": [
        *steps(60, 2.0),
        Told(100, step=61),
        *steps(60, 2.0, first=62),
        Told(110, step=122),
    ],
    "it is over and does not go away": [*steps(60, 2.0), Told(1, Beat.FINISHED), Told(4000)],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_no_alarm_where_a_healthy_attempt(name: str) -> None:
    told = [one for one in HEALTHY[name] if one.step is not None or one.what is not Beat.STEP]
    assert Life().live(told, then=60).found == []


def test_what_is_buffered_arrives_at_once_and_is_no_silence() -> None:
    rhythm, now = Rhythm(), from_unix(BEGAN)
    found: list[Finding] = []
    for second in range(0, 6_000, 2):
        now = from_unix(BEGAN + second)
        pulses = []
        if second and second % 480 == 0:
            first = second // 5 - 96
            pulses = [
                Pulse(what=Beat.STEP, heard_at=now, at=from_unix(BEGAN + 5 * step), step=step)
                for step in range(first, first + 96)
            ]
        watched = watch(rhythm, pulses, now, attempt=ATTEMPT, allowances=ALLOWED, heard_at=now)
        rhythm = watched.rhythm
        found += watched.findings
    assert found == []


def test_other_work_puts_a_silence_off_but_not_for_ever() -> None:
    life = Life().live([*steps(50, 2.0), *[Told(5, Beat.MOVED) for _ in range(200)]])
    ((at, _),) = life.of(Kind.HANG)
    assert 100 + 3 * 120 - 10 <= at <= 100 + 3 * 120 + 20


def test_a_checkpoint_beside_the_steps_is_over_with_the_next_ones() -> None:
    life = Life().live([*steps(50, 2.0), Told(0.5, Beat.SAVING, step=50)])
    life.live(steps(10, 2.0, first=51), then=400)
    ((_, told),) = life.of(Kind.HANG)
    assert told.fingerprint == "no-progress|phase=steady"


def test_what_was_not_listened_to_is_not_silent() -> None:
    life = Life().live(steps(50, 2.0))
    much_later = from_unix(BEGAN + life.now + 1000)
    assert silence(life.rhythm, ALLOWED, much_later, None) is None
    back = follow(life.rhythm, (), much_later)
    assert silence(back, ALLOWED, much_later, much_later) is None
    again = from_unix(BEGAN + life.now + 1031)
    assert silence(follow(back, (), again), ALLOWED, again, again) is not None


def test_a_suspended_attempt_is_excused_and_its_time_is_not_learned() -> None:
    life = Life().live(steps(50, 2.0))
    resumed = from_unix(BEGAN + life.now + 5_000)
    life.rhythm = excuse(follow(life.rhythm, (), resumed), resumed)
    life.now += 5_000
    life.live(steps(30, 2.0, first=51))
    assert life.found == []
    assert life.rhythm.habits.pauses.plain < 10


def test_a_log_that_never_told_a_step_is_silent_only_when_it_stands_still() -> None:
    chatting = Life().live([Told(60, Beat.SET_UP) for _ in range(100)])
    assert chatting.found == []
    mute = Life().live([], then=1_900)
    assert [one.rule for _, one in mute.found] == ["no-progress"]
    known = Life(earlier=2.0).live([Told(300, Beat.MOVED) for _ in range(30)])
    assert [one.rule for _, one in known.found] == ["no-progress"]


@pytest.mark.parametrize("each", [0.3, 2.0, 20.0])
def test_a_slowdown_is_told_within_ten_minutes_once_and_again_after_it_has_passed(
    each: float,
) -> None:
    count = int(1_800 / each)
    slow = int(900 / each)
    life = Life().live(steps(count, each))
    onset = life.now
    life.live(steps(slow, each * 1.18, first=count + 1))
    ((at, told),) = life.of(Kind.SLOW)
    assert 240 <= at - onset <= 600
    assert told.domain is Domain.UNKNOWN
    assert told.remedy is Remedy.REPORT
    assert told.step is not None
    assert abs(told.step - count) * each < 90
    life.live(steps(count, each, first=count + slow + 1))
    assert len(life.of(Kind.SLOW)) == 1
    life.live(steps(slow, each * 1.4, first=2 * count + slow + 1))
    assert len(life.of(Kind.SLOW)) == 2
    assert life.of(Kind.HANG) == []


def test_a_slowdown_is_told_as_soon_as_policy_wants() -> None:
    brisk = Allowances(floor=seconds(10), slow_for=seconds(30))
    life = Life(allowed=brisk).live(steps(240, 0.21))
    onset = life.now
    life.live(steps(250, 0.42, first=241))
    ((at, told),) = life.found
    assert told.rule == "slowdown"
    assert 30 <= at - onset <= 60


@pytest.mark.parametrize("lasts", [100, 200, 280])
def test_slow_steps_that_pass_before_policy_minds_are_not_told(lasts: float) -> None:
    life = Life().live(steps(900, 2.0))
    slow = int(lasts / 3.6)
    life.live(steps(slow, 3.6, first=901))
    life.live(steps(300, 2.0, first=901 + slow))
    assert life.found == []


def test_a_slowdown_by_waiting_for_data_says_so() -> None:
    life = Life().live(steps(900, 2.0, data_seconds=0.1))
    life.live(steps(400, 2.6, first=901, data_seconds=0.7))
    ((_, told),) = life.of(Kind.SLOW)
    assert told.domain is Domain.STORAGE
    assert "wait for data has risen by" in told.sentence


def test_an_attempt_slower_than_those_before_is_told_from_its_start() -> None:
    life = Life(earlier=2.0).live(steps(400, 2.5))
    ((_, told),) = life.of(Kind.SLOW)
    assert "its earlier attempts" in told.sentence
    assert Life(earlier=2.0).live(steps(400, 2.1)).found == []


def test_slow_steps_that_come_each_so_many_are_no_slowdown() -> None:
    told = [Told(2.0 if number % 50 else 40.0, step=number) for number in range(1, 2_000)]
    assert Life().live(told).of(Kind.SLOW) == []


def losses(values: Iterable[float], scale: float | None = None) -> list[Told]:
    return [Told(2.0, step=number, loss=loss, scale=scale) for number, loss in enumerate(values, 1)]


NAN = float("nan")
NUMERIC = {
    "a loss that is no number for good": ([*[2.0] * 20, NAN, NAN, NAN, NAN], "loss-not-a-number"),
    "infinite losses": ([*[2.0] * 20, *[float("inf")] * 4], "loss-not-a-number"),
    "one bad line": ([*[2.0] * 20, NAN, *[2.0] * 20], None),
    "a jump that stays": (
        [*[2.0 + 0.01 * (n % 7) for n in range(80)], *[9.0] * 10],
        "loss-spike",
    ),
    "a jump that stays, early": (
        [*[2.0 + 0.01 * (n % 7) for n in range(20)], *[9.0] * 10],
        "loss-spike",
    ),
    "a jump of what is nought in single precision": (
        [*[10.0 ** -(n / 5) for n in range(120)], *[1e-24] * 80, *[1e-18] * 20],
        None,
    ),
    "a jump of two lines": (
        [*[2.0 + 0.01 * (n % 7) for n in range(80)], 9.0, 9.0, *[2.0] * 20],
        None,
    ),
    "a fall": ([*[2.0 + 0.01 * (n % 7) for n in range(80)], *[0.1] * 20], None),
    "a slow rise": ([2.0 + 0.02 * n for n in range(300)], None),
}


@pytest.mark.parametrize("name", NUMERIC)
def test_losses_are_judged(name: str) -> None:
    values, rule = NUMERIC[name]
    found = [one for _, one in Life().live(losses(values)).found]
    assert [one.rule for one in found] == ([] if rule is None else [rule])
    if found:
        assert found[0].step == 1 + next(n for n, one in enumerate(values) if not one < 5)
        assert found[0].domain is Domain.APPLICATION


def test_overflows_count_only_at_the_least_loss_scale() -> None:
    settling = [Told(1.0, Beat.SKIPPED, scale=2.0 ** (32 - number)) for number in range(30)]
    assert Life().live([*settling, *steps(20, 1.0)]).found == []
    stuck = [
        one
        for number in range(1, 12)
        for one in (Told(1.0, Beat.SKIPPED, scale=1.0), Told(1.0, step=100 + number))
    ]
    life = Life().live([*steps(20, 1.0), *stuck])
    assert [one.rule for _, one in life.found] == ["loss-scale-floor"]


@settings(max_examples=20, deadline=None)
@given(
    each=st.floats(0.05, 300.0),
    jitter=st.lists(st.floats(1.0, 2.9), min_size=20, max_size=60),
    prints_times=st.booleans(),
)
def test_steps_that_vary_by_less_than_a_factor_of_three_are_never_silent(
    each: float, jitter: list[float], *, prints_times: bool
) -> None:
    told = [Told(each * by, step=number) for number, by in enumerate(jitter, 1)]
    assert Life(prints_times=prints_times).live(told).of(Kind.HANG) == []


ANY_PULSE = st.builds(
    Pulse,
    what=st.sampled_from(list(Beat)),
    heard_at=st.just(from_unix(BEGAN)),
    at=st.none() | st.integers(-(10**15), 4 * 10**15).map(Instant),
    step=st.none() | st.integers(0, 10**15),
    seconds=st.none() | st.floats(),
    data_seconds=st.none() | st.floats(0, 1e6),
    loss=st.none() | st.floats(),
    grad_norm=st.none() | st.floats(),
    scale=st.none() | st.floats(),
    total=st.none() | st.integers(1, 10**6),
)


@settings(max_examples=150, deadline=None)
@given(pulses=st.lists(ANY_PULSE, max_size=40), at=st.integers(0, 40), is_behind=st.booleans())
def test_any_pulses_are_followed_alike_however_they_are_cut(
    pulses: list[Pulse], at: int, *, is_behind: bool
) -> None:
    now = from_unix(BEGAN)
    before = follow(Rhythm(), (), from_unix(BEGAN - 5))
    whole = follow(before, pulses, now, is_behind=is_behind)
    first = follow(before, pulses[:at], now, is_behind=is_behind)
    assert follow(first, pulses[at:], now, is_behind=is_behind) == whole
    stored = msgspec.json.encode(whole)
    assert msgspec.json.decode(stored, type=Rhythm) == whole
    assert len(stored) < 40_000
    watch(whole, (), now, attempt=ATTEMPT, allowances=ALLOWED, heard_at=now)
