"""Policies and who they are for, as records that settings fill."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from relight.model.advice import Action, Mode
from relight.model.allowances import Allowances
from relight.model.evidence import Witness
from relight.model.instants import Span, seconds
from relight.model.records import Record, digest

SAFE_ACTIONS = (Action.REQUEUE, Action.EXCLUDE)


class Response(StrEnum):
    """What is done about a living attempt that does not do well.

    ``stop`` is for numeric trouble only: a hang or a slow node says nothing against the code.
    """

    REPORT = "report"
    RESTART = "restart"
    STOP = "stop"


class Policy(Record, frozen=True, kw_only=True):
    """What may be done for a job, and how often.

    ``settle``: how long a living attempt must complete no step after a root line before it
    is restarted (law 7). ``drain_logs``: how long after an attempt's end its log files are
    waited for. ``backoff``: wait before the second restart without progress, doubled for
    each further one. ``hold``: how long a restart that waits for a shared thing is put off
    before it is tried again. ``expires``: how long an advice may be followed.

    ``hang``, ``slow`` and ``numeric``: what is done about a living attempt that stands still,
    has become slow, or computes nonsense. ``hang_floor``, ``hang_steps`` and the pauses bound
    how long no step is waited for; ``hang_unconfirmed`` is added where no other sign confirms
    the silence. ``evidence``: how long witnesses beside the logs are waited for.
    ``signal_first``, as Slurm's ``--signal``: ``USR1@120`` sends a signal that many seconds
    before a planned restart of a living job; empty sends none. ``flight_recorder``: where
    NCCL's flight recorder writes, for jobs whose comment does not say.
    """

    name: str
    mode: Mode = Mode.MONITOR
    max_restarts: int = 3
    settle: Span = seconds(60)
    drain_logs: Span = seconds(10)
    backoff: Span = seconds(60)
    hold: Span = seconds(600)
    expires: Span = seconds(3600)
    may: tuple[Action, ...] = SAFE_ACTIONS
    hang: Response = Response.RESTART
    hang_floor: Span = seconds(120)
    hang_steps: int = 5
    hang_unconfirmed: Span = seconds(600)
    startup_pause: Span = seconds(1_800)
    checkpoint_pause: Span = seconds(900)
    evaluation_pause: Span = seconds(1_800)
    slow: Response = Response.REPORT
    slow_percent: int = 15
    slow_for: Span = seconds(300)
    numeric: Response = Response.REPORT
    evidence: Span = seconds(15)
    signal_first: str = ""
    flight_recorder: str = ""

    @property
    def allowances(self) -> Allowances:
        """Return what the detectors of living attempts allow under this policy."""
        return Allowances(
            floor=self.hang_floor,
            steps=self.hang_steps,
            startup=self.startup_pause,
            checkpoint=self.checkpoint_pause,
            evaluation=self.evaluation_pause,
            slow_percent=self.slow_percent,
            slow_for=self.slow_for,
        )

    @property
    def revision(self) -> str:
        """Return what names this content: the same settings, the same revision."""
        return digest(msgspec.json.encode(self, order="sorted").decode())


class OptIn(Record, frozen=True, kw_only=True):
    """Opts in every job that matches all that is given; patterns are shell-style on the name."""

    cluster: str
    policy: str
    partition: str = ""
    account: str = ""
    user: str = ""
    name: str = ""


class PolicyBook(Record, frozen=True, kw_only=True):
    """All policies and opt-ins of one settings file, for one cluster.

    ``witnesses`` are those that somebody answers for on this cluster, and ``is_attributed`` says
    that an outside attribution service is configured: nobody else is asked or waited for.
    """

    policies: tuple[Policy, ...] = (Policy(name="default"),)
    opt_ins: tuple[OptIn, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    is_attributed: bool = False

    @property
    def revision(self) -> str:
        """Return what names this content: the same settings, the same revision."""
        return digest(msgspec.json.encode(self, order="sorted").decode())

    def policy(self, name: str) -> Policy | None:
        """Return the policy of that name, None when there is none."""
        return next((policy for policy in self.policies if policy.name == name), None)
