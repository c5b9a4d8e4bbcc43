"""Policies and who they are for, as records that settings fill."""

from __future__ import annotations

import msgspec

from relight.model.advice import Action, Mode
from relight.model.instants import Span, seconds
from relight.model.records import Record, digest

SAFE_ACTIONS = (Action.REQUEUE, Action.EXCLUDE)


class Policy(Record, frozen=True, kw_only=True):
    """What may be done for a job, and how often.

    ``settle``: how long a living attempt must complete no step after a root line before it
    is restarted (law 7). ``drain_logs``: how long after an attempt's end its log files are
    waited for. ``backoff``: wait before the second restart without progress, doubled for
    each further one. ``hold``: how long a restart that waits for a shared thing is put off
    before it is tried again. ``expires``: how long an advice may be followed.
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
    """All policies and opt-ins of one settings file."""

    policies: tuple[Policy, ...] = (Policy(name="default"),)
    opt_ins: tuple[OptIn, ...] = ()

    @property
    def revision(self) -> str:
        """Return what names this content: the same settings, the same revision."""
        return digest(msgspec.json.encode(self, order="sorted").decode())

    def policy(self, name: str) -> Policy | None:
        """Return the policy of that name, None when there is none."""
        return next((policy for policy in self.policies if policy.name == name), None)
