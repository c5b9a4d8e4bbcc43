"""What the core advises, told as the stories of jobs."""

from __future__ import annotations

import pytest

from relight.engine.cases import Requeuer
from relight.model.advice import (
    Action,
    Approval,
    Decision,
    Disposition,
    Mode,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.findings import Domain, Kind, Remedy, Role
from relight.model.incidents import Phase
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobState, NodeFact, NodeState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import JobGone, NodeSeen, OrderDone, PersonSaid, StatusSeen, Word
from relight.testing.stories import KEY, START, Story, book


def running() -> Story:
    return Story().see(JobState.PENDING).see(JobState.RUNNING)


def crashed(successors: tuple[str, ...] = ()) -> Story:
    story = running()
    story.progress(best_step=30, best_checkpoint=20, first_step=1)
    story.find("ecc", ranks=(1,), tasks=(1,))
    return story.see(JobState.FAILED, exit_status=1, successors=successors).progress(final=True)


def test_an_ecc_crash_is_restarted_without_the_node_of_its_rank() -> None:
    advice = crashed().advice()
    assert advice.decision is Decision.RESTART_EXCLUDING_NODE
    assert advice.exclusions == ("node-02",)
    assert advice.permit is not None
    assert "node-02" in advice.reason.sentence
    assert advice.cost is not None
    assert advice.cost.steps_lost == 10


def test_a_watchdog_timeout_after_an_ecc_error_blames_the_rank_with_the_ecc_error() -> None:
    story = running().find("ecc", ranks=(1,), tasks=(1,)).wait(1)
    story.find(
        "watchdog", role=Role.SYMPTOM, domain=Domain.UNKNOWN, ranks=(2,), tasks=(2,), offset=90
    )
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    incident = story.attempt().incident
    assert incident is not None
    assert incident.verdict is not None
    assert [one.node for one in incident.verdict.suspects] == ["node-02"]
    assert [one.rule for one in incident.verdict.set_aside] == ["watchdog"]


def test_monitor_mode_gives_advice_without_a_permit() -> None:
    story = (
        Story(policy_book=book(Mode.MONITOR))
        .see(JobState.RUNNING)
        .find("ecc", ranks=(1,), tasks=(1,))
    )
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert story.advice().decision is Decision.RESTART_EXCLUDING_NODE
    assert story.advice().permit is None


def test_nothing_is_decided_before_the_logs_were_read_or_the_wait_for_them_is_over() -> None:
    story = running().see(JobState.FAILED, exit_status=1)
    assert story.attempt().advice is None
    story.wait(11)
    assert story.advice().decision is Decision.NONE
    assert "not read to their end" in story.advice().reason.sentence


def test_a_failure_with_unseen_logs_is_left_to_a_person() -> None:
    story = running().progress(logs_unseen="permission denied")
    story.see(JobState.FAILED, exit_status=1).progress(final=True, logs_unseen="permission denied")
    assert story.advice().decision is Decision.NONE
    assert "permission denied" in story.advice().reason.sentence


def test_a_deterministic_error_is_stopped_and_the_owner_sees_why() -> None:
    story = running()
    story.find("module-not-found", domain=Domain.USER, remedy=Remedy.STOP)
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    advice = story.advice()
    assert advice.decision is Decision.STOP
    assert advice.status.disposition is Disposition.CONVERGED
    assert "would fail again" in advice.reason.sentence


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED])
def test_an_end_that_is_no_failure_is_left_alone_whatever_the_log_says(state: JobState) -> None:
    story = running().find("ecc", ranks=(1,), tasks=(1,)).see(state)
    assert story.advice().decision is Decision.NONE


def test_a_completed_job_needs_no_advice() -> None:
    story = running().progress(best_step=9).see(JobState.COMPLETED).progress(final=True).wait(60)
    assert story.attempt().advice is None


