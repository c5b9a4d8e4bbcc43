"""What the logs of one job tell, taken together: their last runs, and who can have done what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from relight.diagnosis.courses import Course, last_run, stretch_of
from relight.diagnosis.naming import by_one_name
from relight.diagnosis.placing import Hosts, Places, printed_allocation
from relight.diagnosis.sifting import Sifted, sift
from relight.engine.last_words import (
    after_progress,
    death_after,
    hosts_heard,
    left_by_itself,
    spoke_on,
)
from relight.engine.own_clocks import by_own_clock
from relight.model.findings import Finding, Role
from relight.model.jobs import Allocation
from relight.model.reports import FileReport, Shown

_ONE_MESSAGE = 6
"""Lines before an exit function's traceback that may belong to it."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The last runs of all files, taken together."""

    files: tuple[FileReport, ...]
    findings: tuple[Finding, ...]
    earlier: tuple[Finding, ...]
    course: Course
    sifted: Sifted
    places: Places
    attempts: int
    death: Shown | None
    spoke_on: bool


def read(files: Sequence[FileReport], allocation: Allocation) -> Reading:
    """Return what the last runs of the files tell; ``allocation`` may be empty.

    The order in which the files are given says nothing.
    """
    files = sorted(files, key=lambda one: one.file)
    fresh: list[Finding] = []
    earlier: list[Finding] = []
    stretches = []
    for file in files:
        run = last_run(file, file.findings)
        if run is None:
            continue
        fresh += [one for one in file.findings if one.run >= run.number]
        earlier += [one for one in file.findings if one.run < run.number]
        stretches.append(by_own_clock(stretch_of(file, run), file))
    course = Course(stretches)
    fresh = by_one_name(fresh, allocation)
    is_whole = bool(allocation.nodes)
    hosts = _hosts_of_ranks(files)
    ground = allocation if is_whole else printed_allocation(fresh, hosts.values())
    sifted = _without_exit_noise(sift(fresh, course), files, course)
    places = Places(
        fresh,
        ground,
        is_whole=is_whole,
        aftermath=frozenset(one.id for one in sifted.aftermath),
        hosts=Hosts(heard=hosts_heard(files), of_ranks=hosts),
    )
    after, own = after_progress(files, course)
    return Reading(
        files=tuple(files),
        findings=tuple(fresh),
        earlier=tuple(earlier),
        course=course,
        sifted=sifted,
        places=places,
        attempts=max((len(file.runs) for file in files), default=1),
        death=death_after(after, sifted),
        spoke_on=spoke_on(own, course),
    )


def _hosts_of_ranks(files: Sequence[FileReport]) -> dict[int, str]:
    """Return where ranks said at start that they run; a rank of which two files differ, nowhere."""
    told: dict[int, set[str]] = {}
    for file in files:
        for rank, host in file.hosts.items():
            told.setdefault(rank, set()).add(host)
    return {rank: min(hosts) for rank, hosts in sorted(told.items()) if len(hosts) == 1}


def _without_exit_noise(sifted: Sifted, files: Sequence[FileReport], course: Course) -> Sifted:
    """Return findings without those of a program that had come to its own end.

    What breaks in its exit functions comes after the work was done, where nothing but
    symptoms is known.
    """
    left = left_by_itself(files)
    if left is None or not course.made_steps or sifted.ending is not None:
        return sifted
    if any(not _is_beside(one, left) for one in sifted.live):
        return sifted
    return msgspec.structs.replace(
        sifted, live=(), teardown=(*sifted.teardown, *sifted.live), is_finished=True
    )


def _is_beside(one: Finding, left: Shown) -> bool:
    place = one.place
    if one.role is not Role.SYMPTOM or place is None or place.file != left.file:
        return False
    return place.line >= left.line - _ONE_MESSAGE
