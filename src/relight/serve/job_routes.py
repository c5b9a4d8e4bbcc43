"""Questions about jobs and their incidents."""

from __future__ import annotations

from typing import Annotated

from litestar import get
from litestar.params import PathParameter, QueryParameter

from relight.clients.backend.answers import IncidentsAnswer, JobAnswer, JobsAnswer
from relight.model.jobs import JobState
from relight.serve.lines import incident_lines, job_line
from relight.serve.parameters import Cluster, JobText, Limit, PageToken, Served, read_job
from relight.serve.problems import NotThere
from relight.store.filters import CaseFilters

User = Annotated[str, QueryParameter(max_length=255, description="Only of this user.")]
Name = Annotated[str, QueryParameter(max_length=255, description="Only of this name, whole.")]
Partition = Annotated[str, QueryParameter(max_length=255, description="Only of this partition.")]
State = Annotated[JobState | None, QueryParameter(name="state", description="Only in this state.")]
Open = Annotated[
    bool | None,
    QueryParameter(
        name="open", description="Only those of which something can still come, or not."
    ),
]
SchedulerId = Annotated[str, PathParameter(max_length=64, description="The scheduler's own id.")]


@get(
    "/v1/jobs",
    sync_to_thread=True,
    summary="List jobs",
    description="Jobs, those that are open first, then the newest first.",
    opt={"query": ("cluster", "user", "state", "partition", "name", "open", "limit", "pageToken")},
)
def list_jobs(  # noqa: PLR0913 - a filter each
    ports: Served,
    *,
    cluster: Cluster = "",
    user: User = "",
    job_state: State = None,
    partition: Partition = "",
    name: Name = "",
    only_open: Open = None,
    limit: Limit = 100,
    page_token: PageToken = "",
) -> JobsAnswer:
    """List jobs."""
    filters = CaseFilters(
        cluster=cluster, user=user, state=job_state, partition=partition, name=name, open=only_open
    )
    page = ports.records.cases(filters, limit, page_token)
    return JobsAnswer(jobs=tuple(map(job_line, page.items)), next_page_token=page.next)


@get(
    "/v1/jobs/{key:str}",
    sync_to_thread=True,
    summary="Show a job",
    description="One job with its attempts, their incidents and the advice on each.",
)
def show_job(ports: Served, key: JobText) -> JobAnswer:
    """Show one job."""
    case = ports.records.case(read_job(key))
    if case is None:
        raise NotThere(f"there is no job {key}")
    return JobAnswer(job=job_line(case), case=case)


@get(
    "/v1/jobs/by-scheduler-id/{scheduler_id:str}",
    sync_to_thread=True,
    summary="Find jobs by the scheduler's id",
    description="Every job of any cluster that bears or bore this id, the newest first.",
    opt={"query": ("cluster",)},
)
def find_jobs(ports: Served, scheduler_id: SchedulerId, cluster: Cluster = "") -> JobsAnswer:
    """Find jobs by the scheduler's id."""
    filters = CaseFilters(scheduler_id=scheduler_id, cluster=cluster)
    cases = ports.records.cases(filters, 250).items
    if not cases:
        raise NotThere(
            f"no watched job bears the id {scheduler_id}: no opt-in covers it, and its comment "
            "does not name relight"
        )
    newest_first = sorted(cases, key=lambda case: case.key.reuse, reverse=True)
    return JobsAnswer(jobs=tuple(map(job_line, newest_first)))


@get(
    "/v1/incidents",
    sync_to_thread=True,
    summary="List incidents",
    description="The incidents of a page of jobs, those of open jobs first; limit counts jobs.",
    opt={"query": ("cluster", "open", "limit", "pageToken")},
)
def list_incidents(
    ports: Served,
    *,
    cluster: Cluster = "",
    only_open: Open = None,
    limit: Limit = 100,
    page_token: PageToken = "",
) -> IncidentsAnswer:
    """List incidents."""
    filters = CaseFilters(cluster=cluster, open=only_open, with_incident=True)
    page = ports.records.cases(filters, limit, page_token)
    lines = tuple(line for case in page.items for line in incident_lines(case))
    return IncidentsAnswer(incidents=lines, next_page_token=page.next)
