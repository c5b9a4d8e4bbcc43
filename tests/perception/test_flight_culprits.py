"""Which ranks the others wait for, in jobs that hang in known ways."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.perception.flights.decoding import decode
from relight.perception.flights.dumps import Dump, Refused
from relight.perception.flights.judging import judge, refusals
from relight.testing.flight_dumps import Recorders, as_json, torch_pickle

ATTEMPT = AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=1)
NOW = Instant(1_790_000_900_000_000)
EXCLUDING = (Remedy.RESTART_EXCLUDING_NODE, Role.EITHER)
LOADER = (
    ("all_reduce", "/opt/env/site-packages/torch/distributed/c10d.py", 2806),
    ("next_batch", "/srv/app/data.py", 12),
)


def on_nodes(ranks_each: int) -> Callable[[int], str | None]:
    return lambda rank: f"node-{rank // ranks_each}"


def nowhere(_: int) -> str | None:
    return None


def dumps_of(recorders: Recorders, ranks: Iterable[int] | None = None) -> list[Dump]:
    told = [
        decode(recorders.pickled(rank), rank)
        for rank in (range(recorders.world) if ranks is None else ranks)
    ]
    assert not any(isinstance(one, Refused) for one in told)
    return [one for one in told if isinstance(one, Dump)]


def found(
    recorders: Recorders, ranks_each: int = 4, ranks: Iterable[int] | None = None
) -> tuple[Finding, ...]:
    node_of = on_nodes(ranks_each) if ranks_each else nowhere
    return judge(dumps_of(recorders, ranks), node_of, ATTEMPT, NOW)


def one(recorders: Recorders, ranks_each: int = 4, ranks: Iterable[int] | None = None) -> Finding:
    (finding,) = found(recorders, ranks_each, ranks)
    return finding


def without(world: int, *absent: int) -> list[int]:
    return [rank for rank in range(world) if rank not in absent]


def hung(*absent: int, world: int = 16, is_timed: bool = True) -> Recorders:
    recorders = Recorders(world, is_timed=is_timed)
    for _ in range(5):
        recorders.call()
    state = "started" if is_timed else "scheduled"
    recorders.call(ranks=without(world, *absent), state=state)
    return recorders


@pytest.mark.parametrize("is_timed", [True, False])
@pytest.mark.parametrize(
    ("absent", "ranks_each", "domain", "remedy", "role", "nodes"),
    [
        ((4, 5, 6, 7), 4, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE, Role.ROOT, ("node-1",)),
        ((5,), 4, Domain.UNKNOWN, Remedy.RESTART_EXCLUDING_NODE, Role.EITHER, ("node-1",)),
        ((4, 6), 4, Domain.UNKNOWN, Remedy.RESTART_EXCLUDING_NODE, Role.EITHER, ("node-1",)),
        ((5,), 1, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE, Role.EITHER, ("node-5",)),
        ((0, 4, 8, 12), 4, Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP, Role.EITHER, ()),
        ((1, 6), 4, Domain.UNKNOWN, Remedy.RESTART, Role.EITHER, ()),
        (tuple(range(4, 12)), 4, Domain.HARDWARE, *EXCLUDING, ("node-1", "node-2")),
        (tuple(range(1, 16)), 4, Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP, Role.EITHER, ()),
        ((5,), 0, Domain.UNKNOWN, Remedy.RESTART, Role.EITHER, ()),
    ],
)
def test_ranks_that_never_joined_are_blamed_by_how_they_lie_on_nodes(  # noqa: PLR0913, PLR0917 - a table's columns
    absent: tuple[int, ...],
    ranks_each: int,
    domain: Domain,
    remedy: Remedy,
    role: Role,
    nodes: tuple[str, ...],
    is_timed: bool,  # noqa: FBT001 - likewise
) -> None:
    finding = one(hung(*absent, is_timed=is_timed), ranks_each)
    assert finding.rule == "rank-not-joined"
    assert finding.kind is Kind.HANG
    assert finding.provenance is Provenance.JOB_LOG
    assert finding.ranks == absent
    told = (finding.domain, finding.remedy, finding.role, finding.nodes)
    assert told == (domain, remedy, role, nodes)


def test_a_finding_says_what_was_compared_and_where_the_culprit_was_last() -> None:
    recorders = Recorders(8)
    recorders.call(stack=LOADER)
    recorders.call(ranks=without(8, 5), state="started")
    finding = one(recorders)
    assert finding.sentence == (
        "Rank 5 did not call all_reduce 2 of group default_pg, in which ranks 0-4, 6-7 wait; "
        "1 of 4 ranks on node-1, so a GPU or the code there; its last call came from "
        "data.py:12 in next_batch (loading data)."
    )
    lines = [line.text for line in finding.evidence]
    assert "rank 5: last enqueued 1, last started 1, last completed 1" in lines
    assert "ranks 0-4, 6-7: last enqueued 2, last started 2, last completed 1" in lines
    assert finding.evidence[0].is_root
    assert finding.at == Instant((recorders.start + 2_000_000) // 1000)
    assert finding.fingerprint == (
        "rank-not-joined default_pg all_reduce steps.py:88 in backward_step"
    )


def test_ranks_that_run_ahead_of_their_gpus_are_not_ahead_of_others() -> None:
    """All wait for the same collective; how many more each has enqueued says nothing."""
    recorders = hung(is_timed=False)
    for _ in range(3):
        recorders.call(ranks=without(16, 5, 6), state="scheduled")
    finding = one(recorders)
    assert finding.rule == "rank-stuck-in-transport"
    assert finding.ranks == ()


def parallel() -> Recorders:
    """Give 16 ranks: rows 1 to 4 over the nodes, columns 5 to 8 within each node."""
    rows = {str(1 + n): range(n, 16, 4) for n in range(4)}
    columns = {str(5 + n): range(4 * n, 4 * n + 4) for n in range(4)}
    recorders = Recorders(16, groups={**rows, **columns})
    for _ in range(3):
        recorders.call()
        for name in (*rows, *columns):
            recorders.call(name)
    return recorders


def test_ranks_that_wait_in_an_earlier_group_are_victims_in_a_later_one() -> None:
    recorders = parallel()
    recorders.call("6", ranks=[4, 5, 7], state="started")
    for row in range(1, 5):
        members = [rank for rank in recorders.groups[str(row)] if rank not in {4, 5, 6, 7}]
        recorders.call(str(row), ranks=members, state="started")
    finding = one(recorders)
    assert (finding.rule, finding.ranks, finding.nodes) == ("rank-not-joined", (6,), ("node-1",))
    assert "of group 6" in finding.sentence


def test_two_groups_that_stand_for_different_reasons_are_both_told_the_earlier_first() -> None:
    recorders = parallel()
    recorders.call("8", ranks=[12, 13, 14], state="started")
    recorders.call("5", ranks=[1, 2, 3], state="started")
    assert [finding.ranks for finding in found(recorders)] == [(15,), (0,)]


def test_groups_that_wait_for_each_other_in_a_ring_are_the_programs_fault() -> None:
    recorders = Recorders(4, groups={"1": [0, 1], "2": [0, 1]})
    recorders.call("1")
    recorders.call("2")
    recorders.call("1", ranks=[0], state="started")
    recorders.call("2", ranks=[1], state="started")
    finding = one(recorders)
    assert finding.rule == "collective-mismatch"
    assert (finding.domain, finding.nodes) == (Domain.APPLICATION, ())
    assert finding.remedy is Remedy.CONFIRM_THEN_STOP
    assert "ring" in finding.sentence


def test_a_collective_that_all_started_and_none_ended_stands_in_the_transport() -> None:
    finding = one(hung())
    assert (finding.rule, finding.domain) == ("rank-stuck-in-transport", Domain.NETWORK)
    assert (finding.ranks, finding.nodes) == ((), ())
    assert finding.remedy is Remedy.RESTART


def test_the_one_rank_that_does_not_see_the_end_is_stuck_in_the_transport() -> None:
    recorders = Recorders(16)
    recorders.call()
    recorders.call(ranks=without(16, 9))
    recorders.call(ranks=[9], state="started")
    finding = one(recorders)
    assert finding.rule == "rank-stuck-in-transport"
    assert (finding.ranks, finding.nodes) == ((9,), ("node-2",))
    assert finding.remedy is Remedy.RESTART_EXCLUDING_NODE


def test_a_collective_that_started_nowhere_is_blocked_by_something_before_it() -> None:
    recorders = Recorders(8)
    recorders.call()
    recorders.call(state="scheduled")
    finding = one(recorders)
    assert (finding.rule, finding.ranks) == ("stream-blocked", ())


def test_the_rank_on_which_it_alone_did_not_start_is_named() -> None:
    recorders = Recorders(8)
    recorders.call()
    recorders.call(ranks=without(8, 2), state="started")
    recorders.call(ranks=[2], state="scheduled")
    finding = one(recorders)
    assert (finding.rule, finding.ranks, finding.nodes) == ("stream-blocked", (2,), ("node-0",))


def test_a_stream_that_an_earlier_group_blocks_is_no_trouble_of_its_own() -> None:
    recorders = Recorders(4, groups={"1": [0, 1]})
    recorders.call()
    recorders.call("1")
    recorders.call("1", ranks=[0], state="started")
    recorders.call(ranks=[0, 2, 3], state="scheduled")
    finding = one(recorders)
    assert (finding.rule, finding.ranks) == ("rank-not-joined", (1,))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "all_gather"}, "all_gather of"),
        ({"size": 512}, "all_reduce of 512x512"),
        ({"dtype": "BFloat16"}, "BFloat16"),
    ],
)
def test_different_collectives_at_one_place_are_the_programs_fault_and_name_no_node(
    fields: dict[str, str | int], said: str
) -> None:
    recorders = Recorders(8)
    recorders.call()
    recorders.call(ranks=without(8, 3), state="started")
    recorders.call(
        ranks=[3],
        state="started",
        name=str(fields.get("name", "all_reduce")),
        size=int(fields.get("size", 1024)),
        dtype=str(fields.get("dtype", "Float")),
    )
    finding = one(recorders, ranks_each=1)
    assert finding.rule == "collective-mismatch"
    assert (finding.domain, finding.remedy) == (Domain.APPLICATION, Remedy.STOP)
    assert finding.role is Role.ROOT
    assert (finding.ranks, finding.nodes) == ((3,), ())
    assert said in finding.sentence


def test_uneven_sizes_are_no_quarrel_where_a_collective_allows_them() -> None:
    recorders = Recorders(4)
    recorders.call()
    for rank in range(4):
        recorders.call(ranks=[rank], name="all_to_all", size=rank + 1, state="started")
    assert one(recorders).rule == "rank-stuck-in-transport"


def test_of_two_ranks_that_quarrel_neither_is_more_at_fault() -> None:
    recorders = Recorders(2)
    recorders.call(ranks=[0], name="broadcast", state="started")
    recorders.call(ranks=[1], name="all_reduce", state="started")
    assert one(recorders).ranks == (0, 1)


def test_calls_that_were_coalesced_and_kept_in_part_are_no_quarrel() -> None:
    """Of three calls under one number, one recorder has overwritten the first."""
    recorders = Recorders(2)
    for _ in range(3):
        recorders.call(name="_all_gather_base")
    recorders.call(ranks=[0], state="started")
    for rank in recorders.ranks:
        for entry in rank.entries[:3]:
            entry["collective_seq_id"] = 3
    recorders.ranks[1].entries = recorders.ranks[1].entries[1:]
    finding = one(recorders)
    assert (finding.rule, finding.ranks) == ("rank-not-joined", (1,))


def test_a_rank_without_a_dump_is_told_of_and_never_blamed() -> None:
    finding = one(hung(4, 5, 6, 7), ranks=[0, 1, 2, 3, *range(8, 16)])
    assert finding.rule == "rank-left-no-dump"
    assert (finding.role, finding.domain) == (Role.SYMPTOM, Domain.UNKNOWN)
    assert (finding.ranks, finding.nodes) == ((), ())
    assert finding.peers == ("node-1",)
    assert finding.sentence.startswith("Ranks 4-7 left no dump, so whether they called all_reduce")


def test_a_dump_that_could_not_be_read_was_left_all_the_same() -> None:
    left = dumps_of(hung(4, 5, 6, 7), [0, 1, 2, 3, *range(8, 16)])
    (finding,) = judge(left, on_nodes(4), ATTEMPT, NOW, unread={6, 7})
    assert "Ranks 4-5 left no dump and the dumps of ranks 6-7 could not be read" in finding.sentence


def test_wrapped_recorders_lack_what_they_lost_and_nobody_skipped_it() -> None:
    """One rank keeps ten entries, the others all: what it lost says nothing against it."""
    recorders = hung(5, world=8)
    dumps = dumps_of(recorders)
    recorders.ranks[2].entries = recorders.ranks[2].entries[-2:]
    dumps[2] = dumps_of(recorders, [2])[0]
    assert dumps[2].first_record == 4
    (finding,) = judge(dumps, on_nodes(4), ATTEMPT, NOW)
    assert finding.ranks == (5,)


def test_entries_alone_tell_where_the_status_is_missing() -> None:
    recorders = hung(5, world=8)
    told = [
        decode(torch_pickle({**recorders.dump(rank), "pg_status": {}}), rank) for rank in range(8)
    ]
    dumps = [dump for dump in told if isinstance(dump, Dump)]
    (finding,) = judge(dumps, on_nodes(4), ATTEMPT, NOW)
    assert (finding.rule, finding.ranks) == ("rank-not-joined", (5,))


def test_the_status_alone_tells_where_entries_are_missing() -> None:
    recorders = hung(5, world=8)
    told = [decode(as_json({**recorders.dump(rank), "entries": []}), rank) for rank in range(8)]
    dumps = [dump for dump in told if isinstance(dump, Dump)]
    (finding,) = judge(dumps, on_nodes(4), ATTEMPT, NOW)
    assert (finding.rule, finding.ranks, finding.at) == ("rank-not-joined", (5,), None)


def test_groups_of_one_name_and_other_members_are_told_apart() -> None:
    """Each half counts its groups by itself, so both call theirs 1."""
    first = Recorders(4, groups={"1": [0, 1]})
    second = Recorders(4, groups={"1": [2, 3]})
    for recorders in (first, second):
        recorders.call("1")
    first.call("1")
    dumps = [*dumps_of(first, [0, 1]), *dumps_of(second, [2, 3])]
    assert judge(dumps, on_nodes(2), ATTEMPT, NOW) == ()


def test_a_rank_inside_the_call_itself_is_said_to_be_there() -> None:
    """PyTorch counts a collective as enqueued when NCCL's call has returned."""
    recorders = hung(world=8)
    recorders.ranks[5].status["0"] = [5, 5, 5]
    finding = one(recorders)
    assert finding.ranks == (5,)
    assert finding.sentence.startswith("Rank 5 began to call and did not come back from")


