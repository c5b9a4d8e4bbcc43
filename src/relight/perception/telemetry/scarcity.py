"""Too little to tell what GPUs do: the silence is too short for it, or their series stopped.

Neither is a sign of anything (law 1), and whoever reads "not known" must see why.
"""

from __future__ import annotations

from relight.model.evidence import Window
from relight.model.instants import in_seconds, to_iso
from relight.model.telemetry import Sample, Sight
from relight.perception.telemetry.scenes import FEWEST, Scene, is_of_gpu, lay_out, since


def scarcity(sight: Sight, window: Window) -> tuple[str, ...]:
    """Return in sentences why metrics tell too little of the GPUs of a job that stands still.

    Nothing where nobody asked about a silence, and where no series of a GPU is seen at all:
    that is told with the names of what is missing.
    """
    if window.silent_since is None or sight.unseen:
        return ()
    scene = lay_out(sight, window)
    newest = [samples[-1].at for samples in _of_gpus(scene)]
    if not newest:
        return ()
    if max(newest) < window.until - FEWEST * scene.interval:
        told = (
            f"The series of all GPUs stopped at {to_iso(max(newest))[:19]}Z: what the GPUs have "
            "done since is not known. See whether their exporter still answers."
        )
        return (told,)
    scrapes = max(len(since(samples, window.silent_since)) for samples in _of_gpus(scene))
    if scrapes >= FEWEST:
        return ()
    told = (
        f"Only {scrapes} {'scrape lies' if scrapes == 1 else 'scrapes lie'} in the silence yet, "
        f"and {FEWEST} are needed to tell what the GPUs do in it: they are read every "
        f"{in_seconds(scene.interval):g} s."
    )
    return (told,)


def _of_gpus(scene: Scene) -> list[list[Sample]]:
    """Return the samples of each series of a GPU of the job."""
    own = frozenset(scene.gpus)
    return [
        list(samples)
        for metric, parts in scene.by_name.items()
        for part, samples in parts.items()
        if part in own and is_of_gpu(metric)
    ]
