"""All that a sight of an attempt's nodes says: one pure function from samples to findings."""

from __future__ import annotations

from relight.model.evidence import Window
from relight.model.findings import Finding
from relight.model.telemetry import Sight
from relight.perception.telemetry.activities import looks
from relight.perception.telemetry.hangs import hangs
from relight.perception.telemetry.health import health
from relight.perception.telemetry.scenes import lay_out
from relight.perception.telemetry.storage import storage
from relight.perception.telemetry.stragglers import stragglers
from relight.perception.telemetry.vanishings import gpus_gone, nodes_gone
from relight.perception.telemetry.xid_events import xids


def judge(sight: Sight, window: Window) -> tuple[Finding, ...]:
    """Return what the metrics of the attempt's nodes tell about the trouble in ``window``.

    Patterns of a hang are looked for where ``silent_since`` is set, stragglers where
    ``slow_since`` is, node health always. A series that is missing makes nothing well and
    nobody guilty. ``seen_at`` of each finding is the end of the window; ids stay the same
    however often the same trouble is asked about.
    """
    if sight.unseen or not sight.series:
        return ()
    scene = lay_out(sight, window)
    every = looks(scene)
    return (
        *nodes_gone(scene, every),
        *hangs(scene, every),
        *xids(scene),
        *gpus_gone(scene),
        *health(scene),
        *stragglers(scene),
        *storage(scene),
    )
