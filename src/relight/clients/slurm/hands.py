"""Hands on a Slurm cluster: the four changes that relight makes, one command each."""

from __future__ import annotations

import re
import unicodedata

from relight.clients.running import NotRun, Ran
from relight.clients.schedulers import Answer
from relight.clients.slurm.commands import Commands, last_words
from relight.clients.slurm.listings import JOB_ID
from relight.model.hostlists import HostlistError, compress, expand
from relight.model.instants import Span
from relight.model.orders import Outcome

_LOST_CONTACT = re.compile(
    r"unable to contact|timed out|zero bytes were|communication \w+ failure|send failure"
    r"|receive failure|unexpected message received|connection refused|not connected"
    r"|in standby|message length|unspecified error",
    re.IGNORECASE,
)
"""Slurm's words for an answer that did not arrive; the order may have (slurm_errno.c).

``scontrol requeue`` says "Unexpected message received" when nothing listens (22.05).
"""

_SIGNAL_NAME = re.compile(r"HUP|INT|QUIT|USR1|USR2|TERM|CONT|URG")
"""Signals that a program can catch and that stop none for good: KILL and STOP are no warning."""

_NOT_SLURM_S_STATUS = (126, 127, 255)
"""What a shell and ssh return when the command itself could not be run, or its end not seen."""


class SlurmHands:
    """Implements ``relight.clients.schedulers.Hands`` over ``scontrol`` and ``scancel``."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def requeue(self, scheduler_id: str, *, incomplete_only: bool) -> Answer:
        """Put a job back into the queue.

        With ``incomplete_only`` slurmctld leaves a job alone that no longer runs, and answers
        0 all the same.
        """
        which = ("incomplete",) if incomplete_only else ()
        return self._order(scheduler_id, "scontrol", "requeue", *which, _leader(scheduler_id))

    def start(
        self, scheduler_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Answer:
        """Write AdminComment, ExcNodeList and StartTime in one update, all or nothing.

        Slurm waits whole seconds: ``delay`` is rounded up.
        """
        try:
            excluded = compress(host for name in exclude for host in expand(name))
        except HostlistError as error:
            return Answer(Outcome.REFUSED, f"nothing was sent: {error}")
        wait = 0 if delay is None else max(-(-delay // 1_000_000), 0)
        return self._order(
            scheduler_id,
            *("scontrol", "update", f"JobId={_leader(scheduler_id)}"),
            f"AdminComment={_printable(note)}",
            f"ExcNodeList={excluded}",
            f"StartTime=now+{wait}" if wait else "StartTime=now",
        )

    def cancel(self, scheduler_id: str) -> Answer:
        """Cancel a job. Slurm answers 0 also for one that has ended or that it does not know."""
        return self._order(scheduler_id, "scancel", _leader(scheduler_id))

    def signal(self, scheduler_id: str, *, name: str, batch_only: bool) -> Answer:
        """Send a signal to the tasks of a job's steps, or to its batch script alone.

        These are the two that ``sbatch --signal`` knows, without and with ``B:``. Source:
        scancel's manual page, ``--signal`` and ``--batch``.
        """
        if not _SIGNAL_NAME.fullmatch(name):
            return Answer(Outcome.REFUSED, f'nothing was sent: "{name[:20]}" names no signal')
        scope = ("--batch",) if batch_only else ()
        return self._order(
            scheduler_id, "scancel", f"--signal={name}", *scope, _leader(scheduler_id)
        )

    def _order(self, scheduler_id: str, *command: str) -> Answer:
        if not JOB_ID.fullmatch(scheduler_id):
            return Answer(Outcome.REFUSED, f'nothing was sent: "{scheduler_id[:40]}" names no job')
        return _answer(self._commands.change(*command))


def _answer(ran: Ran | NotRun) -> Answer:
    if isinstance(ran, NotRun):
        return Answer(Outcome.UNCLEAR, ran.why)
    words = last_words(ran)
    if ran.status == 0:
        return Answer(Outcome.DONE, " ".join(ran.errors.decode(errors="replace").split())[:400])
    if ran.status < 0 or ran.status in _NOT_SLURM_S_STATUS:
        return Answer(Outcome.UNCLEAR, words)
    if _LOST_CONTACT.search(words):
        return Answer(Outcome.UNCLEAR, words)
    return Answer(Outcome.REFUSED, words)


def _leader(scheduler_id: str) -> str:
    """Return the id that Slurm takes orders under: a heterogeneous job's is its leader's."""
    return re.sub(r"\+\d+$", "", scheduler_id)


def _printable(text: str) -> str:
    """Return one line without control characters: scontrol takes the rest of a word as it is."""
    return "".join(" " if unicodedata.category(one)[0] == "C" else one for one in text)
