"""GPUs that their own hardware slows down, by the reasons and the times that DCGM gives.

The power cap (0x4) and idleness (0x1) are reasons too, and no fault. Who was slowed as much before
the slow stretch does not explain it; where the attempt has no time before it, the reasons alone
tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.instants import Instant
from relight.model.telemetry import Sample
from relight.perception.telemetry.peers import Peers, listed_peers
from relight.perception.telemetry.rises import rise_of
from relight.perception.telemetry.scenes import FEWEST, Part, Scene, earlier, since
from relight.perception.telemetry.sharing import Signs
from relight.perception.telemetry.wanted import THROTTLE_REASONS, VIOLATIONS, Wanted

REASONS = {
    0x8: "hardware slowdown",
    0x20: "driver's thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Bits of the reasons for a low clock that tell of trouble, as NVML names them."""
HIGHEST_MASK = 2**53
"""Above it a float is no exact whole number, and a mask cannot be read from it."""
LEAST_SHARE = 0.05
"""Share of the time throttled from which it slows a step noticeably."""
TIMES = 5
NANOSECONDS = 1_000
"""Of a microsecond. Violations are counted in nanoseconds; older drivers count microseconds,
and then a thousandth of the share is seen, which tells of nothing."""


def throttled(scene: Scene, start: Instant) -> Signs:
    """Return the GPUs that were throttled since ``start``, unlike most of their peers."""
    return {**_by_time(scene, start), **_by_reason(scene, start)}


def _by_reason(scene: Scene, start: Instant) -> Signs:
    ours = set(scene.gpus)
    samples = {part: of for part, of in scene.of(THROTTLE_REASONS).items() if part in ours}
    masks = {
        part: [(one.at, _reasons(one.value)) for one in since(of, start)]
        for part, of in samples.items()
    }
    counts = {part: float(sum(bool(bits) for _, bits in of)) for part, of in masks.items()}
    peers = Peers(scene, THROTTLE_REASONS, counts)
    found: dict[Part, tuple[str, Instant]] = {}
    for part, count in counts.items():
        if count < FEWEST or 2 * count < len(masks[part]) or not peers.are_below(part, 0):
            continue
        old = earlier(scene, samples[part], start)
        if len(old) >= FEWEST and 2 * sum(bool(_reasons(one.value)) for one in old) >= len(old):
            continue
        every = 0
        for _, bits in masks[part]:
            every |= bits
        names = ", ".join(name for bit, name in REASONS.items() if every & bit)
        words = f"{names} in {count:.0f} of {len(masks[part])} scrapes"
        found[part] = (words, next(at for at, bits in masks[part] if bits))
    return found


def _by_time(scene: Scene, start: Instant) -> Signs:
    found: dict[Part, tuple[str, Instant]] = {}
    for wanted in VIOLATIONS:
        shares = _shares(scene, wanted, start)
        usual = _usual_shares(scene, wanted, start)
        peers = Peers(scene, wanted, {part: share for part, (share, _) in shares.items()})
        for part, (share, at) in shares.items():
            is_new = part in usual and 2 * usual[part] <= share
            if is_new and share >= LEAST_SHARE and peers.are_below(part, share / TIMES):
                others = listed_peers(len(peers.of(part)))
                words = f"{wanted.name}: {min(share, 1):.0%} of the time, {others} far less"
                found.setdefault(part, (words, at))
    return found


def _shares(scene: Scene, wanted: Wanted, start: Instant) -> dict[Part, tuple[float, Instant]]:
    """Return the share of the time in which each GPU was throttled, and since when."""
    ours = set(scene.gpus)
    shares: dict[Part, tuple[float, Instant]] = {}
    for part, samples in scene.of(wanted).items():
        slow = since(samples, start)
        if part in ours and len(slow) > FEWEST:
            rise = rise_of(slow)
            shares[part] = (_share(slow), rise.at if rise else start)
    return shares


def _usual_shares(scene: Scene, wanted: Wanted, start: Instant) -> dict[Part, float]:
    """Return the share of the time before in which each was, where that is known."""
    known = {part: earlier(scene, of, start) for part, of in scene.of(wanted).items()}
    return {part: _share(of) for part, of in known.items() if len(of) >= FEWEST}


def _share(samples: Sequence[Sample]) -> float:
    rise = rise_of(samples)
    lasted = (samples[-1].at - samples[0].at) * NANOSECONDS
    return rise.amount / lasted if rise and lasted else 0.0


def _reasons(value: float) -> int:
    """Return the bits that tell of trouble."""
    if not 0 <= value < HIGHEST_MASK:
        return 0
    return int(value) & sum(REASONS)
