"""What can go wrong between relight and a metrics server, by what the caller can do about it."""

from __future__ import annotations


class MetricsError(Exception):
    """The base of all errors of this client; the message is one sentence for the operator."""


class ServerUnreachable(MetricsError):  # noqa: N818 - named by what it says, like its siblings
    """Nobody answers, or not in time: start the server, or name the right one."""


class AccessRefused(MetricsError):  # noqa: N818 - named by what it says, like its siblings
    """The server wants a token, another one, or another tenant."""


class QueryRefused(MetricsError):  # noqa: N818 - named by what it says, like its siblings
    """The server understood and said no to this query: correct it."""


class ServerFailed(MetricsError):  # noqa: N818 - named by what it says, like its siblings
    """The server answered with a failure of its own, or with something else than an answer."""


class AnswerTooLarge(MetricsError):  # noqa: N818 - named by what it says, like its siblings
    """The answer is larger than what is read: ask for fewer series or a shorter time."""
