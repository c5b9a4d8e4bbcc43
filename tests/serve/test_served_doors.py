"""The doors of a real ``relight serve``: its token file, and what is not served at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

RELIGHT = [sys.executable, "-m", "relight.cli.app"]


def _environ(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RELIGHT_")}
    return {**kept, "RELIGHT_CONFIG": str(folder / "relight.toml")}


@pytest.fixture
def served_url(tmp_path: Path) -> Iterator[str]:
    """Give the URL of a process that watches a cluster whose commands do not exist."""
    (tmp_path / "relight.toml").write_text(
        f'[cluster.main]\nkind = "slurm"\nbin_dir = "{tmp_path}"\n'
        f'[store]\npath = "{tmp_path}/state"\n[serve]\nport = 0\n'
    )
    said = tmp_path / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [*RELIGHT, "serve"], stdout=out, stderr=out, env=_environ(tmp_path)
        )
    try:
        end = time.monotonic() + 30
        while (found := re.search(r"Listening on ([^\s;]+)", said.read_text())) is None:
            assert time.monotonic() < end, said.read_text()
            assert process.poll() is None, said.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_only_the_token_opens_a_server_and_nobody_can_speak_as_its_controller(
    served_url: str, tmp_path: Path
) -> None:
    token = (tmp_path / "state" / "token").read_text().strip()
    assert (tmp_path / "state" / "token").stat().st_mode & 0o777 == 0o640
    assert token not in (tmp_path / "said").read_text()
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(method: str, path: str, headers: dict[str, str] | None = None) -> int:
        body = b"{}" if method == "POST" else None
        url = served_url + path
        return urllib3.request(method, url, headers=headers, body=body, retries=False).status

    assert ask("GET", "/v1/jobs") == 401
    assert ask("GET", "/v1/jobs", given) == 200
    assert ask("GET", "/healthz") == 200
    assert ask("POST", "/v1/observations", given) == 404
    assert ask("POST", "/v1/outcomes", given) == 404
    done = subprocess.run(
        [*RELIGHT, "jobs", "--url", served_url],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env=_environ(tmp_path),
    )
    assert done.stdout == "no job matches\n"
