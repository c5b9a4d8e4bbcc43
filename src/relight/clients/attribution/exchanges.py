"""One exchange with an attribution service, bounded in time and size."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from relight.clients.attribution.opinions import ServiceFailed
from relight.clients.exchanges import (
    Limits,
    NoAnswer,
    TokenUnread,
    TooLarge,
    exchange,
    read_token,
)

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes; an opinion has a few hundred, the raw result beside one of nvrx-attrsvc some thousand."""
_FIRST_REFUSAL = 400

Answer = TypeVar("Answer")


class Exchange:
    """Asks one service. ``token_file`` is read anew each time, since tokens are renewed."""

    def __init__(self, url: str, *, token_file: str = "", timeout: float = 10.0) -> None:
        self._url = url.rstrip("/")
        self._token_file = token_file
        self._limits = Limits(seconds=timeout, most_bytes=LARGEST_ANSWER)

    def get(self, path: str, query: dict[str, str], kind: type[Answer]) -> Answer:
        """Return the answer to a GET.

        Raises:
            ServiceFailed: there was none, or not of this kind.

        """
        return self._asked("GET", f"{path}?{urlencode(query)}", None, kind)

    def post(self, path: str, body: object, kind: type[Answer]) -> Answer:
        """Return the answer to a POST of ``body`` as JSON.

        Raises:
            ServiceFailed: there was none, or not of this kind.

        """
        return self._asked("POST", path, msgspec.json.encode(body), kind)

    def _asked(self, method: str, path: str, body: bytes | None, kind: type[Answer]) -> Answer:
        try:
            answer = exchange(method, self._url + path, self._headers(body), body, self._limits)
        except (NoAnswer, TooLarge) as error:
            raise ServiceFailed(str(error)) from error
        except TokenUnread as error:
            raise ServiceFailed(f"{self._url} cannot be asked: {error}") from error
        if answer.status >= _FIRST_REFUSAL:
            shown = answer.body[:200].decode(errors="replace").strip()
            raise ServiceFailed(f"{self._url}{path} answered {answer.status}: {shown!a}")
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ServiceFailed(f"{self._url} answered what is no opinion: {error}") from error

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._token_file:
            headers["Authorization"] = f"Bearer {read_token(self._token_file)}"
        return headers
