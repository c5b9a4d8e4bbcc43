"""What is sent to Slurm, and how its answers are read, with a stand-in for the commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relight.clients.running import NotRun, Ran
from relight.clients.slurm import Commands, SlurmHands
from relight.model.instants import seconds
from relight.model.orders import Outcome

SHOW_ARGUMENTS = '#!/bin/sh\nfor one in "$0" "$@"; do printf "%s|" "$one" >&2; done\n'


def stand_in(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def hands(folder: Path, timeout: float = 5.0) -> SlurmHands:
    return SlurmHands(Commands({"PATH": os.defpath}, bin_dir=folder, timeout=timeout))


def test_the_orders_are_single_commands_with_each_value_in_one_word(tmp_path: Path) -> None:
    for name in ("scontrol", "scancel"):
        stand_in(tmp_path, name, SHOW_ARGUMENTS)
    acting = hands(tmp_path)
    sent = [
        acting.requeue("7", incomplete_only=True),
        acting.requeue("8_1", incomplete_only=False),
        acting.requeue("9+1", incomplete_only=False),
        acting.cancel("7"),
        acting.signal("7", name="USR1", batch_only=False),
        acting.signal("9+1", name="TERM", batch_only=True),
        acting.start("7", note="a b", exclude=("node-02", "node-01"), delay=None),
        acting.start("7", note="", exclude=(), delay=seconds(1.2)),
        acting.start("7", note='x\nNice=-5 "y"\x00\x1b[1m\u202e', exclude=("n1",), delay=None),
    ]
    assert {answer.outcome for answer in sent} == {Outcome.DONE}
    assert [answer.text.partition("|")[2] for answer in sent] == [
        "requeue|incomplete|7|",
        "requeue|8_1|",
        "requeue|9|",
        "7|",
        "--signal=USR1|7|",
        "--signal=TERM|--batch|9|",
        "update|JobId=7|AdminComment=a b|ExcNodeList=node-[01-02]|StartTime=now|",
        "update|JobId=7|AdminComment=|ExcNodeList=|StartTime=now+2|",
        'update|JobId=7|AdminComment=x Nice=-5 "y" [1m |ExcNodeList=n1|StartTime=now|',
    ]


@pytest.mark.parametrize("job", ["", "--help", "7 8", "7,8", "8_*", "8_[1-3]", "abc", "7\n8"])
def test_what_names_no_single_job_is_never_sent(tmp_path: Path, job: str) -> None:
    stand_in(tmp_path, "scontrol", "touch sent")
    acting = hands(tmp_path)
    for answer in (
        acting.requeue(job, incomplete_only=True),
        acting.start(job, note="", exclude=(), delay=None),
        acting.cancel(job),
        acting.signal(job, name="USR1", batch_only=False),
    ):
        assert answer.outcome is Outcome.REFUSED
        assert "nothing was sent" in answer.text


@pytest.mark.parametrize("name", ["", "KILL", "STOP", "9", "USR1 --full", "usr1", "USR1\n"])
def test_what_is_no_warning_is_never_sent(tmp_path: Path, name: str) -> None:
    stand_in(tmp_path, "scancel", "touch sent")
    answer = hands(tmp_path).signal("7", name=name, batch_only=False)
    assert answer.outcome is Outcome.REFUSED
    assert "nothing was sent" in answer.text


@pytest.mark.parametrize("node", ["a b", "n1 StartTime=now", "n[1-", "n1\nx"])
def test_what_names_no_node_is_never_sent(tmp_path: Path, node: str) -> None:
    answer = hands(tmp_path).start("7", note="", exclude=(node,), delay=None)
    assert answer.outcome is Outcome.REFUSED
    assert "nothing was sent" in answer.text


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("exit 0", Outcome.DONE),
        ("echo 'Job is pending execution for job 5' >&2; exit 1", Outcome.REFUSED),
        ("echo 'slurm_update error: Job has already finished' >&2; exit 1", Outcome.REFUSED),
        ("echo 'Invalid job id specified for job 9' >&2; exit 1", Outcome.REFUSED),
        ("echo 'Access/permission denied for job 9' >&2; exit 1", Outcome.REFUSED),
        (
            "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1",
            Outcome.UNCLEAR,
        ),
        ("echo 'Socket timed out on send/recv operation' >&2; exit 1", Outcome.UNCLEAR),
        ("echo 'Zero Bytes were transmitted or received' >&2; exit 1", Outcome.UNCLEAR),
        ("echo 'Unexpected message received for job 25' >&2; exit 1", Outcome.UNCLEAR),
        ("echo 'ssh: connect to host head: No route to host' >&2; exit 255", Outcome.UNCLEAR),
        ("kill -9 $$", Outcome.UNCLEAR),
        ("sleep 60", Outcome.UNCLEAR),
        ("yes", Outcome.UNCLEAR),
    ],
)
def test_answers_are_read_as_done_refused_or_unclear(
    tmp_path: Path, script: str, outcome: Outcome
) -> None:
    stand_in(tmp_path, "scontrol", script)
    acting = hands(tmp_path, timeout=0.5)
    assert acting.requeue("5", incomplete_only=False).outcome is outcome


def test_a_missing_command_is_unclear_and_says_so(tmp_path: Path) -> None:
    acting = SlurmHands(Commands({"PATH": str(tmp_path)}))
    answer = acting.requeue("5", incomplete_only=False)
    assert answer.outcome is Outcome.UNCLEAR
    assert "could not be started" in answer.text


def test_variables_that_would_filter_or_reformat_answers_do_not_reach_the_commands(
    tmp_path: Path,
) -> None:
    stand_in(tmp_path, "squeue", "env")
    env = {
        "PATH": os.defpath,
        "SLURM_CONF": "/etc/slurm.conf",
        "LC_ALL": "de_DE.UTF-8",
        "SQUEUE_PARTITION": "x",
        "SLURM_TIME_FORMAT": "relative",
        "SLURM_CLUSTERS": "other",
    }
    ran = Commands(env, bin_dir=tmp_path).look("squeue")
    assert isinstance(ran, Ran)
    seen = set(ran.output.decode().split())
    assert {"SLURM_CONF=/etc/slurm.conf", "LC_ALL=C"} <= seen
    assert not [word for word in seen if word.startswith(("SQUEUE_", "SLURM_T", "SLURM_CL"))]


def test_a_prefix_comes_before_every_command(tmp_path: Path) -> None:
    stand_in(tmp_path, "hop", SHOW_ARGUMENTS)
    commands = Commands({"PATH": os.defpath}, ("hop", "head"), bin_dir=tmp_path)
    for ran in (commands.look("squeue", "-h"), commands.change("scancel", "1")):
        assert not isinstance(ran, NotRun)
        assert ran.errors.split(b"|", 1)[1] in {b"head|squeue|-h|", b"head|scancel|1|"}


def test_a_changing_command_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    stand_in(tmp_path, "scontrol", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    program = (
        "import os, pathlib, sys\n"
        "from relight.clients.slurm import Commands, SlurmHands\n"
        "commands = Commands(dict(os.environ), bin_dir=pathlib.Path(sys.argv[1]), timeout=60)\n"
        "SlurmHands(commands).requeue('1', incomplete_only=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) as life:
        pid = _wait_for_text(tmp_path / "pid")
        life.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while _is_alive(pid):
        assert time.monotonic() < deadline, "the command outlived the process that started it"
        time.sleep(0.02)


def _wait_for_text(path: Path) -> int:
    deadline = time.monotonic() + 10
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(path.read_text())


def _is_alive(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return False
    return fields[0] != "Z"