def test_a_living_attempt_is_not_restarted_for_a_line_while_steps_go_on() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,)).wait(20)
    for number in (11, 12, 13):
        story.progress(best_step=number).wait(5)
    story.wait(300)
    assert story.attempt().advice is None
    incident = story.attempt().incident
    assert incident is not None
    assert incident.phase is Phase.CLOSED
    assert incident.closed is not None
    assert incident.closed.code == "recovered-in-place"


def test_steps_that_were_on_their_way_do_not_count_as_going_on() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,))
    story.progress(best_step=11).wait(1).progress(best_step=12).wait(61)
    assert story.advice().while_living


def test_every_step_after_the_line_starts_the_settle_time_anew() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,)).wait(50)
    story.progress(best_step=11).wait(50).progress(best_step=12).wait(50)
    assert story.attempt().advice is None
    assert story.wait(11).advice().while_living


def test_a_living_attempt_without_a_step_for_the_settle_time_is_restarted() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,)).wait(59)
    assert story.attempt().advice is None
    story.wait(2)
    assert story.advice().while_living
    assert story.advice().decision is Decision.RESTART_EXCLUDING_NODE


def test_a_slow_reporter_is_given_three_of_its_own_intervals_to_settle() -> None:
    story = (
        running().progress(best_step=10, report_seconds=120.0).find("ecc", ranks=(1,), tasks=(1,))
    )
    assert story.wait(300).attempt().advice is None
    assert story.wait(70).advice().while_living


def test_a_symptom_alone_never_restarts_a_living_attempt() -> None:
    story = running().find("watchdog", role=Role.SYMPTOM, domain=Domain.UNKNOWN).wait(3600)
    assert story.attempt().advice is None


def test_a_task_that_srun_reports_dead_restarts_a_living_attempt_that_stands_still() -> None:
    story = (
        running()
        .progress(best_step=4)
        .find(
            "task-exited",
            role=Role.SYMPTOM,
            domain=Domain.UNKNOWN,
            remedy=Remedy.CONFIRM_THEN_STOP,
            task_gone=True,
        )
    )
    assert story.wait(59).attempt().advice is None
    assert story.wait(2).advice().decision is Decision.RESTART


def test_a_dead_task_of_a_job_that_goes_on_stepping_restarts_nothing() -> None:
    story = running().progress(best_step=4)
    story.find("task-exited", role=Role.SYMPTOM, domain=Domain.UNKNOWN, task_gone=True)
    for number in range(5, 30):
        story.wait(30).progress(best_step=number)
    assert story.attempt().advice is None


def test_a_worker_restarted_in_place_lives_though_it_is_below_its_best_step() -> None:
    story = running().progress(best_step=40, last_step=40).find("ecc", ranks=(1,), tasks=(1,))
    for number in range(5, 35):
        story.wait(10).progress(best_step=40, last_step=number)
    assert story.attempt().advice is None


def test_silence_that_nobody_listened_to_proves_nothing() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,))
    story.is_listened_to = False
    assert story.wait(600).attempt().advice is None
    story.is_listened_to = True
    assert story.wait(30).advice().while_living


def test_silence_of_logs_that_became_unreadable_proves_nothing() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,))
    story.progress(logs_unseen="permission denied")
    assert story.wait(600).attempt().advice is None


def test_a_suspended_job_is_left_alone_and_its_clock_starts_anew_when_it_resumes() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,)).wait(30)
    story.see(JobState.SUSPENDED).wait(600)
    assert story.attempt().advice is None
    story.see(JobState.RUNNING).wait(55)
    assert story.attempt().advice is None
    assert story.wait(10).advice().while_living


def test_a_step_after_the_advice_withdraws_it() -> None:
    story = running().progress(best_step=10).find("ecc", ranks=(1,), tasks=(1,)).wait(61)
    assert story.advice().is_active
    story.progress(best_step=11)
    assert story.advice().status.reason is StatusReason.SUPERSEDED


def test_a_comment_that_opts_out_closes_the_advice() -> None:
    story = crashed()
    story.see(JobState.FAILED, exit_status=1, comment='{"relight": false}')
    assert story.advice().status.reason is StatusReason.CHANGED_BY_PERSON


