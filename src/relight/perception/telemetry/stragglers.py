"""Who is slower than its peers: one GPU or node that stands apart while the job runs slowly.

Each is compared with the same job's other nodes over the slow stretch, and with itself before it:
what was so before cannot explain a change. What all share is nobody's fault and is not told.
Where a run was slow from its first step on nothing can have changed, and only a GPU that its own
hardware says to be slowed is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from relight.model.findings import Domain, Finding, Kind
from relight.model.instants import Instant
from relight.model.telemetry import Sample
from relight.perception.telemetry.erring import far_more
from relight.perception.telemetry.peers import Peers, listed_peers
from relight.perception.telemetry.scenes import FEWEST, Part, Scene, earlier, level, since
from relight.perception.telemetry.sharing import Signs, is_shared, of_nodes
from relight.perception.telemetry.telling import Trouble
from relight.perception.telemetry.throttling import throttled
from relight.perception.telemetry.wanted import (
    LINK_ERRORS,
    NVLINK_ERRORS,
    PCIE_LINK,
    PCIE_REPLAYS,
    POWER,
    SM_CLOCK,
    TEMPERATURE,
    UTILISATION,
    Wanted,
)
from relight.rules.metrics.wording import number

LOW = 0.9
"""Share of its peers' clock at which a GPU is slow: a tenth less is worth moving a job for."""
SLOWER = 0.95
"""Share of its peers' clock at which heat is seen to cost something."""
LITTLE_POWER = 0.75
"""Share of its peers' power at the same utilisation: GPUs of one kind differ by some percent."""
HOT = 15.0
"""Degrees above its peers: racks and places in a chassis differ by less."""
NARROW = 0.75
"""Links get narrower and slower by halves."""
AT_WORK = 30.0
"""Percent of utilisation below which a GPU's clock and power say nothing: it rests."""
ALIKE = 10.0
"""Percent points of utilisation within which two GPUs have the same to do."""


def stragglers(scene: Scene) -> list[Finding]:
    """Return who stands apart in the slow stretch, none where nobody asked about one."""
    start = scene.window.slow_since
    if start is None:
        return []
    slow = _Stretch(scene, start)
    found: list[Finding] = []
    for rule, signs in (
        ("gpu-throttled", throttled(scene, start)),
        ("gpu-clock-low", slow.low_clocks()),
        ("gpu-hot", slow.hot()),
        ("gpu-power-low", slow.low_power()),
        ("pcie-narrow", slow.narrow()),
        ("link-errors-rising", slow.errors()),
    ):
        nodes = {node for node, _ in signs}
        if signs and not is_shared(scene, len(nodes)):
            one, several = _SAYS[rule]
            found += of_nodes(scene, _slow(rule), one, signs, plural=several, again=start)
    return found


_SAYS = {
    "gpu-throttled": ("runs throttled by its hardware", "run throttled by their hardware"),
    "gpu-clock-low": (
        "runs at a lower clock than its peers",
        "run at a lower clock than their peers",
    ),
    "gpu-hot": ("is hotter than its peers, and slower", "are hotter than their peers, and slower"),
    "gpu-power-low": ("draws less power than its peers", "draw less power than their peers"),
    "pcie-narrow": (
        "has a narrower PCIe link than its peers",
        "have a narrower PCIe link than their peers",
    ),
    "link-errors-rising": ("has a link with rising errors", "have links with rising errors"),
}
"""What each rule says of one GPU or node, and of several."""


def _slow(rule: str) -> Trouble:
    return Trouble(
        rule=rule,
        family="straggler_slow_rank",
        kind=Kind.SLOW,
        domain=Domain.HARDWARE,
    )


@dataclass(frozen=True, slots=True)
class _Meter:
    """One series over the slow stretch: the samples and the median of each device.

    ``earlier`` are the medians before it, of GPUs that were at work then.
    """

    wanted: Wanted
    samples: Mapping[Part, Sequence[Sample]]
    levels: Mapping[Part, float]
    earlier: Mapping[Part, float]


