"""One exchange over HTTP that ends by its deadline, whatever the other side does."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Self

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.response import HTTPResponse
from urllib3.util import Url, parse_url

_PIECE = 64 * 1024
_CUT_AGAIN = 0.05
"""Seconds between two cuts: a connection that was just being made is caught by the next one."""
_LONGEST_CAUSE = 200
_LONGEST_TOKEN = 16_384


class NoAnswer(Exception):  # noqa: N818 - named by what it says
    """Nobody answers, or not all of it in time; the message says what to look at."""


class TooLarge(Exception):  # noqa: N818 - named by what it says
    """The body has more bytes than are read."""


class TokenUnread(Exception):  # noqa: N818 - named by what it says
    """The file of a token cannot be read, or holds none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one exchange may take in all, in seconds, and how many bytes are read of it."""

    seconds: float
    most_bytes: int


@dataclass(frozen=True, slots=True)
class Response:
    """The status of an answer and all of its body."""

    status: int
    body: bytearray


def exchange(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits
) -> Response:
    """Ask ``url`` once over a connection of its own and return the answer; redirects are answers.

    Certificates are verified against those that this machine trusts. The deadline covers
    connecting, the head and the body: a timeout of the socket alone never ends where a server
    sends one byte now and then. Only the look-up of the host's name keeps to its own time.

    Raises:
        NoAnswer: there was no answer, or not all of it in time.
        TooLarge: the body has more bytes than ``limits`` allow.

    """
    connection, parsed = _connection(url, limits)
    with contextlib.closing(connection), _Deadline(connection, limits.seconds) as deadline:
        try:
            connection.connect()
            deadline.socket = connection.sock
            connection.request(
                method, parsed.request_uri, body=body, headers=headers, preload_content=False
            )
            response = connection.getresponse()
            read = _read(response, url, limits.most_bytes)
        except (HTTPError, HTTPException, OSError, ValueError) as error:
            if deadline.is_over.is_set() or isinstance(error, TimeoutError):
                raise _too_slow(url, limits) from error
            raise NoAnswer(
                f"no server answers at {url} ({_cause(error)}): start it, or correct its url in "
                "the settings"
            ) from error
        if (
            deadline.is_over.is_set()
        ):  # a body that ends with its connection looks complete when cut
            raise _too_slow(url, limits)
        return Response(status=response.status, body=read)


def read_token(file: str) -> str:
    """Return what a file of a token holds now: it may be renewed at any time.

    A path that leads to a pipe or a device never blocks.

    Raises:
        TokenUnread: it cannot be read, or holds no token.

    """
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(file, flags), "rb") as opened:
            token = (opened.read(_LONGEST_TOKEN) or b"").decode("ascii").strip()
    except (OSError, UnicodeError) as error:
        raise TokenUnread(f"the token cannot be read ({error}): see its token_file") from error
    if not token or not token.isprintable():
        raise TokenUnread(f"{file} holds no token: write one line")
    return token


def _connection(url: str, limits: Limits) -> tuple[HTTPConnection, Url]:
    try:
        parsed = parse_url(url)
    except LocationParseError as error:
        raise _not_a_url(url) from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise _not_a_url(url)
    if parsed.scheme == "http":
        return HTTPConnection(parsed.host, parsed.port, timeout=limits.seconds), parsed
    context = ssl.create_default_context()
    secure = HTTPSConnection(parsed.host, parsed.port, timeout=limits.seconds, ssl_context=context)
    return secure, parsed


class _Deadline:
    """Cuts a connection when its time is over, from a thread of its own.

    ``socket`` is to be set when the connection is made: an answer that ends with its connection
    takes the socket over. ``is_over`` tells that it was cut.
    """

    def __init__(self, connection: HTTPConnection, seconds: float) -> None:
        self.socket: socket.socket | None = None
        self.is_over = threading.Event()
        self._is_done = threading.Event()
        self._connection = connection
        self._ends_at = time.monotonic() + seconds
        self._thread = threading.Thread(target=self._watch, name="relight-deadline", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()

    def _watch(self) -> None:
        wait = max(0.0, self._ends_at - time.monotonic())
        while not self._is_done.wait(wait):
            self.is_over.set()
            wait = _CUT_AGAIN
            cut = self.socket or self._connection.sock
            if cut is not None:
                with contextlib.suppress(OSError):
                    cut.shutdown(socket.SHUT_RDWR)


def _read(response: HTTPResponse, url: str, most: int) -> bytearray:
    body = bytearray()
    for piece in response.stream(_PIECE, decode_content=False):
        body += piece
        if len(body) > most:
            raise TooLarge(
                f"{url} answered with more than {most // (1024 * 1024)} MiB and was cut off"
            )
    return body


def _too_slow(url: str, limits: Limits) -> NoAnswer:
    return NoAnswer(
        f"{url} did not answer fully within {limits.seconds:.3g} s: look at the load of that "
        "server, or raise its timeout in the settings"
    )


def _not_a_url(url: str) -> NoAnswer:
    return NoAnswer(f"{url[:_LONGEST_CAUSE]!a} is not the URL of a server: write http://host:port")


def _cause(error: Exception) -> str:
    inner = error.__cause__
    told = inner if isinstance(inner, OSError) else error
    return f"{type(told).__name__}: {told}"[:_LONGEST_CAUSE]
