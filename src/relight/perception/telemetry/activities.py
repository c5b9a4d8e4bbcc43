"""What a GPU does while its job completes no step: works, waits for others, or nothing.

A kernel of NCCL that waits for an absent rank keeps its GPU 100 % utilised, with its tensor
cores still, next to no traffic, and less power than training draws. So utilisation alone says
little, and each GPU is measured by its own level from before the silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import median

from relight.model.instants import Instant, seconds
from relight.model.records import Record
from relight.model.telemetry import Sample
from relight.perception.telemetry.scenes import FEWEST, Part, Scene, before, level, since
from relight.perception.telemetry.wanted import DRAM, POWER, TENSOR, TRAFFIC, UTILISATION
from relight.rules.metrics.wording import number

LONGEST_LOOK = seconds(60)
"""How much of the end of a silence is looked at."""
LEVEL_OF = 20
"""Scrapes just before the silence of which the usual level is the median."""
IDLE = 5.0
"""Percent of utilisation up to which a GPU is idle: its display and its driver's own work."""
BUSY = 80.0
"""Percent of utilisation from which a GPU is busy; a waiting NCCL kernel shows 100."""
USES_TENSOR_CORES = 0.02
"""Share of tensor activity from which a job is known to use tensor cores at all."""
WORKS_FROM = 0.2
"""Share of its own level of tensor activity from which a GPU works: a pause halves it at most."""
STILL_BELOW = 0.05
"""Share of its own level of tensor activity below which its tensor cores are still."""
MEMORY_WORKS = 0.1
"""Share of the time that memory is active from which a GPU works, whatever its tensor cores do:
generation and evaluation read weights most of the time, a waiting kernel next to nothing."""
MEMORY_RESTS = 0.05
"""Share up to which memory may be active in a GPU that only waits."""
WAITING_POWER = 0.75
"""Share of its own power below which a GPU waits; waiting ones are often seen at 30 to 50 %."""
WORKING_POWER = 0.9
LITTLE_TRAFFIC = 0.1
MUCH_TRAFFIC = 0.5


class Activity(StrEnum):
    """What a GPU was seen to do; ``busy`` is utilised, and it is not known with what."""

    WORKING = "working"
    SPINNING = "spinning"
    BUSY = "busy"
    IDLE = "idle"
    UNKNOWN = "unknown"


class Look(Record, frozen=True, kw_only=True):
    """One GPU in the silence: what it did, from when, and the samples in words.

    ``was_used`` tells whether it was busy before, None where that is not known. ``is_metered``
    says that more was seen of it than its utilisation, ``is_moving`` that what it does varied:
    an exporter that hangs may go on to tell its last values.
    """

    activity: Activity
    words: str = ""
    at: Instant = Instant(0)
    was_used: bool | None = None
    is_metered: bool = False
    is_moving: bool = False


def looks(scene: Scene) -> dict[Part, Look]:
    """Return what each GPU of the job does in its silence, nothing where nobody asked about one."""
    silent_since = scene.window.silent_since
    if silent_since is None:
        return {}
    meters = _Meters(scene, silent_since)
    return {part: _look(meters, part) for part in scene.gpus}


