"""The witness who tells what the ranks of a job recorded of their collectives.

What an earlier attempt wrote lies there until it is written over, so a dump counts only when a
call of this attempt stands in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from relight.model.evidence import Evidence, Window
from relight.model.instants import Instant, seconds
from relight.model.jobs import Allocation
from relight.model.seen import Seen, Unseen
from relight.model.signals import Mark
from relight.perception.flights.accusing import NO_DUMP
from relight.perception.flights.dumps import Dump
from relight.perception.flights.judging import judge, refusals
from relight.perception.flights.mismatches import listed
from relight.perception.flights.pickles import MOST_BYTES
from relight.sources.flight_files import gather
from relight.sources.owner_readers import OwnerReaders
from relight.sources.reader import MOST_BYTES as PIECE

LONGEST_LOOK = 12.0
"""Seconds: a decision waits 15 s for a witness (``policy.NAME.evidence``), 3 are for the rest."""
LONGEST_WAIT = seconds(3_600)
"""How long before the trouble the last call of a dump may lie, where the start is not known.

A rank dumps when the watchdog's time-out has passed: 10 minutes by default, rarely an hour.
"""
CLOCKS = seconds(5)
"""By how much the clocks of a node and the scheduler may differ."""
LONGEST_STEP = seconds(300)
"""How long before the line of a step its last call may lie: long steps end with much else."""


_NS_IN_US = 1_000


@dataclass(slots=True)
class FlightDumps:
    """The witness who tells what the ranks of a job recorded; safe for several threads.

    ``monotonic`` is a clock in seconds that only runs forward, ``now`` the real one.
    """

    readers: OwnerReaders
    now: Callable[[], Instant]
    monotonic: Callable[[], float] = time.monotonic

    def look(self, window: Window) -> Evidence:
        """Return what the dumps of one attempt tell; what could not be read is said.

        Dumps that no call of this attempt stands in count for nothing: they are an earlier one's.
        A dump that is half-written is left for the next look.
        """
        path = path_of(window)
        if not path.startswith("/"):
            return Evidence(unseen=f"{path or 'the flight recorder'} is no absolute path")
        deadline = self.monotonic() + LONGEST_LOOK

        def may_go_on() -> bool:
            return self.monotonic() < deadline

        files = _OfOwner(self.readers, window.uid, may_go_on)
        gathered = gather(path, files, may_go_on, is_hurried=True)
        if gathered.unseen:
            return Evidence(unseen=gathered.unseen, blind=gathered.blind)
        mine = [one for one in gathered.dumps if _is_of(one, window)]
        blind = list(gathered.blind)
        if len(mine) < len(gathered.dumps):
            others = sorted({one.rank for one in gathered.dumps} - {one.rank for one in mine})
            if others:
                blind.append(f"the dumps of {listed(others)} are not of this attempt")
        now = self.now()
        node_of = nodes_by_rank(window.allocation, world=world_of(mine))
        told = judge(mine, node_of, window.attempt, now, unread=gathered.unread)
        # That a dump is missing alone points at nothing: it is what cannot be seen.
        blind += [one.sentence for one in told if one.rule == NO_DUMP]
        found = (
            *(one for one in told if one.rule != NO_DUMP),
            *refusals(gathered.refused, window.attempt, now),
        )
        nothing = "" if mine or gathered.refused else "no dump of this attempt is there"
        return Evidence(findings=found, unseen=nothing, blind=tuple(blind))


def path_of(window: Window) -> str:
    """Return the path as it is looked for: ``%j`` is the job's id, as in Slurm's output names."""
    return window.flight_recorder.replace("%j", window.attempt.job.scheduler_id)


def world_of(dumps: Iterable[Dump]) -> int:
    """Return how many ranks the job has, as far as the groups in its dumps tell; 0 for none."""
    members = (max(one.ranks, default=-1) for dump in dumps for one in dump.groups.values())
    return max(members, default=-1) + 1


def nodes_by_rank(
    allocation: Allocation, hosts: dict[int, str] | None = None, *, world: int = 0
) -> Callable[[int], str | None]:
    """Return what tells the node of a global rank: where it said it runs, else by arithmetic.

    ``hosts`` are as the job's log tells them. Ranks are laid out by arithmetic only where each is
    a task of its own: the allocation says so, or there are as many ranks (``world``) as tasks. A
    job of one node has no other.
    """
    told = hosts or {}
    tasks = allocation.tasks_per_node * len(allocation.nodes)
    are_tasks = allocation.ranks_are_tasks or (world > 0 and world == tasks)

    def node_of(rank: int) -> str | None:
        if (host := told.get(rank)) is not None:
            return allocation.member(host) if allocation.nodes else host
        if len(allocation.nodes) == 1:
            return allocation.nodes[0]
        return allocation.node_of_task(rank) if are_tasks else None

    return node_of


def _is_of(dump: Dump, window: Window) -> bool:
    """Tell whether a dump is of this attempt, and of this silence where it is about one.

    Its newest call tells, by its node's clock.
    """
    if not dump.newest_ns:
        return False
    newest = Instant(dump.newest_ns // _NS_IN_US)
    if window.silent_since is not None:  # it has stepped since: what hung then hangs no more
        return newest >= window.silent_since - LONGEST_STEP
    if window.started_at is not None:
        return newest >= window.started_at - CLOCKS
    return newest >= window.since - LONGEST_WAIT


@dataclass(frozen=True, slots=True)
class _OfOwner:
    """Reads with the rights of the job's owner."""

    readers: OwnerReaders
    uid: int | None
    may_go_on: Callable[[], bool]

    def find(self, pattern: str) -> tuple[Sequence[str], str]:
        match self.readers.find(self.uid, pattern):
            case Seen(value=answer):
                return answer.paths, answer.left_out
            case Unseen(why=why):
                return (), why

    def read(self, path: str) -> bytes | Unseen:
        mark, size = Mark(), 0
        parts: list[bytes] = []
        while self.may_go_on():
            answer = self.readers.read(self.uid, path, mark, PIECE)
            if isinstance(answer, Unseen):
                return answer
            chunk = answer.value
            if chunk.answer.restarted:
                parts, size = [], 0
            parts.append(chunk.data)
            size += len(chunk.data)
            if size > MOST_BYTES:
                return Unseen(f"it has more than {MOST_BYTES:,} bytes")
            if chunk.answer.at_end or not chunk.data:
                return b"".join(parts)
            mark = chunk.answer.mark
        return Unseen("reading it took too long")
