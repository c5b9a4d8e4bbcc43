"""Makes pulses of what the lines of an attempt's files tell, in the order they are heard in."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType

import msgspec

from relight.model.findings import Place
from relight.model.instants import Instant
from relight.model.pulses import Beat, Pulse
from relight.model.records import Record
from relight.perception.progress.readings import Moved
from relight.perception.progress.tallies import Counted
from relight.perception.rhythm.figures import Figures, figures_in, scale_in
from relight.perception.shapes.entries import Says

MOST_PULSES = 4_096
"""Pulses kept of one round of listening, to be looked at; all are followed."""
MOST_COUNTERS = 40
_SHOWN = 300

BEATS: Mapping[Says, Beat] = MappingProxyType(
    {
        Says.SAVED: Beat.SAVED,
        Says.STAGED: Beat.SAVED,
        Says.SAVING: Beat.SAVING,
        Says.BEGUN: Beat.SAVING,
        Says.SAVES: Beat.SAVING,
        Says.RESUMED: Beat.RESUMED,
        Says.FRESH: Beat.SET_UP,
        Says.LAUNCHED: Beat.SET_UP,
        Says.SET_UP: Beat.SET_UP,
        Says.MILESTONE: Beat.SET_UP,
        Says.EVALUATING: Beat.EVALUATING,
        Says.EVALUATED: Beat.EVALUATED,
        Says.SKIPPED: Beat.SKIPPED,
        Says.FINISHED: Beat.FINISHED,
    }
)
"""What the shapes of lines mean for the rhythm; the other shapes mean nothing for it."""


class BeatsState(Record, frozen=True, kw_only=True):
    """What is remembered between readings: which counter is believed, and where others stand."""

    believed: str = ""
    others: dict[str, int] = msgspec.field(default_factory=dict)
    moved_at: Instant | None = None
    """When another counter was last heard to move, None after a step."""


class Beats:
    """Collects the pulses of one round of listening."""

    def __init__(self, state: BeatsState, now: Instant) -> None:
        self._now = now
        self._believed = state.believed
        self._others = dict(state.others)
        self._moved_at = state.moved_at
        self.pulses: list[Pulse] = []

    def frozen(self) -> BeatsState:
        """Return the state to go on from."""
        return BeatsState(believed=self._believed, others=self._others, moved_at=self._moved_at)

    def said(
        self,
        says: AbstractSet[Says],
        line: str,
        at: Instant | None,
        named: int | None,
        last: int | None,
    ) -> None:
        """Take in a line that tells something else than a step, perhaps in two ways.

        ``named`` is the step that it names, ``last`` the one that was completed last.
        """
        if Says.NAN in says:
            self.beside(figures_in(line), line, at, last)
        told = dict.fromkeys(beat for one, beat in BEATS.items() if one in says)
        for beat in told:
            self.pulses.append(
                Pulse(
                    what=beat,
                    heard_at=self._now,
                    at=at,
                    step=last if named is None else named,
                    scale=scale_in(line) if beat is Beat.SKIPPED else None,
                    text=line[:_SHOWN],
                )
            )

    def counted(self, counted: Counted, line: str, at: Instant | None, place: Place) -> None:
        """Take in that a counter has moved: the believed one's steps are pulses of a step."""
        if not counted.is_believed:
            self._other(counted.key, counted.step, at)
            return
        if self._believed != counted.key:
            if self._believed:
                # Another counter is believed now: no difference to the old one means anything.
                self.pulses.append(Pulse(what=Beat.SET_UP, heard_at=self._now, at=at))
            self._believed = counted.key
        self._moved_at = None
        figures = figures_in(line)
        self.pulses.append(
            Pulse(
                what=Beat.STEP,
                heard_at=self._now,
                at=at,
                step=counted.step,
                seconds=counted.seconds,
                data_seconds=figures.data_seconds,
                loss=figures.loss,
                grad_norm=figures.grad_norm,
                scale=figures.scale,
                total=counted.total or None,
                epoch=counted.epoch,
                place=place,
                text=line[:_SHOWN],
            )
        )

    def beside(self, figures: Figures, line: str, at: Instant | None, step: int | None) -> None:
        """Take in numbers on a line of their own: they are those of the last step."""
        if step is None or figures == Figures():
            return
        self.pulses.append(
            Pulse(
                what=Beat.STEP,
                heard_at=self._now,
                at=at,
                step=step,
                data_seconds=figures.data_seconds,
                loss=figures.loss,
                grad_norm=figures.grad_norm,
                text=line[:_SHOWN],
            )
        )

    @property
    def wants_others(self) -> bool:
        """Return whether it is worth reading where another counter stands.

        Between two steps, once at each moment of hearing is enough.
        """
        return self._moved_at != self._now

    def moved(self, moved: Moved, at: Instant | None) -> None:
        """Take in where a bar stands that does not count steps."""
        if moved.is_evaluation and moved.at != self._others.get(moved.key):
            self.pulses.append(Pulse(what=Beat.EVALUATING, heard_at=self._now, at=at))
        self._other(moved.key, moved.at, at)

    def _other(self, key: str, count: int, at: Instant | None) -> None:
        old = self._others.get(key)
        if old == count or (old is None and len(self._others) >= MOST_COUNTERS):
            return
        self._others[key] = count
        if self._moved_at != self._now:
            self._moved_at = self._now
            self.pulses.append(Pulse(what=Beat.MOVED, heard_at=self._now, at=at))