class _Stretch:
    """The samples of the slow stretch, and who differs from its peers in them."""

    def __init__(self, scene: Scene, start: Instant) -> None:
        self._scene = scene
        self._start = start
        self._middles: dict[tuple[str, str, str], float] = {}
        usual = self._before(UTILISATION)
        self._worked = {part for part, busy in usual.items() if busy >= AT_WORK}
        self._busy = self._meter(UTILISATION)
        self._clock = self._meter(SM_CLOCK)

    def low_clocks(self) -> Signs:
        """Return the GPUs whose SM clock is clearly below that of their peers."""
        return self._below(self._clock, LOW, "SM clock", " MHz", self._works)

    def low_power(self) -> Signs:
        """Return the GPUs that draw clearly less at the same utilisation and clock."""
        slow = self.low_clocks()
        busy = self._busy.levels
        peers = Peers(self._scene, UTILISATION, busy)

        def may_be(part: Part) -> bool:
            if part in slow or busy.get(part, 0.0) < AT_WORK:
                return False
            least, most = busy[part] - ALIKE, busy[part] + ALIKE
            return peers.are_above(part, least) and peers.are_below(part, most)

        return self._below(self._meter(POWER), LITTLE_POWER, "power", " W", may_be)

    def hot(self) -> Signs:
        """Return the GPUs that are hotter than their peers and run at a lower clock."""
        slow = self._below(self._clock, SLOWER, "SM clock", " MHz", self._works)
        meter = self._meter(TEMPERATURE)
        peers = Peers(self._scene, TEMPERATURE, meter.levels)
        return {
            part: self._told(meter, part, peers, "temperature", " °C")
            for part, heat in meter.levels.items()
            if part in slow
            and peers.are_below(part, heat - HOT)
            and peers.is_off(part)
            and heat - peers.middle(part) >= self._warmer_before(meter, part) + HOT / 2
        }

    def narrow(self) -> Signs:
        """Return the GPUs whose PCIe link is narrower or of an older generation."""
        found: dict[Part, tuple[str, Instant]] = {}
        for wanted, name in zip(PCIE_LINK, ("PCIe link width", "PCIe generation"), strict=True):
            meter = self._meter(wanted)
            found = {**self._below(meter, NARROW, name, "", self._works), **found}
        return found

    def errors(self) -> Signs:
        """Return the links whose errors rise scrape by scrape, unlike those of their peers."""
        found: dict[Part, tuple[str, Instant]] = {}
        for wanted in (*LINK_ERRORS, *NVLINK_ERRORS, PCIE_REPLAYS):
            found = {**far_more(self._scene, wanted, self._start), **found}
        return found

    def _works(self, part: Part) -> bool:
        """Tell whether a GPU is known to have work."""
        return self._busy.levels.get(part, 0.0) >= AT_WORK

    def _below(
        self, meter: _Meter, share: float, name: str, unit: str, may_be: Callable[[Part], bool]
    ) -> Signs:
        """Return who has ``share`` of its peers' level at most, in three scrapes at least."""
        found: dict[Part, tuple[str, Instant]] = {}
        for levels in self._by_model(meter.levels):
            peers = Peers(self._scene, meter.wanted, levels)
            for part, own in levels.items():
                if own <= 0 or not peers.are_above(part, own / share) or not may_be(part):
                    continue
                if not self._fell(meter, part, own / peers.middle(part), share):
                    continue
                bound = share * peers.middle(part)
                lasting = sum(one.value <= bound for one in meter.samples[part])
                if lasting >= FEWEST and peers.is_off(part):
                    found[part] = self._told(meter, part, peers, name, unit)
        return found

    def _fell(self, meter: _Meter, part: Part, now: float, share: float) -> bool:
        """Tell whether a level fell to ``share`` of what it was, each beside that of its peers."""
        own, others = meter.earlier.get(part), self._others_before(meter, part)
        return own is not None and others > 0 and now <= share * own / others

    def _warmer_before(self, meter: _Meter, part: Part) -> float:
        """Return by how much a GPU was warmer than its peers, 0 where that is not known."""
        own = meter.earlier.get(part)
        return 0.0 if own is None else max(0.0, own - self._others_before(meter, part))

    def _others_before(self, meter: _Meter, part: Part) -> float:
        """Return the median of the earlier levels of its peers, 0 where none is known."""
        node, model = part[0], self._model(part)
        key = (meter.wanted.name, node, model)
        if key not in self._middles:
            alike = {one: of for one, of in meter.earlier.items() if self._model(one) == model}
            elsewhere = [of for one, of in alike.items() if one[0] != node]
            beside = [of for one, of in alike.items() if one != part]
            if not elsewhere:
                return median(beside or [0.0])
            self._middles[key] = median(elsewhere)
        return self._middles[key]

    def _told(
        self, meter: _Meter, part: Part, peers: Peers, name: str, unit: str
    ) -> tuple[str, Instant]:
        own, middle = meter.levels[part], peers.middle(part)
        words = (
            f"{name} {number(own)}{unit}, median of {listed_peers(len(peers.of(part)))} "
            f"{number(middle)}{unit}, over {len(meter.samples[part])} scrapes"
        )
        return words, meter.samples[part][0].at

    def _by_model(self, levels: Mapping[Part, float]) -> list[dict[Part, float]]:
        """Return the levels of the GPUs of each model apart, as far as the exporter names it."""
        models: dict[str, dict[Part, float]] = {}
        for part, value in levels.items():
            models.setdefault(self._model(part), {})[part] = value
        return [models[model] for model in sorted(models)]

    def _model(self, part: Part) -> str:
        return self._scene.labels.get(part, {}).get("modelName", "")

    def _meter(self, wanted: Wanted) -> _Meter:
        ours = set(self._scene.gpus)
        samples = {
            part: slow
            for part, every in self._scene.of(wanted).items()
            if part in ours and len(slow := since(every, self._start)) >= FEWEST
        }
        levels = {part: median(one.value for one in of) for part, of in samples.items()}
        worked = {part: of for part, of in self._before(wanted).items() if part in self._worked}
        return _Meter(wanted, samples, levels, worked)

    def _before(self, wanted: Wanted) -> dict[Part, float]:
        """Return the level of each device in this attempt before the slow stretch."""
        found = {
            part: level(earlier(self._scene, every, self._start))
            for part, every in self._scene.of(wanted).items()
        }
        return {part: usual for part, usual in found.items() if usual is not None}