def test_advice_on_a_living_attempt_of_a_job_that_went_on_without_it_is_no_riddle() -> None:
    story = Story(policy_book=book(Mode.MONITOR)).see(JobState.RUNNING).progress(best_step=9)
    story.find("ecc", ranks=(1,), tasks=(1,)).wait(61)
    story.see(JobState.RUNNING, 1).progress(final=True)
    assert story.advice().decision is Decision.NONE


def test_exclusions_are_given_back_when_the_job_has_waited_too_long_with_them() -> None:
    story = crashed()
    story.see(JobState.PENDING, 1).wait(3601)
    assert story.advice().generation == 2
    assert story.advice().given_back == ("node-02",)
    assert story.advice().is_active


def test_blame_that_does_not_survive_its_test_is_taken_back() -> None:
    story = requeued(crashed())
    story.find("ecc", attempt=1, ranks=(2,), tasks=(2,), offset=90)
    story.see(JobState.FAILED, 1, exit_status=1, nodes=("node-01", "node-03", "node-04"))
    story.progress(1, final=True)
    assert story.advice(1).exclusions == ("node-04",)
    assert story.advice(1).given_back == ("node-02",)


def test_a_findings_survived_in_place_does_not_explain_a_later_failure() -> None:
    story = running().progress(best_step=1).find("ecc", ranks=(1,), tasks=(1,))
    for number in (2, 3, 4):
        story.progress(best_step=number).wait(1)
    story.wait(1000)
    story.find("oom", domain=Domain.APPLICATION, remedy=Remedy.STOP, offset=500)
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert story.advice().decision is Decision.STOP


def test_a_node_that_goes_down_is_blamed_and_the_schedulers_own_requeue_is_used() -> None:
    story = running()
    down = NodeFact(cluster="main", name="node-03", state=NodeState.DOWN, reason="dead")
    story.take(NodeSeen(job=KEY, seen_at=story.now, fact=down))
    story.see(JobState.PENDING, 1).progress(final=True)
    advice = story.advice()
    assert advice.exclusions == ("node-03",)
    assert advice.already_requeued
    assert story.attempt().requeued_by is Requeuer.SCHEDULER


def test_a_persons_requeue_is_left_alone() -> None:
    story = running().see(JobState.PENDING, 1).progress(final=True)
    assert story.advice().decision is Decision.NONE
    assert story.advice().reason.code == "requeued-by-person"


def test_a_successor_forbids_the_restart_and_is_named() -> None:
    story = crashed(successors=("8",))
    assert story.advice().decision is Decision.NONE
    assert story.advice().reason.code == "successor-exists"
    assert "job 8" in story.advice().reason.sentence


def test_exclusion_that_would_strand_the_job_is_not_asked_for() -> None:
    story = Story(fit_now=2, fit_ever=2).see(JobState.RUNNING).find("ecc", ranks=(1,), tasks=(1,))
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert story.advice().decision is Decision.RESTART
    assert "cannot be left out" in story.advice().reason.sentence


def test_unknown_capacity_excludes_nobody() -> None:
    story = Story(fit_now=None).see(JobState.RUNNING).find("ecc", ranks=(1,), tasks=(1,))
    story.see(JobState.FAILED, exit_status=1).progress(final=True).wait(11)
    assert story.advice().decision is Decision.RESTART
    assert "could not be seen" in story.advice().reason.sentence


def requeued(story: Story, attempt: int = 0) -> Story:
    advice = story.advice(attempt)
    order = Order(attempt=advice.attempt, generation=advice.generation, verb=Verb.REQUEUE)
    outcome = OrderOutcome(
        order=order,
        outcome=Outcome.DONE,
        answer="",
        ordered_at=story.now,
        answered_at=story.now,
    )
    story.take(OrderDone(job=KEY, seen_at=story.now, outcome=outcome))
    status = ReconciliationStatus(
        disposition=Disposition.CONVERGED,
        reason=StatusReason.DESIRED_STATE_OBSERVED,
        generation=advice.generation,
    )
    story.see(JobState.PENDING, attempt + 1).wait(3)
    story.see(JobState.RUNNING, attempt + 1, nodes=("node-01", "node-03", "node-04"))
    story.take(StatusSeen(job=KEY, seen_at=story.now, attempt=attempt, status=status))
    return story


