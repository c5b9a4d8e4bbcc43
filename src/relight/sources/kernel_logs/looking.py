"""Looks into the kernel logs of an attempt's nodes, for a window of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo

from relight.model.evidence import Evidence, Window
from relight.model.findings import Finding, Provenance, Role
from relight.model.instants import Instant
from relight.perception.ears import Ears, Lexicon
from relight.perception.kernel.bursts import merged
from relight.perception.kernel.hearing import Watch
from relight.sources.kernel_logs.reading import NodeLog, read_node
from relight.sources.kernel_logs.telling import blind_of
from relight.sources.kernel_logs.zones import local_zone

MOST_BYTES = 8 * 1024 * 1024
"""Bytes that are read of one file: a day of a busy kernel, or minutes of a flood."""
MOST_IN_ALL = 256 * 1024 * 1024
"""Bytes that are read for one look, shared by the nodes."""
LEAST_BYTES = 256 * 1024
"""Bytes of each file that are read however many nodes there are."""
MOST_FINDINGS = 64
"""Findings of one look, shared by the nodes: a third of what is kept of an attempt."""
LEAST_FINDINGS = 3
"""Findings of each node that are kept however many nodes there are."""


class KernelLogs:
    """The witness of what the kernels of an attempt's nodes wrote. Safe for any thread.

    ``patterns`` are paths with ``%N`` for the node's name. ``clock`` tells when a finding was
    made. ``zone`` is that of times that name none, by default this machine's.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        lexicon: Lexicon,
        clock: Callable[[], Instant],
        zone: tzinfo | None = None,
    ) -> None:
        self._patterns = tuple(patterns)
        self._lexicon = lexicon
        self._clock = clock
        self._zone = zone or local_zone()

    def look(self, window: Window) -> Evidence:
        """Return what the logs of the window's nodes tell of it; never raises for a file's sake.

        ``blind`` says of which nodes nothing could be read and what could not be used. A log
        that tells nothing is not taken for a healthy node. ``unseen`` where no node's log
        could be read.
        """
        nodes = window.allocation.nodes
        if not nodes or not self._patterns:
            return Evidence(unseen="it is not known whose kernel logs to read")
        most = min(MOST_BYTES, max(MOST_IN_ALL // len(nodes), LEAST_BYTES))
        ears = Ears(self._lexicon, window.attempt, Provenance.KERNEL)
        now = self._clock()
        logs = []
        for node in nodes:
            watch = Watch(
                ears=ears,
                node=node,
                since=window.since,
                until=window.until,
                now=now,
                zone=self._zone,
            )
            logs.append(read_node(self._patterns, watch, most))
        blind = blind_of(logs)
        if not any(log.is_seen for log in logs):
            return Evidence(unseen=" ".join(blind) or "no kernel log was read")
        found = _findings(logs)
        if len(found) > MOST_FINDINGS:
            more = f"The kernel logs told {len(found) - MOST_FINDINGS} things more, left out here."
            blind = (*blind, more)
            found = _gravest(found)
        return Evidence(findings=found, blind=blind)


def _findings(logs: Sequence[NodeLog]) -> tuple[Finding, ...]:
    """Return the findings of all nodes in the order of time; a flood of one hides no other."""
    share = max(MOST_FINDINGS // len(logs), LEAST_FINDINGS)
    return merged(one for log in logs for one in _gravest(merged(log.findings), share))


def _gravest(findings: Sequence[Finding], most: int = MOST_FINDINGS) -> tuple[Finding, ...]:
    """Return as many findings as are kept, possible causes before symptoms, in their order."""
    ranked = sorted(range(len(findings)), key=lambda at: (_GRAVITY[findings[at].role], at))
    return tuple(findings[at] for at in sorted(ranked[:most]))


_GRAVITY = {Role.ROOT: 0, Role.EITHER: 1, Role.SYMPTOM: 2, Role.BENIGN: 3}
