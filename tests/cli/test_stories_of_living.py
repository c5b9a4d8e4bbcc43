"""What why, jobs, incidents and advice show of a job that lives and does not do well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from relight.cli import advice as advice_command
from relight.cli import app
from relight.cli import incidents as incidents_command
from relight.cli.stories import story
from relight.clients.backend.answers import IncidentLine, JobLine
from relight.engine.plans import plan_of
from relight.model.advice import Advice
from relight.model.evidence import Witness
from relight.model.findings import Domain, Evidence, Finding, Kind, Remedy, Role
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import FindingMade, OrderDone
from relight.serve.lines import incident_lines, job_line
from relight.testing.stories import KEY, Story, finding
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

SPIN = told("gpus-spin", Kind.HANG, nodes=("node-02",))


def silent(*found: Finding, **unseen: str) -> WitnessedStory:
    asked = (Witness.TELEMETRY, Witness.KERNEL_LOG)
    life = WitnessedStory(
        policy_book=witnessed_book(witnesses=asked),
        testimony={Witness.TELEMETRY: found},
        unseen={Witness(name): why for name, why in unseen.items()},
    )
    life.begin()
    made = msgspec.structs.replace(
        finding("no-progress", kind=Kind.HANG, role=Role.EITHER, domain=Domain.UNKNOWN),
        detector="silence",
        remedy=Remedy.RESTART,
        seen_at=life.now,
        evidence=(
            Evidence(text="step 200", is_root=True),
            Evidence(text="Learned from the last 20 times."),
            Evidence(text="The limit is 2 min."),
            *(Evidence(text=f"progress line {number}") for number in range(5)),
        ),
    )
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=made))
    return life


def why(life: Story) -> str:
    return "\n".join(line.text for one in story(life.case, ()) for line in one.lines)


def test_an_unconfirmed_hang_is_planned_in_why_and_jobs() -> None:
    life = silent(kernel_log="no such directory")
    plan = plan_of(life.attempt())
    assert plan is not None
    assert f"Planned: {plan.reason.sentence}" in why(life)
    line = job_line(life.case)
    assert line.says == plan.reason.sentence
    assert line.planned == plan
    life.wait(700)
    assert job_line(life.case).planned is None


def test_why_says_what_each_witness_said_or_that_it_said_nothing() -> None:
    life = silent(kernel_log="no such directory")
    assert "Telemetry, asked at" in why(life)
    assert "told of nothing wrong, which proves nothing." in why(life)
    assert "could not tell anything, which is no sign of health: no such directory" in why(life)
    assert "told: gpus-spin (node-02)." in why(silent(SPIN, kernel_log="x"))
    assert "has not answered." in why(silent(SPIN))
    life.wait(31)
    assert "asked 2 times, last at" in why(life)


def test_why_shows_three_lines_of_progress_and_what_was_learned_of_them() -> None:
    told_all = why(silent(kernel_log="x"))
    assert told_all.count("progress line") == 3
    assert "progress line 4" in told_all
    assert "The limit is 2 min." in told_all


def test_why_says_how_many_restarts_are_left() -> None:
    life = silent(kernel_log="x").wait(700)
    assert "0 of 3 restarts without progress were used; 3 left." in why(life)


def test_a_checkpoint_that_it_resumed_from_is_one() -> None:
    life = WitnessedStory()
    life.see(JobState.RUNNING).progress(best_step=1663, resumed_from=1600)
    assert "step is 1663, no newer checkpoint." in why(life)


def test_a_hang_and_who_ended_it_are_both_told() -> None:
    life = silent(SPIN, kernel_log="x")
    life.see(JobState.CANCELLED)
    (line,) = incident_lines(life.case)
    assert line.cause == "gpus-spin"
    assert "A person cancelled the job while it stood still" in line.closed
    assert "What happened: " in why(life)
    assert line.closed in why(life)


@pytest.mark.parametrize(
    ("role", "remedy", "is_said"),
    [
        (Role.SYMPTOM, Remedy.REPORT, False),
        (Role.EITHER, Remedy.REPORT, False),
        (Role.SYMPTOM, Remedy.RESTART, False),
    ],
)
def test_a_healthy_jobs_line_is_never_a_note(role: Role, remedy: Remedy, is_said: bool) -> None:  # noqa: FBT001 - a case
    life = WitnessedStory().begin()
    attempt = life.attempt()
    note = finding("resume-from-scratch", role=role, remedy=remedy)
    case = msgspec.structs.replace(
        life.case, attempts=(msgspec.structs.replace(attempt, incident=None, findings=(note,)),)
    )
    assert bool(job_line(case).says) is is_said


def test_a_note_that_every_rank_prints_is_told_once() -> None:
    life = WitnessedStory().begin()
    for number in range(3):
        life.find("resume-from-scratch", remedy=Remedy.REPORT, offset=10 + number)
    assert sum("resume-from-scratch" in one for one in life.sentences) == 1
    assert len(life.attempt().findings) == 3


def test_a_requeue_of_relights_own_is_said_to_be_its_own() -> None:
    for outcome, word in ((Outcome.DONE, "as relight had ordered"), (Outcome.REFUSED, "somebody")):
        life = silent(SPIN, kernel_log="x")
        order = Order(verb=Verb.REQUEUE, attempt=life.attempt().advice.attempt, generation=1)  # type: ignore[union-attr]  # given above
        done = OrderOutcome(
            order=order, outcome=outcome, answer="", ordered_at=life.now, answered_at=life.now
        )
        life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))
        line = finding("slurm-requeued", kind=Kind.ENDING, seen_at=life.now)
        line = msgspec.structs.replace(line, sentence="It was requeued by somebody.")
        life.take(FindingMade(job=KEY, seen_at=life.now, finding=line))
        assert word in life.sentences[-1]


def test_an_attempt_that_is_to_come_is_not_said_to_end() -> None:
    life = WitnessedStory().begin()
    life.see(JobState.COMPLETING, 1)
    assert "Attempt 1 is to come; the nodes of attempt 0 are not free yet." in life.sentences
    life.see(JobState.RUNNING, 1).see(JobState.COMPLETING, 1)
    assert "Attempt 1 is ending; its nodes are not free yet." in life.sentences


class Told:
    """A backend that tells of one case and one history of advice."""

    def __init__(self, life: Story, history: tuple[Advice, ...] = ()) -> None:
        self.life, self.history = life, history

    def jobs(self, _: Mapping[str, str]) -> Iterator[JobLine]:
        """Yield the job as a line."""
        yield job_line(self.life.case)

    def incidents(self, _: Mapping[str, str]) -> Iterator[IncidentLine]:
        """Yield its incidents."""
        yield from incident_lines(self.life.case)

    def active_advice(self, _: str) -> tuple[Advice, ...]:
        """Return none: what is planned is no advice."""
        return ()

    def advice(self, _: str) -> Iterator[Advice]:
        """Yield the history."""
        yield from self.history


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], told: Told, *words: str
) -> str:
    monkeypatch.setenv("COLUMNS", "400")
    for command in (advice_command, incidents_command):
        monkeypatch.setattr(command, "backend", lambda _: told)
    assert app.run(words) == 0
    return capsys.readouterr().out


def test_advice_lists_what_is_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(monkeypatch, capsys, Told(silent(kernel_log="x")), "advice")
    assert "main:7-0" in out
    assert "planned" in out
    assert "at the latest" in out


def test_older_generations_are_over_once_a_newer_one_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    life = silent(SPIN, kernel_log="x")
    first = life.advice()
    second = msgspec.structs.replace(first, generation=2)
    out = run(monkeypatch, capsys, Told(life, (second, first)), "advice", "--all")
    assert [row.split()[-3:] and ("abandoned" in row) for row in out.splitlines()[1:]] == [
        False,
        True,
    ]


def test_open_incidents_are_those_that_are_not_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    life = silent(SPIN, kernel_log="x")
    assert "advised" in run(monkeypatch, capsys, Told(life), "incidents", "--open")
    life.see(JobState.CANCELLED)
    told = Told(life)
    assert run(monkeypatch, capsys, told, "incidents", "--open") == "no incident is open\n"
    assert "A person cancelled" in run(monkeypatch, capsys, told, "incidents")
