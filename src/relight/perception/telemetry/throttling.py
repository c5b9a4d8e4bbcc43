"""GPUs that their own hardware slows down, by the reasons and the times that DCGM gives.

The power cap (0x4) and idleness (0x1) are reasons too, and no fault.
"""

from __future__ import annotations

from relight.model.instants import Instant
from relight.perception.telemetry.peers import Peers, listed_peers
from relight.perception.telemetry.rises import rise_of
from relight.perception.telemetry.scenes import FEWEST, Part, Scene, since
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
    masks = {
        part: [(one.at, _reasons(one.value)) for one in since(samples, start)]
        for part, samples in scene.of(THROTTLE_REASONS).items()
        if part in ours
    }
    counts = {part: float(sum(bool(bits) for _, bits in of)) for part, of in masks.items()}
    peers = Peers(scene, THROTTLE_REASONS, counts)
    found: dict[Part, tuple[str, Instant]] = {}
    for part, count in counts.items():
        if count < FEWEST or 2 * count < len(masks[part]) or not peers.are_below(part, 0):
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
        peers = Peers(scene, wanted, {part: share for part, (share, _) in shares.items()})
        for part, (share, at) in shares.items():
            if share >= LEAST_SHARE and peers.are_below(part, share / TIMES):
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
        if part not in ours or len(slow) <= FEWEST:
            continue
        rise = rise_of(slow)
        lasted = (slow[-1].at - slow[0].at) * NANOSECONDS
        shares[part] = (rise.amount / lasted, rise.at) if rise and lasted else (0.0, start)
    return shares


def _reasons(value: float) -> int:
    """Return the bits that tell of trouble."""
    if not 0 <= value < HIGHEST_MASK:
        return 0
    return int(value) & sum(REASONS)
