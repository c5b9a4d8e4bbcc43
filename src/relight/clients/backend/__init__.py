"""The backend over HTTP, for the controller and the command line; decides nothing."""

from __future__ import annotations

from relight.clients.backend.backends import BackendClient
from relight.clients.backend.errors import (
    BackendError,
    BackendFailed,
    BackendRefused,
    BackendUnreachable,
    NotFound,
    TokenRefused,
)

__all__ = [
    "BackendClient",
    "BackendError",
    "BackendFailed",
    "BackendRefused",
    "BackendUnreachable",
    "NotFound",
    "TokenRefused",
]
