"""How the last run of each file went: how far it came, and how long it was heard after that."""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.findings import Finding
from relight.model.instants import Instant, Span, between, seconds
from relight.model.progress import Progress, StepUnit
from relight.model.records import Record
from relight.model.reports import FileReport, Run

FEWEST_STEPS = 2
"""Steps after a line that show that the run survived it; one may have been on its way."""
FEWEST_REPORTS = 1.5
"""Likewise, in progress lines, where each tells of many steps."""
LONGEST_PAUSE = seconds(1200)
"""A pause of training that needs no explanation: an evaluation, a checkpoint, a compilation."""
_HOUR = seconds(3_600)
_WIDEST_ZONE = seconds(14.5 * 3_600)
_NEAR = seconds(300)
_REPORTS_MISSED = 15
"""Progress lines that may be missing before their absence means anything."""


class Stretch(Record, frozen=True, kw_only=True):
    """The last run of one file.

    ``step_at`` is when its last step was told and ``last_at`` when it was heard last, both by
    one clock, and None where none can be believed; ``dress`` is how that clock prints its times.
    """

    file: str
    run: int
    progress: Progress = Progress()
    step_at: Instant | None = None
    last_at: Instant | None = None
    dress: str = ""

    @property
    def steps_a_report(self) -> float:
        """Return how many steps lie between two progress lines, 1 where that is not known."""
        told = self.progress
        if not told.report_seconds or not told.step_seconds:
            return 1.0
        return max(1.0, told.report_seconds / told.step_seconds)

    @property
    def is_done(self) -> bool:
        """Return whether the last of all steps was made and a checkpoint of it completed."""
        told = self.progress
        if told.total is None or told.last_step is None or told.unit is StepUnit.EPOCH:
            return False
        return told.last_step >= told.total and (told.best_checkpoint or 0) >= told.last_step

    @property
    def began_again(self) -> bool:
        """Return whether the run went back to a checkpoint that it had made itself."""
        told = self.progress
        if told.resumed_from is None or told.first_step is None:
            return False
        return told.resumed_from >= told.first_step

    @property
    def longest_pause(self) -> Span:
        """Return how long no step may be told while the run is well."""
        usual = max(self.progress.report_seconds or 0.0, self.progress.step_seconds or 0.0)
        return Span(max(LONGEST_PAUSE, seconds(usual * _REPORTS_MISSED)))


class Course:
    """The last runs of all files of a job; empty where only findings are known.

    ``best`` is the stretch that tells most of progress, None where none tells of any.
    """

    def __init__(self, stretches: Sequence[Stretch] = ()) -> None:
        self.stretches = tuple(stretches)
        told = [one for one in stretches if one.progress.last_step is not None]
        self.best = max(told, key=lambda one: _reached(one.progress), default=None)
        self._of_file = {one.file: one for one in stretches}

    @property
    def is_finished(self) -> bool:
        """Return whether training is over: the framework says so, or its last step is saved."""
        return any(one.progress.is_finished or one.is_done for one in self.stretches)

    @property
    def is_short_of_its_end(self) -> bool:
        """Return whether the last step told is known not to be the last of all."""
        told = self.best.progress if self.best is not None else Progress()
        return told.total is not None and (told.last_step or 0) < told.total

    @property
    def made_steps(self) -> bool:
        """Return whether any step was completed."""
        best = self.best
        return best is not None and (best.progress.best_step or 0) > 0

    def of(self, file: str) -> Stretch | None:
        """Return the stretch of a file."""
        return self._of_file.get(file)

    def steps_after(self, finding: Finding) -> float:
        """Return how many steps were told after a line, in units that show survival.

        1 and above says that the run went on. Told by the steps of the line's own file, else
        by the times of another file's steps.
        """
        own = self.of(finding.place.file) if finding.place else None
        if own is not None and own.progress.last_step is not None:
            return self._by_count(finding, own)
        best = self.best
        if best is None or finding.at is None or best.step_at is None:
            return 0.0
        seconds_a_report = best.progress.report_seconds or best.progress.step_seconds
        if not seconds_a_report:
            return 0.0
        gained = between(finding.at, best.step_at)
        return gained / max(1, seconds(seconds_a_report * (FEWEST_STEPS + FEWEST_REPORTS)))

    def _by_count(self, finding: Finding, own: Stretch) -> float:
        told = own.progress
        last = _reached(told)
        if finding.step is not None and told.last_step is not None:
            # A counter that begins again each epoch is told as printed, or counted on.
            last = min((one for one in (last, told.last_step) if one >= finding.step), default=last)
        if finding.step is None:
            gained = last - (told.first_step if told.first_step is not None else last)
        else:
            gained = last - finding.step
        return gained / max(FEWEST_STEPS, FEWEST_REPORTS * own.steps_a_report)

    def silence(self, until: Instant | None = None) -> Span | None:
        """Return for how long the log went on without a step, None where times do not tell.

        ``until`` is when it was ended, else the last time that it prints counts.
        """
        best = self.best
        if best is None or best.step_at is None:
            return None
        ends = [one.last_at for one in self.stretches if one.last_at is not None]
        end = until if until is not None else max(ends, default=None)
        return None if end is None else between(best.step_at, end)

    def stood_still(self, until: Instant | None = None, dress: str | None = None) -> bool:
        """Tell whether the steps stopped long before the log did.

        ``until`` may be printed by another program's clock, as ``dress`` tells, and so may the
        last line of another file: whole hours between two clocks are their zones, and tell
        nothing.
        """
        best, silence = self.best, self.silence(until)
        if best is None or silence is None or silence <= best.longest_pause:
            return False
        if until is None:
            last = max(self.stretches, key=lambda one: one.last_at or 0)
            dress = best.dress if last is best else None
        beyond_hours = silence % _HOUR
        is_zone = silence < _WIDEST_ZONE and min(beyond_hours, _HOUR - beyond_hours) < _NEAR
        return dress == best.dress or not is_zone


def last_run(report: FileReport, findings: Sequence[Finding]) -> Run | None:
    """Return the last run of a file that tells anything: a step, a finding or many lines.

    A launcher's banner may begin a run that never came to anything.
    """
    told = {one.run for one in findings}
    for run in reversed(report.runs):
        if run.number in told or run.progress.last_step is not None:
            return run
    return report.runs[-1] if report.runs else None


def stretch_of(report: FileReport, run: Run) -> Stretch:
    """Return how the run of a file went."""
    return Stretch(
        file=report.file,
        run=run.number,
        progress=run.progress,
        step_at=run.progress.last_step_at,
        last_at=report.last_at,
    )


def _reached(told: Progress) -> int:
    """Return the step reached, counted on over epochs where the printed one begins again."""
    return max(told.best_step or 0, told.last_step or 0)