def test_recovered_means_a_step_after_resuming_and_caught_up_a_step_beyond() -> None:
    story = requeued(crashed()).wait(2)
    story.progress(1, resumed_from=20, first_step=21, best_step=21)
    incident = story.attempt().incident
    assert incident is not None
    assert incident.phase is Phase.RECOVERING
    assert incident.times.first_step is not None
    story.progress(1, best_step=31)
    closed = story.attempt().incident
    assert closed is not None
    assert closed.closed is not None
    assert closed.closed.code == "recovered"
    assert closed.times.caught_up is not None


def test_a_restart_from_scratch_beside_a_checkpoint_is_a_false_recovery() -> None:
    story = requeued(crashed()).progress(1, first_step=1, best_step=1)
    incident = story.attempt().incident
    assert incident is not None
    assert incident.false_recovery
    assert incident.closed is not None
    assert incident.closed.code == "false-recovery"


def test_the_same_failure_on_other_nodes_without_a_step_gained_stops() -> None:
    def fail(story: Story, attempt: int, nodes: tuple[str, ...]) -> None:
        story.find(
            "bug",
            attempt=attempt,
            domain=Domain.APPLICATION,
            remedy=Remedy.RESTART,
            offset=attempt * 100,
        )
        story.see(JobState.FAILED, attempt, exit_status=1, nodes=nodes)
        story.progress(attempt, final=True)

    story = running()
    fail(story, 0, ("node-01", "node-02", "node-03"))
    assert story.advice().decision is Decision.RESTART
    requeued(story)
    fail(story, 1, ("node-01", "node-03", "node-04"))
    assert story.advice(1).decision is Decision.STOP
    assert story.advice(1).reason.code == "same-failure-again"


def test_shared_trouble_that_returns_is_held_and_blames_no_node() -> None:
    story = running()
    story.find("stale", domain=Domain.STORAGE, remedy=Remedy.HOLD)
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert story.advice().decision is Decision.HOLD
    assert story.advice().exclusions == ()
    assert story.advice().not_before == story.now + seconds(600)


def test_the_budget_is_bounded_and_the_refusal_says_how_to_raise_it() -> None:
    story = (
        Story(policy_book=book(max_restarts=1))
        .see(JobState.RUNNING)
        .find("ecc", ranks=(1,), tasks=(1,))
    )
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    requeued(story).find("other", attempt=1, ranks=(0,), tasks=(0,), offset=50)
    story.see(JobState.FAILED, 1, exit_status=1).progress(1, final=True)
    assert story.advice(1).decision is Decision.STOP
    assert "1 of 1 restarts" in story.advice(1).reason.sentence
    assert "max_restarts" in story.advice(1).reason.sentence


def test_progress_earns_the_budget_back() -> None:
    story = (
        Story(policy_book=book(max_restarts=1))
        .see(JobState.RUNNING)
        .find("ecc", ranks=(1,), tasks=(1,))
    )
    story.progress(best_step=5).see(JobState.FAILED, exit_status=1).progress(final=True)
    requeued(story).progress(1, best_step=50).find(
        "other", attempt=1, ranks=(0,), tasks=(0,), offset=50
    )
    story.see(JobState.FAILED, 1, exit_status=1).progress(1, final=True)
    assert story.advice(1).decision is Decision.RESTART_EXCLUDING_NODE


