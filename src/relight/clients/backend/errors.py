"""What can go wrong between a client and the backend, by what the caller can do about it."""

from __future__ import annotations


class BackendError(Exception):
    """The base of all errors of the backend client."""


class BackendUnreachable(BackendError):  # noqa: N818 - named by what it says, like its siblings
    """Nobody answers: start the backend, or name the right one."""


class BackendRefused(BackendError):  # noqa: N818 - named by what it says, like its siblings
    """The backend understood and said no: correct the request."""


class TokenRefused(BackendRefused):
    """The backend wants a token, or another one: give it the one from its file."""


class NotFound(BackendRefused):
    """What was asked for does not exist."""


class BackendFailed(BackendError):  # noqa: N818 - named by what it says, like its siblings
    """The backend answered with a failure of its own, or with something else than an answer."""
