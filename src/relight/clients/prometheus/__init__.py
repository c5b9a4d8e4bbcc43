"""A metrics server with the API of Prometheus, asked within bounds of time and size."""

from __future__ import annotations

from relight.clients.prometheus.answers import Answer, Row
from relight.clients.prometheus.errors import (
    AccessRefused,
    AnswerTooLarge,
    MetricsError,
    QueryRefused,
    ServerFailed,
    ServerUnreachable,
)
from relight.clients.prometheus.servers import MetricsServer

__all__ = [
    "AccessRefused",
    "Answer",
    "AnswerTooLarge",
    "MetricsError",
    "MetricsServer",
    "QueryRefused",
    "Row",
    "ServerFailed",
    "ServerUnreachable",
]