class _Meters:
    """The series that tell of activity, cut at the start of the silence."""

    def __init__(self, scene: Scene, silent_since: Instant) -> None:
        self.utilisation = _in_percent(scene)
        self.tensor = scene.of(TENSOR)
        self.dram = scene.of(DRAM)
        self.power = scene.of(POWER)
        self.traffic = [scene.of(one) for one in TRAFFIC]
        self.scene = scene
        self.silent_since = silent_since
        half = (scene.window.until - silent_since) // 2
        self.start = Instant(scene.window.until - min(LONGEST_LOOK, max(half, 0)))

    def late(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        """Return the newest samples of the silence, three at least; none if they are too old."""
        silent = since(samples, self.silent_since)
        if len(silent) < FEWEST or silent[-1].at < self.scene.latest - FEWEST * self.scene.interval:
            return ()
        late = since(silent, self.start)
        return late if len(late) >= FEWEST else silent[-FEWEST:]

    def usual(self, samples: Sequence[Sample]) -> float | None:
        """Return the level just before the silence, None where too little is known of it."""
        return level(before(samples, self.silent_since)[-LEVEL_OF:])

    def was_used(self, samples: Sequence[Sample]) -> bool | None:
        """Return whether a GPU of this utilisation was busy before the silence."""
        earlier = before(samples, self.silent_since)
        if len(earlier) < FEWEST:
            return None
        return sum(sample.value > IDLE for sample in earlier) >= FEWEST

    def share(self, meter: Mapping[Part, Sequence[Sample]], part: Part) -> float | None:
        """Return the level in the silence as a share of the level before, None if not known."""
        samples = meter.get(part, ())
        usual, now = self.usual(samples), level(self.late(samples))
        return None if usual is None or now is None or usual <= 0 else now / usual

    def traffic_share(self, part: Part) -> float | None:
        """Return the traffic in the silence as a share of the traffic before."""
        shares = [self.share(meter, part) for meter in self.traffic]
        known = [share for share in shares if share is not None]
        return max(known) if known else None


def _in_percent(scene: Scene) -> dict[Part, Sequence[Sample]]:
    """Return utilisation from 0 to 100, from whichever series has it."""
    found: dict[Part, Sequence[Sample]] = dict(scene.by_name.get(UTILISATION.name, {}))
    for name in UTILISATION.others:
        for part, samples in scene.by_name.get(name, {}).items():
            if part not in found:
                found[part] = [Sample(at=sample.at, value=sample.value * 100) for sample in samples]
    return found


def _look(meters: _Meters, part: Part) -> Look:
    samples = meters.utilisation.get(part, ())
    late = meters.late(samples)
    was_used = meters.was_used(samples)
    if not late:
        return Look(activity=Activity.UNKNOWN, was_used=was_used)
    more = (meters.tensor, meters.power, meters.dram, *meters.traffic)
    return Look(
        activity=_activity(meters, part, [sample.value for sample in late]),
        words=_words(meters, part, late),
        at=late[0].at,
        was_used=was_used,
        is_metered=any(meters.late(meter.get(part, ())) for meter in more),
        is_moving=any(
            len({sample.value for sample in meters.late(meter.get(part, ()))}) > 1 for meter in more
        ),
    )


def _activity(meters: _Meters, part: Part, utilisation: Sequence[float]) -> Activity:
    if max(utilisation) <= IDLE:
        return Activity.IDLE
    tensor = _tensor(meters, part)
    memory = level(meters.late(meters.dram.get(part, ())))
    if tensor is Activity.WORKING or (memory is not None and memory >= MEMORY_WORKS):
        return Activity.WORKING
    if min(utilisation) < BUSY:
        return Activity.UNKNOWN
    if memory is not None and memory > MEMORY_RESTS:
        return Activity.BUSY
    power, traffic = meters.share(meters.power, part), meters.traffic_share(part)
    if traffic is not None and traffic >= MUCH_TRAFFIC:
        return Activity.BUSY
    if power is not None and power >= WORKING_POWER:
        dram = meters.share(meters.dram, part)
        works = tensor is Activity.UNKNOWN and dram is not None and dram >= WORKING_POWER
        return Activity.WORKING if works else Activity.BUSY
    is_still = tensor is Activity.SPINNING or (
        tensor is Activity.UNKNOWN and power is not None and power <= WAITING_POWER
    )
    return Activity.SPINNING if is_still else Activity.BUSY


def _tensor(meters: _Meters, part: Part) -> Activity:
    """Return what the tensor cores alone say; unknown where the job makes no use of them."""
    samples = meters.tensor.get(part, ())
    late = meters.late(samples)
    if not late:
        return Activity.UNKNOWN
    now = median(sample.value for sample in late)
    usual = meters.usual(samples)
    if usual is None:
        if now >= USES_TENSOR_CORES:
            return Activity.WORKING
        return Activity.SPINNING if now <= USES_TENSOR_CORES * STILL_BELOW else Activity.UNKNOWN
    if usual < USES_TENSOR_CORES:
        return Activity.WORKING if now >= USES_TENSOR_CORES else Activity.UNKNOWN
    if now >= WORKS_FROM * usual:
        return Activity.WORKING
    return Activity.SPINNING if now < STILL_BELOW * usual else Activity.BUSY


def _words(meters: _Meters, part: Part, late: Sequence[Sample]) -> str:
    values = [sample.value for sample in late]
    said = [f"utilisation {number(min(values))} to {number(max(values))} %"]
    for name, meter, unit in (
        ("tensor active", meters.tensor, ""),
        ("DRAM active", meters.dram, ""),
        ("power", meters.power, " W"),
    ):
        samples = meter.get(part, ())
        now, usual = level(meters.late(samples)), meters.usual(samples)
        if now is not None:
            was = "" if usual is None else f" (before: {number(usual)}{unit})"
            said.append(f"{name} {number(now)}{unit}{was}")
    share = meters.traffic_share(part)
    if share is not None:
        said.append(f"traffic {min(share, 9.99):.0%} of before")
    return f"{', '.join(said)} over {len(late)} scrapes"
