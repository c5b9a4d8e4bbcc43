"""The audit for people, and what controllers report."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from litestar import get, post
from litestar.params import JSONBody, QueryParameter

from relight.clients.backend.answers import Accepted, AuditAnswer
from relight.model.audit import Topic
from relight.model.jobs import AttemptKey, JobKey
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome
from relight.serve.parameters import Cluster, Limit, PageToken, Served, read_instant, read_job
from relight.serve.problems import Wrong
from relight.store.filters import AuditFilters
from relight.store.keys import attempt_text, job_columns

LARGEST_OBSERVATION = 64 * 1024 * 1024
"""Ten thousand jobs that all changed are about a quarter of it."""


class Order(StrEnum):
    """In which order audit entries are listed."""

    OLDEST = "oldest"
    NEWEST = "newest"


Job = Annotated[str, QueryParameter(max_length=160, description="Only of this job: main:123.")]
Attempt = Annotated[
    int | None, QueryParameter(ge=0, le=2**31 - 1, description="Only of this attempt, from 0.")
]
About = Annotated[Topic | None, QueryParameter(description="Only about this.")]
Since = Annotated[
    str, QueryParameter(max_length=40, description="Not before this instant, ISO 8601.")
]
Until = Annotated[
    str, QueryParameter(max_length=40, description="Not after this instant, ISO 8601.")
]
InOrder = Annotated[Order, QueryParameter(description="The oldest first, or the newest.")]


@get(
    "/v1/audit/events",
    sync_to_thread=True,
    summary="List the audit",
    description="The append-only record of every signal, decision, refusal and order.",
    opt={
        "query": (
            "cluster", "job", "attempt", "topic", "since", "until", "order", "limit", "pageToken",
        )
    },
)  # fmt: skip
def list_audit(  # noqa: PLR0913 - a filter each
    ports: Served,
    *,
    cluster: Cluster = "",
    job: Job = "",
    attempt: Attempt = None,
    topic: About = None,
    since: Since = "",
    until: Until = "",
    order: InOrder = Order.OLDEST,
    limit: Limit = 100,
    page_token: PageToken = "",
) -> AuditAnswer:
    """List the audit."""
    filters = AuditFilters(
        cluster=cluster,
        job=read_job(job) if job else None,
        attempt=attempt,
        topic=topic,
        since=read_instant(since, "since"),
        until=read_instant(until, "until"),
    )
    newest_first = order is Order.NEWEST
    page = ports.records.audit(filters, limit, page_token, newest_first=newest_first)
    return AuditAnswer(events=page.items, next_page_token=page.next)


@post(
    "/v1/observations",
    sync_to_thread=True,
    status_code=200,
    summary="Hand over an observation",
    description="For controllers: one look at a cluster. The same one may be sent again.",
    request_max_body_size=LARGEST_OBSERVATION,
)
def post_observation(ports: Served, data: JSONBody[Observation]) -> Accepted:
    """Take in an observation."""
    _check_names(data)
    ports.daemon.observe(data)
    return Accepted(sentence=f"observation {data.sequence} of {data.cluster} was taken in")


def _check_names(observation: Observation) -> None:
    """Refuse a report as a whole before any of it counts: one wrong name spoils no other job.

    Raises:
        Wrong: a job or node belongs to another cluster.
        StoreRefused: an id is too long, or a restart count too large.

    """
    clusters = {fact.cluster for fact in observation.jobs}
    clusters |= {node.cluster for node in observation.nodes}
    if foreign := clusters - {observation.cluster}:
        raise Wrong(
            f"an observation of {observation.cluster[:80]} holds what belongs to "
            f"{min(foreign)[:80]}: send one for each cluster"
        )
    for scheduler_id in observation.present:
        job_columns(JobKey(cluster=observation.cluster, scheduler_id=scheduler_id))
    for fact in observation.jobs:
        job = JobKey(cluster=fact.cluster, scheduler_id=fact.scheduler_id)
        attempt_text(AttemptKey(job=job, attempt=fact.restart_count))


@post(
    "/v1/outcomes",
    sync_to_thread=True,
    status_code=200,
    summary="Tell what became of an order",
    description="For controllers: the order carries its key, so the same one may be sent again.",
    request_max_body_size=1024 * 1024,
)
def post_outcome(ports: Served, data: JSONBody[OrderOutcome]) -> Accepted:
    """Take in what became of an order."""
    ports.daemon.outcome(data)
    return Accepted(sentence=f"the outcome of {data.order.key} was taken in")
