"""Prometheus and VictoriaMetrics as processes of their own that die with this one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Self

import urllib3

from relight.testing.metrics.past import Told, as_openmetrics, as_prometheus_text
from relight.testing.slurm.processes import Daemon

_READY_SECONDS = 20.0
_PUSH_SECONDS = 30.0


class _Server:
    """One server on the loopback, with its data in a folder of its own."""

    def __init__(self, name: str, folder: Path, port: int, command: Iterable[str]) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self._http = urllib3.PoolManager(retries=False)
        self._daemon = Daemon(name, command, env=os.environ, output=folder / f"{name}.log")

    @property
    def pid(self) -> int | None:
        """Return its process id, None when it does not run."""
        return self._daemon.pid

    def stop(self) -> None:
        """End it at once."""
        self._daemon.kill()
        self._http.clear()

    def _start(self, ready: str) -> None:
        self._daemon.start()
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and self.pid is not None:
            try:
                if self._http.request("GET", self.url + ready, timeout=1.0).status == HTTPStatus.OK:
                    return
            except urllib3.exceptions.HTTPError:
                time.sleep(0.05)
        said = self._daemon.last_words()
        self.stop()
        raise RuntimeError(f"{self._daemon.name} was not ready in {_READY_SECONDS:.0f} s: {said}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Prometheus(_Server):
    """A real Prometheus."""

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        targets: Mapping[str, Iterable[str]] | None = None,
        past: Iterable[Told] = (),
    ) -> Self:
        """Start it over ``past``, scraping the addresses of each job of ``targets`` every second.

        Raises:
            RuntimeError: it was not ready in time.

        """
        data = folder / "data"
        if past := tuple(past):
            _blocks(folder, data, past)
        scrapes = [
            {"job_name": job, "static_configs": [{"targets": list(addresses)}]}
            for job, addresses in (targets or {}).items()
        ]
        interval = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        # JSON is YAML, so no writer of YAML is needed.
        configuration = folder / "prometheus.yml"
        configuration.write_text(json.dumps({"global": interval, "scrape_configs": scrapes}))
        port = _free_port()
        server = cls(
            "prometheus",
            folder,
            port,
            (
                "prometheus",
                f"--config.file={configuration}",
                f"--storage.tsdb.path={data}",
                f"--web.listen-address=127.0.0.1:{port}",
            ),
        )
        server._start("/-/ready")
        return server


class VictoriaMetrics(_Server):
    """A real VictoriaMetrics, with one node."""

    @classmethod
    def start(cls, folder: Path, *, past: Iterable[Told] = ()) -> Self:
        """Start it and push ``past``.

        Raises:
            RuntimeError: it was not ready in time, or refused what was pushed.

        """
        port = _free_port()
        server = cls(
            "victoria-metrics",
            folder,
            port,
            (
                "victoria-metrics",
                f"-storageDataPath={folder / 'data'}",
                f"-httpListenAddr=127.0.0.1:{port}",
                "-retentionPeriod=1y",
                "-search.latencyOffset=0s",  # by itself it hides the last 30 seconds
                "-memory.allowedBytes=256MiB",
            ),
        )
        server._start("/health")
        if past := tuple(past):
            server.push(past)
        return server

    def push(self, series: Iterable[Told]) -> None:
        """Take samples in; they can be asked for when this returns.

        Raises:
            RuntimeError: it refused them.

        """
        body = "".join(as_prometheus_text(series)).encode()
        path = "/api/v1/import/prometheus"
        answer = self._http.request("POST", self.url + path, body=body, timeout=_PUSH_SECONDS)
        if answer.status != HTTPStatus.NO_CONTENT:
            raise RuntimeError(f"VictoriaMetrics answered {answer.status}: {answer.data[:200]!r}")
        self._http.request("GET", self.url + "/internal/force_flush", timeout=_PUSH_SECONDS)


def _blocks(folder: Path, data: Path, past: Iterable[Told]) -> None:
    """Write samples of the past as blocks of Prometheus's own storage."""
    text = folder / "past.om"
    text.write_text("".join(as_openmetrics(past)))
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_READY_SECONDS,
        check=True,
    )


def _free_port() -> int:
    """Return a port of the loopback that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
