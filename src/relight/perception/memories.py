"""What the files of one attempt share while readings of them are worked on."""

from __future__ import annotations

from dataclasses import dataclass, field

from relight.model.findings import Finding
from relight.perception.progress.sampling import Grid
from relight.perception.progress.tallies import Tally
from relight.perception.rhythm.beats import Beats

FIRST_FINDINGS = 50
"""Lines of one (rule, fingerprint) that each make a finding."""
MOST_COUNTED = 500
"""Different (rule, fingerprint) pairs counted apart; beyond it, rules alone are counted."""


@dataclass(slots=True)
class Memory:
    """What the files of one attempt share while readings are worked on."""

    counts: dict[str, int]
    progress: Tally
    grid: Grid | None
    """Which lines are read where a log tells a step on most of them; None for all."""
    beats: Beats | None
    """What shows that work goes on; None where nobody waits for more."""
    findings: list[Finding] = field(default_factory=list)

    def may_tell(self, rule: str, mark: str) -> int:
        """Count one line; return how many lines a finding for it stands for, 0 for no finding."""
        key = f"{rule}|{mark}"
        if key not in self.counts and len(self.counts) >= MOST_COUNTED:
            key = rule
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count <= FIRST_FINDINGS:
            return 1
        if count & (count - 1):
            return 0
        return count - max(count // 2, FIRST_FINDINGS)