def pipeline() -> Recorders:
    recorders = Recorders(4, groups={"1": range(4)})
    for source in range(3):
        recorders.pair("1", source, "send", (source, source + 1), "completed")
        recorders.pair("1", source + 1, "recv", (source, source + 1), "completed")
    return recorders


def test_stages_of_a_pipeline_wait_for_the_first_that_sends_nothing() -> None:
    recorders = pipeline()
    for target in (2, 3):
        recorders.pair("1", target, "recv", (target - 1, target), "started")
    finding = one(recorders, ranks_each=2)
    assert (finding.rule, finding.ranks, finding.nodes) == ("rank-not-joined", (1,), ("node-0",))


def test_a_send_that_meets_its_receive_and_does_not_end_stands_in_the_transport() -> None:
    recorders = pipeline()
    recorders.pair("1", 0, "send", (0, 1), "started")
    recorders.pair("1", 1, "recv", (0, 1), "started")
    assert one(recorders).rule == "rank-stuck-in-transport"


def test_a_job_whose_collectives_all_ended_is_told_nothing_of() -> None:
    recorders = parallel()
    assert found(recorders) == ()
    assert judge([], nowhere, ATTEMPT, NOW) == ()


def test_refused_dumps_are_told_of_and_half_written_ones_are_not() -> None:
    refused = [
        Refused(rank=3, file="/srv/d/3", why="it holds GLOBAL at byte 2"),
        Refused(rank=4, file="/srv/d/4", why="it is empty", is_cut=True),
    ]
    (finding,) = refusals(refused, ATTEMPT, NOW)
    assert (finding.rule, finding.ranks) == ("recorder-refused", (3,))
    assert (finding.role, finding.remedy) == (Role.SYMPTOM, Remedy.REPORT)
    assert "GLOBAL at byte 2" in finding.sentence


