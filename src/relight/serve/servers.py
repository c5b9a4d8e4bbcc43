"""The HTTP interface on a socket, in a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from typing import Self

import structlog
import uvicorn
from litestar import Litestar

from relight.serve.advice_routes import STOPPING
from relight.serve.guards import is_loopback

_START_SECONDS = 10.0
_STOP_SECONDS = 3.0
_FORCED_STOP_SECONDS = 1.0

_log = structlog.get_logger("relight.http")


class CannotListen(Exception):  # noqa: N818 - named by what it says
    """The address cannot be used: correct the settings, or end what uses it."""


class ServerHandle:
    """A running server. ``stop()`` may be called more than once."""

    def __init__(
        self, app: Litestar, server: uvicorn.Server, thread: threading.Thread, url: str
    ) -> None:
        self.url = url
        self._app = app
        self._server = server
        self._thread = thread

    @property
    def has_ended(self) -> bool:
        """Return whether nothing of the server runs any more."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """End the server: those who wait are answered at once, the rest gets a second.

        A request that a database holds up for longer is left to end with the process.
        """
        self._app.state[STOPPING] = True
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        if not self.has_ended:
            self._server.force_exit = True
            self._thread.join(_FORCED_STOP_SECONDS)
        if not self.has_ended:
            _log.warning("a request takes too long and is cut off by the end")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def run_server(app: Litestar, host: str, port: int) -> ServerHandle:
    """Serve ``app`` until the handle is stopped; port 0 takes a free one, named in ``url``.

    Raises:
        CannotListen: the host is not this machine alone (nothing is encrypted), or the address
            is taken.

    """
    if not is_loopback(host):
        raise CannotListen(
            f"relight does not listen on {host}: nothing is encrypted, so the token could be "
            "read on the way; use 127.0.0.1 and an SSH tunnel"
        )
    listening = _listen(host, port)
    app.state[STOPPING] = False
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=1, server_header=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, args=([listening],), name="relight-http", daemon=True
    )
    thread.start()
    handle = ServerHandle(app, server, thread, _url(listening))
    deadline = time.monotonic() + _START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            handle.stop()
            listening.close()
            raise CannotListen(f"the server on {handle.url} did not start: see the log")
        time.sleep(0.005)
    return handle


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        raise CannotListen(
            f"cannot listen on {host}:{port}: {error}; end what uses it, or choose another port"
        ) from error
    return listening


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