def test_approve_mode_waits_for_a_yes_and_then_grants_a_permit() -> None:
    story = (
        Story(policy_book=book(Mode.APPROVE))
        .see(JobState.RUNNING)
        .find("ecc", ranks=(1,), tasks=(1,))
    )
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    advice = story.advice()
    assert (advice.approval, advice.permit) == (Approval.WAITING, None)
    yes = PersonSaid(
        job=KEY, seen_at=story.now, attempt=0, generation=1, word=Word.APPROVE, who="olivia"
    )
    story.take(yes)
    assert story.advice().generation == 2
    assert story.advice().permit is not None
    story.take(yes)
    assert story.advice().generation == 2


def test_a_rejected_advice_is_abandoned() -> None:
    story = (
        Story(policy_book=book(Mode.APPROVE))
        .see(JobState.RUNNING)
        .find("ecc", ranks=(1,), tasks=(1,))
    )
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    no = PersonSaid(
        job=KEY, seen_at=story.now, attempt=0, generation=1, word=Word.REJECT, who="olivia"
    )
    story.take(no)
    assert story.advice().status.reason is StatusReason.CHANGED_BY_PERSON


def test_what_may_leaves_out_is_advised_but_not_permitted() -> None:
    story = Story(policy_book=book(may=(Action.REQUEUE,))).see(JobState.RUNNING)
    story.find("ecc", ranks=(1,), tasks=(1,)).see(JobState.FAILED, exit_status=1).progress(
        final=True
    )
    assert story.advice().decision is Decision.RESTART_EXCLUDING_NODE
    assert story.advice().permit is None
    assert "may only: requeue" in story.advice().reason.sentence


def test_advice_that_is_not_followed_expires() -> None:
    story = crashed().wait(3601)
    assert story.advice().status.reason is StatusReason.ADVICE_EXPIRED


def test_advice_on_a_job_that_is_gone_is_abandoned() -> None:
    story = crashed()
    story.take(JobGone(job=KEY, seen_at=story.now))
    assert story.advice().status.reason is StatusReason.JOB_GONE


def test_a_refusal_for_capacity_gives_the_weakest_suspect_back_in_a_new_generation() -> None:
    story = crashed()
    status = ReconciliationStatus(
        disposition=Disposition.PENDING, reason=StatusReason.NO_CAPACITY, generation=1
    )
    story.take(StatusSeen(job=KEY, seen_at=story.now, attempt=0, status=status))
    assert story.advice().generation == 2
    assert story.advice().exclusions == ()
    assert story.advice().given_back == ("node-02",)


def test_a_status_for_an_older_generation_changes_nothing() -> None:
    story = crashed()
    late = ReconciliationStatus(
        disposition=Disposition.ABANDONED, reason=StatusReason.JOB_GONE, generation=0
    )
    story.take(StatusSeen(job=KEY, seen_at=story.now, attempt=0, status=late))
    assert story.advice().is_active


def test_a_comment_in_error_is_listed_and_nothing_is_done() -> None:
    story = Story()
    story.see(JobState.RUNNING, comment='{"relight": {"max_restarts": "many"}}')
    story.find("ecc", ranks=(1,), tasks=(1,)).see(
        JobState.FAILED, comment='{"relight": {"max_restarts": "many"}}', exit_status=1
    )
    story.progress(final=True).wait(100)
    assert story.attempt().advice is None
    assert any("relight.max_restarts" in one for one in story.sentences)


def test_a_forged_line_that_names_a_foreign_node_blames_nobody() -> None:
    story = running().find("ecc", nodes=("node-99",))
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert story.advice().exclusions == ()


def test_an_error_that_most_nodes_show_is_no_single_nodes_fault() -> None:
    story = running()
    for rank in range(3):
        story.find("ecc", ranks=(rank,), tasks=(rank,), offset=rank)
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert story.advice().decision is Decision.RESTART


def test_a_cancel_that_overtakes_a_living_advice_wins() -> None:
    story = running().progress(best_step=3).find("ecc", ranks=(1,), tasks=(1,)).wait(61)
    assert story.advice().while_living
    story.see(JobState.CANCELLED)
    assert story.advice().decision is Decision.NONE


