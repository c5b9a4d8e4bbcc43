"""Where a cause lies: its ranks and nodes, which are not always those of the line that tells it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relight.diagnosis.clocks import in_time_order
from relight.diagnosis.culprits import lagging_ranks, missing_ranks, silent_rank
from relight.diagnosis.deaths import ELASTIC_RULE, Death, root_text
from relight.diagnosis.placing import Places
from relight.model.findings import Domain, Finding, Kind, Role

CONNECTIONS = frozenset(
    {"nccl_ib_completion_error", "nccl_remote_error", "nccl_socket_connect_failed"}
)
"""Families of findings that name the other end of a connection."""
_TELLS_OF_A_DEATH = frozenset(
    {"process_killed_sigkill", "worker_process_lost", "user_code_exception", "segfault"}
)
"""Families of symptoms whose rank is the one that died, and not one that noticed."""
_OF_OWN_GPU = re.compile(r"NCCL WARN Cuda failure|Failed to CUDA calloc").search
"""What NCCL prints of a call on the GPU of its own process."""
_ONE_MESSAGE = 6
"""Lines over which one message may stretch."""
_MISS_RANKS = frozenset(
    {"jax_coordination_failure", "rendezvous_failed", "collective_missing_ranks"}
)
"""Families of messages that name who did not come."""
_MET_BY_RANKS = frozenset({"cuda_kernel_fault", "cuda_library_error"})
"""Families of what a rank meets when its GPU breaks."""
_ONE_LIST = 16
_ONE_TRACEBACK = 100
"""Lines over which a traceback that was passed on may stretch."""
_WAITED_FOR_OTHERS = frozenset({"store-barrier-timed-out"})
"""Rules of lines whose rank had come itself and only counts those that had."""
_OF_NO_MACHINE = frozenset({"disk_quota_exceeded"})
"""Families of what is the same on every machine, wherever it was met first."""
_BOTH_PARTIES = re.compile(
    r"[Rr]ank (\d{1,7})(?= and rank \d{1,7} both on\b)"
    r"|(?<= and rank )(\d{1,7})(?= both on\b)"
    r"|[Rr]ank (\d{1,7})(?= is running collective)"
).findall
"""Ranks that a line names for a quarrel in which none is more at fault than the other."""
_SPAWNED = re.compile(r"-- Process (\d{1,5}) terminated with the following error").search


def is_located(root: Finding) -> bool:
    """Tell whether the place of a line is the place of its cause: victims print symptoms."""
    if root.family in CONNECTIONS and root.peers:
        return False
    if root.role is not Role.SYMPTOM or root.family in _TELLS_OF_A_DEATH:
        return True
    return _OF_OWN_GPU(root_text(root)) is not None


def ranks_of_cause(
    root: Finding, same: Sequence[Finding], findings: Sequence[Finding], places: Places
) -> tuple[int, ...]:
    """Return the ranks where a cause lies, empty where its lines single none out.

    ``same`` are the findings of the root's rule among all ``findings``.
    """
    if root.kind is Kind.HANG:
        return _late_ranks(root, same, findings)
    if not is_located(root):
        return ()
    if root.rule in _WAITED_FOR_OTHERS:
        return ()
    first = _first_death(places) if root.role is Role.SYMPTOM else None
    if first is not None and first.rank is not None:
        return (first.rank,)
    alike = [one for one in same if one.fingerprint == root.fingerprint]
    for told in (alike, same):
        found = {rank for one in told for rank in (*places.ranks_of(one), *_parties(one))}
        if found:
            return tuple(sorted(found))
    return (
        _ranks_beside(root, findings, places)
        or _listed_ranks(root, findings)
        or _spawned_rank(root, findings)
    )


def _parties(one: Finding) -> tuple[int, ...]:
    named = (first or second or third for first, second, third in _BOTH_PARTIES(root_text(one)))
    return tuple(int(rank) for rank in named)


def _ranks_beside(root: Finding, findings: Sequence[Finding], places: Places) -> tuple[int, ...]:
    """Return the ranks that met what the kernel tells of without one.

    Those whose lines are of the same family, or tell of a GPU where the root is a broken one,
    and lie on no other node.
    """
    nodes = set(places.of(root))
    if not nodes:
        return ()
    met = {
        rank
        for one in findings
        if one.role is not Role.SYMPTOM and _is_kin(one, root)
        if nodes.issuperset(places.of(one)) and (places.of(one) or _is_of_gpu(root))
        for rank in places.ranks_of(one)
    }
    return tuple(sorted(met))


def _is_kin(one: Finding, root: Finding) -> bool:
    return one.family == root.family or (_is_of_gpu(root) and _is_of_gpu(one))


def _is_of_gpu(one: Finding) -> bool:
    return one.family.startswith("gpu_") or one.family in _MET_BY_RANKS


def _spawned_rank(root: Finding, findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the process whose traceback torch.multiprocessing.spawn passes on above a line."""
    place = root.place
    if place is None:
        return ()
    for one in reversed(in_time_order(findings)):
        beside = one.place
        if beside is None or beside.file != place.file:
            continue
        if 0 <= place.line - beside.line <= _ONE_TRACEBACK:
            for line in (*reversed(one.evidence),):
                if told := _SPAWNED(line.text):
                    return (int(told[1]),)
    return ()


