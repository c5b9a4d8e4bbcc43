"""What can break in the demo, how fast it plays, and what has to come of it."""

from __future__ import annotations

from enum import StrEnum

from relight.model.instants import Span, seconds
from relight.model.records import Record


class FaultName(StrEnum):
    """The faults that the demo can show."""

    ECC = "ecc"
    MODULE = "module"
    INPLACE = "inplace"
    DEADTASK = "deadtask"


class Expected(StrEnum):
    """What has to come of a fault when relight may act."""

    RECOVERED = "recovered"
    STOPPED = "stopped"
    LEFT_ALONE = "left_alone"


class Fault(Record, frozen=True, kw_only=True):
    """One fault: what a newcomer is told of it, and how the training is started for it.

    ``where`` completes ``--fault KIND:…`` of the training program. ``settle`` is the policy's.
    """

    name: FaultName
    told: str
    expected: Expected
    where: str = ""
    excluded: tuple[str, ...] = ()
    settle: Span = Span(0)
    restarts_in_place: bool = False
    kill_on_bad_exit: bool = True

    def arguments(self, step: int) -> tuple[str, ...]:
        """Return the options of the training program that make it happen at ``step``."""
        place = ",".join(part for part in (self.where, f"step={step}") if part)
        launcher = ("--launcher",) if self.restarts_in_place else ()
        return ("--fault", f"{self.name}:{place}", *launcher)


FAULTS = {
    fault.name: fault
    for fault in (
        Fault(
            name=FaultName.ECC,
            told="the memory of the GPU on node-02 breaks",
            where="node=node-02",
            expected=Expected.RECOVERED,
            excluded=("node-02",),
        ),
        Fault(
            name=FaultName.MODULE,
            told="the training script needs a Python module that is not installed",
            expected=Expected.STOPPED,
        ),
        Fault(
            name=FaultName.INPLACE,
            told="a worker on node-02 dies, and its launcher starts it again in place",
            where="node=node-02",
            expected=Expected.LEFT_ALONE,
            settle=seconds(10),
            restarts_in_place=True,
        ),
        Fault(
            name=FaultName.DEADTASK,
            told="the task on node-02 dies without a word, and the others wait for it for ever",
            where="node=node-02,attempts=1",
            expected=Expected.RECOVERED,
            kill_on_bad_exit=False,
        ),
    )
}


class Pace(Record, frozen=True, kw_only=True):
    """How fast it plays. ``linger`` is how long an end stays to be read, in seconds."""

    steps: int = 60
    step_seconds: float = 0.1
    checkpoint_every: int = 10
    fault_step: int = 26
    linger: float = 3.0
    limit: float = 60.0


USUAL = Pace()
FAST = Pace(step_seconds=0.05, fault_step=13, linger=0.2)