def test_endings_in_the_log_of_a_failed_attempt_are_set_aside() -> None:
    story = running().find("ecc", ranks=(1,), tasks=(1,))
    story.find("cancelled", kind=Kind.ENDING, role=Role.SYMPTOM, remedy=Remedy.END, offset=70)
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    incident = story.attempt().incident
    assert incident is not None
    assert incident.verdict is not None
    assert incident.verdict.cause == "ecc"


def test_the_clock_of_the_story_is_the_only_clock() -> None:
    early, late = crashed(), Story(now=Instant(START + seconds(86_400)))
    late.see(JobState.PENDING).see(JobState.RUNNING)
    late.progress(best_step=30, best_checkpoint=20, first_step=1).find(
        "ecc", ranks=(1,), tasks=(1,)
    )
    late.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert late.advice().made_at - early.advice().made_at == seconds(86_400)
    assert late.advice().reason == early.advice().reason


def test_a_lost_node_that_only_the_log_tells_of_after_slurms_requeue_is_still_blamed() -> None:
    story = running().see(JobState.PENDING, 1)
    story.find("node-failure", nodes=("node-02",), kind=Kind.NODE, task_gone=True)
    story.find("node-failure", ranks=(0,), tasks=(0,), kind=Kind.NODE, task_gone=True, offset=9)
    story.progress(final=True)
    assert story.attempt().requeued_by is Requeuer.SCHEDULER
    assert story.advice().exclusions == ("node-02",)
    assert story.advice().already_requeued


def test_with_a_launcher_of_eight_ranks_a_node_a_rank_alone_names_no_node() -> None:
    story = Story().see(JobState.RUNNING, gpus_per_node=8)
    story.find("ecc", ranks=(1,)).see(JobState.FAILED, exit_status=1, gpus_per_node=8)
    assert story.progress(final=True).advice().exclusions == ()


def test_the_label_of_the_launchers_task_names_the_node_of_a_rank() -> None:
    story = Story().see(JobState.RUNNING, gpus_per_node=8)
    story.find("ecc", ranks=(11,), tasks=(1,))
    story.see(JobState.FAILED, exit_status=1, gpus_per_node=8).progress(final=True)
    assert story.advice().exclusions == ("node-02",)


def test_torchelastics_report_puts_a_rank_on_its_host() -> None:
    story = Story().see(JobState.RUNNING, gpus_per_node=8).find("ecc", ranks=(11,))
    story.find("child-failed", role=Role.SYMPTOM, nodes=("node-03.cluster",), offset=40)
    story.find("child-failed", role=Role.SYMPTOM, ranks=(11,), offset=41)
    story.see(JobState.FAILED, exit_status=1, gpus_per_node=8).progress(final=True)
    assert story.advice().exclusions == ("node-03",)


def test_what_srun_prints_of_its_tasks_beats_arithmetic() -> None:
    story = running().find("ecc", ranks=(1,), tasks=(1,))
    story.find("slurm-task-exited", role=Role.SYMPTOM, nodes=("node-01",), ranks=(1,), offset=40)
    story.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert story.advice().exclusions == ("node-01",)


def test_silence_proves_nothing_where_no_step_was_ever_seen() -> None:
    story = running().find("ecc", ranks=(1,), tasks=(1,)).wait(3600)
    assert story.attempt().advice is None
    assert any("silence proves nothing" in one for one in story.sentences)


def test_a_traceback_alone_never_restarts_a_living_attempt() -> None:
    story = running().progress(best_step=5)
    story.find(
        "python-exception", role=Role.EITHER, domain=Domain.APPLICATION, detector="tracebacks"
    )
    assert story.wait(3600).attempt().advice is None


def test_shared_trouble_never_restarts_a_living_attempt() -> None:
    story = running().progress(best_step=5)
    story.find("stale", domain=Domain.STORAGE, remedy=Remedy.HOLD)
    assert story.wait(3600).attempt().advice is None