def _listed_ranks(root: Finding, findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the ranks that a message lists on lines of their own: those that never came."""
    place = root.place
    if place is None or root.family not in _MISS_RANKS:
        return ()
    listed = {
        rank
        for one in findings
        if one.family in _MISS_RANKS and one.place is not None and one.place.file == place.file
        if 0 < one.place.line - place.line <= _ONE_LIST
        for rank in one.ranks
    }
    return tuple(sorted(listed))


def _late_ranks(
    root: Finding, same: Sequence[Finding], findings: Sequence[Finding]
) -> tuple[int, ...]:
    """Return the ranks that the others waited for, as far as their lines tell."""
    if root.role is not Role.SYMPTOM and any(one.ranks for one in same):
        return tuple(sorted({rank for one in same for rank in one.ranks}))
    found = missing_ranks(same) or lagging_ranks(findings)
    if found:
        return found
    silent = silent_rank(findings)
    return () if silent is None else (silent,)


def _first_death(places: Places) -> Death | None:
    """Return the death that came first by the launchers' own times.

    What a launcher calls the first failure is the first of its own node, so the times of all
    nodes are compared; who was told to stop died of another's death.
    """
    timed = [one for one in places.deaths if one.at is not None and not one.was_told_to_stop]
    return min(timed, key=lambda one: one.at or 0, default=None)


def nodes_of_cause(
    root: Finding, same: Sequence[Finding], findings: Sequence[Finding], places: Places
) -> tuple[str, ...]:
    """Return the nodes that the lines of a cause point at, in the order of their lines."""
    first = _first_death(places) if root.role is Role.SYMPTOM else None
    if first is not None:
        named = (places.member(host) for host in first.hosts)
        return tuple(node for node in named if node is not None)
    located = dict.fromkeys(node for one in same for node in places.of(one))
    if not located and not root.nodes:
        located = dict.fromkeys(_named_beside(root, findings, places))
    return tuple(located) or _nodes_of_task_gone(root, findings, places)


def _named_beside(root: Finding, findings: Sequence[Finding], places: Places) -> tuple[str, ...]:
    """Return the nodes that another line of the same message names: of its family and near it."""
    if root.place is None:
        return ()
    for one in findings:
        place = one.place
        if place is None or one.family != root.family or place.file != root.place.file:
            continue
        is_near = 0 < place.line - root.place.line <= _ONE_MESSAGE
        if is_near and one.nodes and not one.peers:
            return places.of(one)
    return ()


def _nodes_of_task_gone(
    root: Finding, findings: Sequence[Finding], places: Places
) -> tuple[str, ...]:
    """Return the node of the first task that the scheduler reported dead.

    Used only where the root line itself cannot be placed, and only for blame of hardware:
    whoever died first is closest to the fault.
    """
    if root.domain is not Domain.HARDWARE or root.nodes:
        return ()
    for one in in_time_order([one for one in findings if one.task_gone]):
        nodes = places.of(one)
        if len(nodes) == 1:
            return nodes
    return ()


def only_host_of_trouble(
    root: Finding, findings: Sequence[Finding], places: Places
) -> tuple[str, ...]:
    """Return the one node on which anything went wrong by itself: where, though not why."""
    if root.peers:
        return _only_host_that_connects_to_nobody(root, findings, places)
    if root.role is Role.SYMPTOM or root.family in _OF_NO_MACHINE:
        return ()
    hosts = {host for one in places.deaths if not one.was_told_to_stop for host in one.hosts}
    hosts |= {
        host
        for one in findings
        if one.role in (Role.ROOT, Role.EITHER) and not one.peers
        for host in one.nodes
    }
    members = {member for host in hosts if (member := places.member(host)) is not None}
    return tuple(members) if len(members) == 1 else ()


def _only_host_that_connects_to_nobody(
    root: Finding, findings: Sequence[Finding], places: Places
) -> tuple[str, ...]:
    """Return the one node whose several tasks alone could not connect, and died of it.

    Tasks before them lived elsewhere.
    """
    if root.family != "nccl_socket_connect_failed":
        return ()
    writers = {node for one in findings if one.family == root.family for node in places.of(one)}
    died = [one for one in places.deaths if not one.was_told_to_stop]
    hosts = {member for one in died for host in one.hosts if (member := places.member(host))}
    tasks = {task for one in died for task in one.tasks}
    is_alone = len(hosts) == 1 and hosts == writers and len(tasks) > 1 and 0 not in tasks
    return tuple(hosts) if is_alone else ()


def rank_that_died(
    nodes: tuple[str, ...], root: Finding, findings: Sequence[Finding], places: Places
) -> tuple[int, ...]:
    """Return the one rank that died of a cause whose line names no rank.

    That is who died first by the launchers' times, alone at that time; else, for a fault of
    one node, the one task that died there, where a line shows that ranks are counted as
    tasks are, or none that they are not; task 0 may be the launcher of all ranks.
    """
    if root.role is Role.SYMPTOM or root.kind is Kind.HANG or root.rule in _WAITED_FOR_OTHERS:
        return ()
    first = _first_death(places)
    if first is not None and first.rank is not None:
        at_once = [one for one in places.deaths if one.at == first.at and not one.was_told_to_stop]
        return (first.rank,) if len(at_once) == 1 else ()
    if len(nodes) != 1:
        return ()
    alike = {one.tasks[0] for one in findings if one.tasks and one.tasks == one.ranks}
    ranks_are_apart = any(
        one.rule == ELASTIC_RULE or (one.tasks and one.ranks and one.tasks != one.ranks)
        for one in findings
    )
    dead = {
        task
        for one in places.deaths
        if not one.was_told_to_stop and nodes[0] in map(places.member, one.hosts)
        for task in one.tasks
    }
    is_of_machine = root.domain in (Domain.HARDWARE, Domain.SYSTEM_SOFTWARE)
    is_rank = dead <= alike or (is_of_machine and not ranks_are_apart and 0 not in dead)
    return tuple(dead) if len(dead) == 1 and is_rank else ()