@settings(max_examples=100, deadline=None)
@given(some.data())
def test_whatever_ranks_call_the_same_dumps_lead_to_the_same_words(data: some.DataObject) -> None:
    """Findings are bounded, name ranks of the job, and do not depend on the dumps' order."""
    recorders = Recorders(6, groups={"1": [0, 1, 2], "2": [3, 4, 5], "3": [0, 3]})
    for _ in range(data.draw(some.integers(1, 8))):
        group = data.draw(some.sampled_from(["0", "1", "2", "3"]))
        members = sorted(data.draw(some.sets(some.sampled_from(list(recorders.groups[group])))))
        state = data.draw(some.sampled_from(["scheduled", "started", "completed"]))
        name = data.draw(some.sampled_from(["all_reduce", "broadcast"]))
        recorders.call(group, ranks=members, state=state, name=name)
    left = sorted(data.draw(some.sets(some.integers(0, 5))))
    dumps = dumps_of(recorders, left)
    told = judge(dumps, on_nodes(3), ATTEMPT, NOW)
    assert told == judge(dumps[::-1], on_nodes(3), ATTEMPT, NOW)
    for finding in told:
        assert set(finding.ranks) <= set(left)
        assert len(finding.evidence) <= 16
        assert pickle.dumps(finding)
        if finding.domain is Domain.APPLICATION:
            assert finding.nodes == ()
