from __future__ import annotations

import pytest

from relight.model.jobs import JobFact, JobState, NodeFact, NodeState
from relight.policy.capacity import Capacity, count_nodes
from relight.testing.stories import fact


def node(name: str, state: NodeState = NodeState.UP, **fields: object) -> NodeFact:
    partitions = fields.get("partitions", ("train", "debug"))
    assert isinstance(partitions, tuple)
    return NodeFact(
        cluster="main",
        name=name,
        state=state,
        partitions=partitions,
        is_idle=bool(fields.get("is_idle", True)),
    )


JOB = fact(JobState.FAILED)
FOUR = [node("n1", is_idle=False), node("n2", is_idle=False), node("n3"), node("n4")]


@pytest.mark.parametrize(
    ("nodes", "job", "own", "without", "now", "ever"),
    [
        (FOUR, JOB, (), (), 2, 4),
        (FOUR, JOB, ("n1", "n2"), (), 4, 4),
        (FOUR, JOB, ("n1", "n2"), ("n2",), 3, 3),
        (FOUR, JOB, ("n1", "n2"), ("n2", "n9"), 3, 3),
        (FOUR, fact(JobState.FAILED, excluded_nodes=("n4",)), ("n1",), ("n2",), 2, 2),
        (FOUR, fact(JobState.FAILED, partition="debug"), (), (), 2, 4),
        (FOUR, fact(JobState.FAILED, partition="other"), (), (), 0, 0),
        (FOUR, fact(JobState.FAILED, partition=""), (), (), 2, 4),
        ([node("n1", partitions=())], JOB, (), (), 1, 1),
        ([node("n1", partitions=("debug",))], JOB, (), (), 0, 0),
        ([], JOB, ("n1",), (), 0, 0),
        *(
            ([node("n1", state)], JOB, ("n1",), (), 0, 0)
            for state in NodeState
            if state is not NodeState.UP
        ),
    ],
)
def test_nodes_count_that_are_up_in_the_partition_and_not_left_out(  # noqa: PLR0913 - columns of the table
    *,
    nodes: list[NodeFact],
    job: JobFact,
    own: tuple[str, ...],
    without: tuple[str, ...],
    now: int,
    ever: int,
) -> None:
    assert count_nodes(nodes, job, own, without) == Capacity(fit_now=now, fit_ever=ever)
