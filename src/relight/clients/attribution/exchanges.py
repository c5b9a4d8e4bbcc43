"""One exchange with an attribution service over HTTP, bounded in time and size."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TypeVar

import msgspec
import urllib3
from urllib3.exceptions import HTTPError, LocationParseError

from relight.clients.attribution.opinions import ServiceFailed

LARGEST_ANSWER = 4 * 1024 * 1024
"""Bytes; an opinion has a few hundred, the raw result beside one of nvrx-attrsvc some thousand."""
LARGEST_TOKEN = 16_384
_STEP = 65_536
_FIRST_REFUSAL = 400

Answer = TypeVar("Answer")


class Exchange:
    """Asks one service. ``token_file`` is read anew each time, since tokens are renewed."""

    def __init__(self, url: str, *, token_file: str = "", timeout: float = 10.0) -> None:
        self._url = url.rstrip("/")
        self._token_file = token_file
        self._timeout = timeout
        self._pool = urllib3.PoolManager(retries=False)

    def get(self, path: str, query: dict[str, str], kind: type[Answer]) -> Answer:
        """Return the answer to a GET.

        Raises:
            ServiceFailed: there was none, or not of this kind.

        """
        return self._decoded(self._exchange("GET", path, None, query), kind)

    def post(self, path: str, body: object, kind: type[Answer]) -> Answer:
        """Return the answer to a POST of ``body`` as JSON.

        Raises:
            ServiceFailed: there was none, or not of this kind.

        """
        return self._decoded(self._exchange("POST", path, msgspec.json.encode(body), None), kind)

    def _exchange(
        self, method: str, path: str, body: bytes | None, query: dict[str, str] | None
    ) -> bytes:
        headers = self._headers(has_body=body is not None)
        deadline = time.monotonic() + self._timeout
        try:
            answer = self._pool.request(
                method,
                self._url + path,
                body=body,
                fields=query,
                headers=headers,
                preload_content=False,
                redirect=False,
                timeout=urllib3.Timeout(connect=min(self._timeout, 5.0), read=self._timeout),
            )
            try:
                read = self._read(answer, deadline)
            finally:
                answer.close()
        except (HTTPError, LocationParseError, OSError, ValueError) as error:
            raise ServiceFailed(f"{self._url} does not answer: {_cause(error)}") from error
        if answer.status >= _FIRST_REFUSAL:
            shown = read[:200].decode(errors="replace").strip()
            raise ServiceFailed(f"{self._url}{path} answered {answer.status}: {shown!a}")
        return read

    def _headers(self, *, has_body: bool) -> dict[str, str]:
        headers = {"Content-Type": "application/json"} if has_body else {}
        if self._token_file:
            headers["Authorization"] = f"Bearer {self._token()}"
        return headers

    def _token(self) -> str:
        try:
            with Path(self._token_file).open("rb") as file:
                return file.read(LARGEST_TOKEN).decode("ascii").strip()
        except (OSError, UnicodeError) as error:
            raise ServiceFailed(
                f"the token for {self._url} cannot be read ({error}): see its token_file"
            ) from error

    def _read(self, answer: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in answer.stream(_STEP):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ANSWER:
                raise ServiceFailed(f"{self._url} answered with more than {LARGEST_ANSWER} bytes")
            if time.monotonic() > deadline:
                raise ServiceFailed(f"{self._url} did not end its answer in {self._timeout:g} s")
        return b"".join(parts)

    def _decoded(self, read: bytes, kind: type[Answer]) -> Answer:
        try:
            return msgspec.json.decode(read, type=kind)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ServiceFailed(f"{self._url} answered what is no opinion: {error}") from error


def _cause(error: Exception) -> str:
    inner = error.__cause__
    told = inner if isinstance(inner, OSError) else error
    return f"{type(told).__name__}: {told}"[:300]
