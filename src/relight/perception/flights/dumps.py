"""One rank's dump: its groups, how far each has come, and its newest calls.

Source of the names and of what they mean: ``torch/csrc/distributed/c10d/FlightRecorder*.hpp`` of
PyTorch 2.4 to 2.9 (format 2.0 to 2.10), written as a pickle when the watchdog fires and as JSON on
request. Whatever is missing or of another type is left out; unknown names are passed over.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from relight.model.records import Record


class State(StrEnum):
    """How far a call had come.

    ``scheduled`` tells only where the recorder times its calls (``TORCH_NCCL_ENABLE_TIMING``):
    without, a call stays scheduled until it is completed.
    """

    SCHEDULED = "scheduled"
    STARTED = "started"
    COMPLETED = "completed"


class Standing(Record, frozen=True, kw_only=True):
    """The last sequence that a rank enqueued, started and completed in a group.

    -1 stands for none yet, None where it is not told.
    """

    enqueued: int | None = None
    started: int | None = None
    completed: int | None = None


class Group(Record, frozen=True, kw_only=True):
    """A process group as one rank knows it; ``ranks`` are its members, global."""

    name: str
    about: str = ""
    ranks: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return its description, else its name."""
        return self.about if self.about not in ("", "undefined") else self.name


class Call(Record, frozen=True, kw_only=True):
    """One call of a collective, or of a send or receive, as the recorder keeps it.

    ``sequence`` counts a group's collectives, or its sends and receives where ``source`` and
    ``target`` are set: these are places in the group, not global ranks. ``sizes`` and ``types``
    are those of inputs and outputs. ``frame`` is the innermost line of the user's own code,
    ``phase`` what its functions' names say was going on.
    """

    group: str
    sequence: int
    name: str
    state: State
    record: int
    created_ns: int = 0
    sizes: str = ""
    outputs: str = ""
    types: str = ""
    source: int | None = None
    target: int | None = None
    frame: str = ""
    phase: str = ""

    @property
    def is_pair(self) -> bool:
        """Return whether it is a send or a receive."""
        return self.source is not None


class Dump(Record, frozen=True, kw_only=True):
    """What one rank had recorded.

    ``groups`` and ``standings`` are by the group's name; a standing whose group is not known is
    left out. ``calls`` are the newest and all that are not completed, oldest first, bounded.
    ``reach`` tells for each group the highest sequence of any collective in the recorder.
    ``first_record`` is the number of the oldest entry: above 0, older ones were overwritten.
    """

    rank: int
    file: str = ""
    version: str = ""
    groups: dict[str, Group] = msgspec.field(default_factory=dict)
    standings: dict[str, Standing] = msgspec.field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    reach: dict[str, int] = msgspec.field(default_factory=dict)
    first_record: int = 0
    entries: int = 0
    is_timed: bool = False
    newest_ns: int = 0
    """When the newest call was made, in nanoseconds since 1970; 0 if that is not known."""


class Refused(Record, frozen=True, kw_only=True):
    """A dump that was not read, and why; ``is_cut`` says that it may still be being written."""

    rank: int
    file: str = ""
    why: str
    is_cut: bool = False
