"""How the signs of a hang are read: whose fault each is, what helps, and how much it weighs."""

from __future__ import annotations

from relight.diagnosis.stating import Reading
from relight.diagnosis.witnesses import (
    BLOCKED,
    GONE,
    IDLE,
    IDLE_AMONG_BUSY,
    IN_TRANSPORT,
    NOT_JOINED,
    SPIN,
    WORK,
)
from relight.model.findings import Domain, Remedy

_EXCLUDE = Remedy.RESTART_EXCLUDING_NODE
ON_A_NODE = {
    "state": Reading(
        domain=Domain.HARDWARE,
        remedy=_EXCLUDE,
        weight=0.55,
        what="one node is seen to be unwell while no step is completed",
        why="it is seen to be unwell while the others wait",
    ),
    IDLE_AMONG_BUSY: Reading(
        domain=Domain.HARDWARE,
        remedy=_EXCLUDE,
        weight=0.55,
        what="one GPU is idle among those that wait: its rank's process is stuck or dead",
        why="one of its GPUs is idle while the others wait for it",
    ),
    NOT_JOINED: Reading(
        domain=Domain.HARDWARE,
        remedy=_EXCLUDE,
        weight=0.5,
        what="the ranks that never came to the collective all ran on one node",
        why="its ranks never came to the collective that the others wait in",
    ),
    GONE: Reading(
        domain=Domain.HARDWARE,
        remedy=_EXCLUDE,
        weight=0.5,
        what="the telemetry of one node stopped while that of its peers goes on",
        why="its telemetry stopped while that of the others goes on",
    ),
    IN_TRANSPORT: Reading(
        domain=Domain.HARDWARE,
        remedy=_EXCLUDE,
        weight=0.45,
        what="only on one node did the data not come through",
        why="what the others had finished did not come through there",
    ),
    BLOCKED: Reading(
        domain=Domain.UNKNOWN,
        remedy=_EXCLUDE,
        weight=0.4,
        what="only on one node did the collective not start",
        why="the collective that the others are in did not start there",
    ),
    "link": Reading(
        domain=Domain.HARDWARE,
        remedy=_EXCLUDE,
        weight=0.35,
        what="the links of one node alone report errors",
        why="its links report errors while the ranks wait for one another",
    ),
}
"""How a sign on few nodes is read, the most trusted first."""
LATE = Reading(
    domain=Domain.HARDWARE,
    remedy=_EXCLUDE,
    weight=0.4,
    what="the watchdogs' lines tell which rank the others waited for",
    why="the rank that the others waited for ran there",
)
MISMATCHED = Reading(
    domain=Domain.APPLICATION,
    remedy=Remedy.STOP,
    weight=0.75,
    what="the ranks called different collectives, or with different sizes",
)
ONE_A_NODE = Reading(
    domain=Domain.APPLICATION,
    remedy=Remedy.CONFIRM_THEN_STOP,
    weight=0.45,
    what="ranks of several nodes did not come alike, which is a branch in the program",
)
STORED = Reading(
    domain=Domain.STORAGE,
    remedy=Remedy.HOLD,
    weight=0.6,
    what="storage is seen to be waited for while no step is completed",
)
WITHOUT_A_NODE = {
    NOT_JOINED: Reading(
        domain=Domain.UNKNOWN,
        remedy=Remedy.RESTART,
        weight=0.4,
        what="ranks never came to the collective, and where they ran is not one node",
    ),
    IN_TRANSPORT: Reading(
        domain=Domain.NETWORK,
        remedy=Remedy.RESTART,
        weight=0.45,
        what="all ranks came, and their data did not",
    ),
    SPIN: Reading(
        domain=Domain.UNKNOWN,
        remedy=Remedy.RESTART,
        weight=0.4,
        what="all GPUs wait in a collective: one rank never came, and none is named",
    ),
    BLOCKED: Reading(
        domain=Domain.UNKNOWN,
        remedy=Remedy.RESTART,
        weight=0.35,
        what="all ranks came, and an earlier operation keeps the collective from starting",
    ),
    WORK: Reading(
        domain=Domain.NONE,
        remedy=Remedy.REPORT,
        weight=0.6,
        what="the GPUs do tensor work: a long step, or one that prints nothing",
    ),
    IDLE: Reading(
        domain=Domain.UNKNOWN,
        remedy=Remedy.RESTART,
        weight=0.3,
        what="all GPUs are idle: a start, data that does not come, or a set-up that stands still",
    ),
}
"""How signs are read that name no node, the most telling first."""
ALONE = Reading(
    domain=Domain.UNKNOWN,
    remedy=Remedy.RESTART,
    weight=0.25,
    what="no step was completed for long, and nothing else is seen",
)
