"""The parameters that several routes share, and how their texts are read."""

from __future__ import annotations

from typing import Annotated

from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, SkipValidation

from relight.model.instants import Instant, from_iso
from relight.model.jobs import AttemptKey, JobKey
from relight.serve.ports import Ports
from relight.serve.problems import Wrong

Served = NamedDependency[SkipValidation[Ports]]
Limit = Annotated[
    int, QueryParameter(ge=1, le=250, description="How many at most; 100 by default.")
]
PageToken = Annotated[
    str,
    QueryParameter(
        name="pageToken", max_length=100, description="nextPageToken of the page before."
    ),
]
Cluster = Annotated[str, QueryParameter(max_length=64, description="Only of this cluster.")]
JobText = Annotated[
    str, PathParameter(max_length=160, description="A job: main:123, main:8_1 or main:123~1.")
]
AttemptText = Annotated[
    str, PathParameter(max_length=160, description="An attempt: main:123-0, the first of main:123.")
]


def read_job(text: str) -> JobKey:
    """Return the job that a text names.

    Raises:
        Wrong: the text has another form.

    """
    try:
        return JobKey.parse(text)
    except ValueError as error:
        raise Wrong(str(error)) from error


def read_attempt(text: str) -> AttemptKey:
    """Return the attempt that a text names.

    Raises:
        Wrong: the text has another form.

    """
    try:
        return AttemptKey.parse(text)
    except ValueError as error:
        raise Wrong(str(error)) from error


def read_instant(text: str, name: str) -> Instant | None:
    """Return the instant that a text names, None for an empty one.

    Raises:
        Wrong: the text is not ISO 8601.

    """
    if not text:
        return None
    try:
        return from_iso(text)
    except (ValueError, OverflowError) as error:
        raise Wrong(f'{name}: "{text}" is not ISO 8601, such as 2026-01-31T12:00:00Z') from error
