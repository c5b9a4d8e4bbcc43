"""From the dumps of one attempt to findings: which ranks the others wait for, and where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey
from relight.model.records import digest
from relight.perception.flights.accusing import MISMATCH, NOT_JOINED, Accused, accuse
from relight.perception.flights.blocking import blocked
from relight.perception.flights.dumps import Dump, Refused
from relight.perception.flights.placing import Ground
from relight.perception.flights.roots import Root, roots
from relight.perception.flights.telling import Told, evidence_of, sentence_of

DETECTOR = "flight_recorder"
REFUSED = "recorder-refused"
MOST_FINDINGS = 4
"""Groups told of: the first to stand still, and others that have nothing to do with it."""
MOST_REFUSED = 8
MOST_NAMED = 64
"""Ranks, and nodes, named in one finding."""
_FAMILIES = {MISMATCH: "collective_mismatch", NOT_JOINED: "collective_missing_ranks"}
_FAMILY = "nccl_collective_timeout"
_NS_IN_US = 1_000


def judge(
    dumps: Sequence[Dump],
    node_of: Callable[[int], str | None],
    attempt: AttemptKey,
    now: Instant,
    *,
    unread: Collection[int] = (),
) -> tuple[Finding, ...]:
    """Return what the dumps of one attempt tell, the likeliest cause first; nothing if nothing.

    ``node_of`` tells the node of a global rank, None where it is not known: no dump tells it. Of
    several dumps of one rank the last counts. ``unread`` are ranks that left a dump which could
    not be read. A finding's ``at`` is when the first rank began to
    wait, by that rank's clock.
    """
    by_rank = dict(sorted({one.rank: one for one in dumps}.items()))
    members = {rank for one in dumps for group in one.groups.values() for rank in group.ranks}
    told = Told(by_rank, frozenset(unread))
    ground = Ground({*by_rank, *members}, node_of)
    found: dict[tuple[str, tuple[int, ...]], Finding] = {}
    for root in roots(blocked(by_rank)):
        accused = accuse(root, ground)
        # Who is late in one group is late in its other groups too: that is one trouble.
        key = (accused.rule, accused.ranks)
        if key not in found:
            finding = _finding(root, accused, told, attempt, now)
            away = ground.nodes_of(root.stuck.missing)[:MOST_NAMED]
            found[key] = msgspec.structs.replace(finding, peers=away)
        if len(found) == MOST_FINDINGS:
            break
    return tuple(found.values())


def late_ranks(dumps: Sequence[Dump]) -> frozenset[int]:
    """Return the ranks that a first look at dumps accuses, for a closer one."""
    by_rank = {one.rank: one for one in dumps}
    found = roots(blocked(dict(sorted(by_rank.items()))))
    few = [root.late or (root.stuck.waiting if root.stuck.done else ()) for root in found]
    return frozenset(rank for ranks in few for rank in ranks)


def refusals(refused: Sequence[Refused], attempt: AttemptKey, now: Instant) -> tuple[Finding, ...]:
    """Return a finding for each file that is no dump or not safe to read: it tells nothing else."""
    unsafe = [one for one in refused if not one.is_cut]
    return tuple(
        Finding(
            id=digest(str(attempt), DETECTOR, REFUSED, one.file, str(one.rank)),
            detector=DETECTOR,
            rule=REFUSED,
            family=_FAMILY,
            kind=Kind.HANG,
            role=Role.SYMPTOM,
            domain=Domain.UNKNOWN,
            remedy=Remedy.REPORT,
            attempt=attempt,
            seen_at=now,
            sentence=f"The dump of rank {one.rank} was not read: {one.why}.",
            ranks=(one.rank,),
            fingerprint=REFUSED,
        )
        for one in unsafe[:MOST_REFUSED]
    )


def _finding(
    root: Root, accused: Accused, told: Told, attempt: AttemptKey, now: Instant
) -> Finding:
    stuck = root.stuck
    call = stuck.call
    name = call.name if call is not None else ""
    return Finding(
        id=digest(
            str(attempt),
            DETECTOR,
            accused.rule,
            stuck.group.name,
            str(stuck.sequence),
            ",".join(map(str, accused.ranks)),
        ),
        detector=DETECTOR,
        rule=accused.rule,
        family=_FAMILIES.get(accused.rule, _FAMILY),
        kind=Kind.HANG,
        role=accused.role,
        domain=accused.domain,
        remedy=accused.remedy,
        attempt=attempt,
        seen_at=now,
        sentence=sentence_of(root, accused, told),
        at=Instant(stuck.since // _NS_IN_US) if stuck.since else None,
        ranks=accused.ranks[:MOST_NAMED],
        nodes=accused.nodes[:MOST_NAMED],
        evidence=evidence_of(root, told),
        fingerprint=" ".join(
            word
            for word in (accused.rule, str(stuck.group), name, call.frame if call else "")
            if word
        ),
    )
