"""Record what a real Slurm prints for jobs in every state, for the tests of the parser.

``python tests/clients/record_slurm.py`` records the release installed here. With a folder that
holds another Debian (``debootstrap --include=slurm-wlm,munge trixie DIR``, with ``proc`` and
``dev`` mounted in it) as its argument, that one's. Takes about two minutes, as root.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

from relight.clients.slurm.listings import LISTING
from relight.testing.slurm import SlurmCluster

HERE = Path(__file__).parent / "slurm_recordings"
NEUTRAL_FOLDER = "/home/user"
NEUTRAL_HOST = "login"
SETTINGS = {
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "CANCEL",
    "PartitionName": "urgent Nodes=ALL PriorityTier=100 MaxTime=INFINITE State=UP",
}
SLEEP = "sleep 600"


class Recorder:
    """Writes what the cluster says of chosen jobs into one file a situation."""

    def __init__(self, cluster: SlurmCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder

    def record(self, name: str, *jobs: str) -> None:
        """Write the records of ``jobs``, named by their number, or by that of their array."""
        answer = json.loads(self.cluster.run("squeue", "--json", "--states=all"))
        wanted = {int(job) for job in jobs}
        answer["jobs"] = [
            job
            for job in answer["jobs"]
            if {job["job_id"], _number(job["array_job_id"]), _number(job["het_job_id"])} & wanted
        ]
        if not answer["jobs"]:
            raise SystemExit(f"{name}: squeue does not list {', '.join(jobs)} any more")
        self.write(f"{name}.json", json.dumps(answer, indent=1))

    def write(self, name: str, text: str) -> None:
        """Write a file with this machine's folder and host replaced by neutral ones."""
        text = text.replace(str(self.cluster.folder), NEUTRAL_FOLDER)
        text = text.replace(f'"{socket.gethostname()}"', f'"{NEUTRAL_HOST}"')
        (self.folder / name).write_text(text + "\n")


def main() -> None:
    """Start the cluster, bring jobs into each state, and write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, help="a folder with another Debian")
    root: Path | None = parser.parse_args().root
    folder = Path(tempfile.mkdtemp(prefix="relight-record-"))
    settings = {**SETTINGS, "Prolog": f"{folder}/prolog.sh"}
    with SlurmCluster.start(folder, settings=settings, root=root) as cluster:
        _write_prolog(folder)
        release = "{:02d}.{:02d}".format(*cluster.version())
        target = HERE / release
        target.mkdir(parents=True, exist_ok=True)
        record_all(Recorder(cluster, target))
    shutil.rmtree(folder.resolve())
    folder.unlink(missing_ok=True)
    sys.stdout.write(f"recorded {release} in {target}\n")


def record_all(recorder: Recorder) -> None:
    """Bring jobs into each state, one after the other.

    Out of memory needs cgroups, which this cluster does without.
    """
    cluster = recorder.cluster
    timed_out = cluster.submit(SLEEP, options=["-t1", "-J", "timeout"])
    _ended(recorder)
    _waiting(recorder)
    _living(recorder)
    _failing_nodes(recorder)
    _preempted(recorder)
    cluster.wait_state(timed_out, "TIMEOUT", timeout=150)
    recorder.record("timeout", timed_out)


def _ended(recorder: Recorder) -> None:
    cluster = recorder.cluster
    completed = cluster.submit("true", options=["-J", "completed", "-o", "out-%j.log"])
    failed = cluster.submit("exit 3", options=["-J", "failed", "-o", "o-%x", "-e", "e-%j"])
    signalled = cluster.submit("kill -SEGV $$", options=["-J", "signalled"])
    cancelled = cluster.submit(SLEEP, options=["-J", "cancelled"])
    cluster.wait_state(cancelled, "RUNNING")
    cluster.run("scancel", cancelled)
    for name, job in (("completed", completed), ("failed", failed), ("signalled", signalled)):
        cluster.wait_state(job, {"COMPLETED", "FAILED"})
        recorder.record(name, job)
    cluster.wait_state(cancelled, "CANCELLED")
    recorder.record("cancelled", cancelled)


def _waiting(recorder: Recorder) -> None:
    cluster = recorder.cluster
    pending = cluster.submit(
        SLEEP,
        options=[
            *("--begin=now+1hour", "-N2", "--ntasks-per-node=8", "--gpus-per-node=8", "-t90"),
            *("--exclude=node-01", "-J", 'a "name" State=FAILED', "--comment", '{"relight": {}}'),
        ],
    )
    note = 'AdminComment=the site\'s "own" text ExcNodeList=node-04'
    cluster.run("scontrol", "update", f"JobId={pending}", note)
    recorder.record("pending", pending)
    by_user = cluster.submit(SLEEP, options=["--hold", "-J", "held_by_user"])
    recorder.record("held_by_user", by_user)
    by_admin = cluster.submit(SLEEP, options=["--begin=now+1hour", "-J", "held_by_admin"])
    cluster.run("scontrol", "hold", by_admin)
    recorder.record("held_by_admin", by_admin)
    first = cluster.submit(SLEEP, options=["-J", "chain"])
    second = cluster.submit(SLEEP, options=["-J", "chain", f"--dependency=afterany:{first}"])
    third = cluster.submit(SLEEP, options=["-J", "chain", "--dependency=singleton"])
    cluster.wait_state(first, "RUNNING")
    recorder.record("chain", first, second, third)
    cluster.run("scancel", first, second, third)


def _living(recorder: Recorder) -> None:
    cluster = recorder.cluster
    running = cluster.submit(
        SLEEP, options=["-N3", "--ntasks=6", "--gpus=6", "-J", "running", "-t2:00:00"]
    )
    array = cluster.submit(SLEEP, options=["--array=0-3%2", "-J", "array"])
    het = cluster.submit("#!/bin/sh\n#SBATCH -N1 -J het\n#SBATCH hetjob\n#SBATCH -N2\n" + SLEEP)
    cluster.wait_state(running, "RUNNING")
    cluster.wait_state(f"{array}_1", "RUNNING")
    cluster.wait_state(het, "RUNNING", timeout=60)
    recorder.record("running", running)
    recorder.record("array", array)
    recorder.record("het", het)
    recorder.write("listing.txt", cluster.run(*LISTING))
    recorder.write("nodes.json", _nodes(cluster))
    stubborn = cluster.submit(
        "trap '' TERM\nwhile true; do sleep 1; done", options=["-J", "completing"]
    )
    cluster.wait_state(stubborn, "RUNNING")
    time.sleep(1)
    cluster.run("scontrol", "requeue", stubborn)
    cluster.wait_state(stubborn, "COMPLETING")
    recorder.record("completing", stubborn)
    cluster.wait_state(stubborn, "PENDING")
    recorder.record("requeued", stubborn)
    cluster.run("scancel", running, array, het, stubborn)


def _failing_nodes(recorder: Recorder) -> None:
    cluster = recorder.cluster
    once = cluster.submit(SLEEP, options=["--no-requeue", "-w", "node-02", "-J", "node_fail"])
    cluster.wait_state(once, "RUNNING")
    cluster.node_down("node-02", "test of a failure")
    cluster.wait_state(once, "NODE_FAIL")
    recorder.record("node_fail", once)
    cluster.run("scontrol", "update", "NodeName=node-04", "State=DRAIN", "Reason=bad disk")
    recorder.write("nodes_failed.json", _nodes(cluster))
    flag = cluster.jobs / "prolog-fails"
    flag.touch()
    unlucky = cluster.submit(SLEEP, options=["-w", "node-03", "-J", "launch_failed"])
    _wait_reason(cluster, unlucky, "launch failed requeued held")
    recorder.record("launch_failed", unlucky)
    flag.unlink()
    for node in ("node-02", "node-03", "node-04"):
        cluster.node_up(node)


def _preempted(recorder: Recorder) -> None:
    cluster = recorder.cluster
    victim = cluster.submit(SLEEP, options=["-N4", "--exclusive", "-J", "preempted"])
    cluster.run("scancel", "--state=PENDING", "--user=nobody", "--name=array", check=False)
    cluster.wait_state(victim, "RUNNING", timeout=120)
    urgent = cluster.submit("true", options=["-N4", "--exclusive", "-p", "urgent"])
    cluster.wait_state(victim, "PREEMPTED", timeout=60)
    recorder.record("preempted", victim)
    cluster.wait_state(urgent, "COMPLETED", timeout=60)


def _nodes(cluster: SlurmCluster) -> str:
    old = cluster.version() < (23, 2)
    command = ("sinfo", "--json") if old else ("scontrol", "show", "nodes", "--json")
    return json.dumps(json.loads(cluster.run(*command)), indent=1)


def _write_prolog(folder: Path) -> None:
    """Write a prolog that fails while a file stands in the folder of jobs."""
    path = folder / "prolog.sh"
    path.write_text(f"#!/bin/sh\ntest ! -e {folder}/jobs/prolog-fails\n")
    path.chmod(0o755)


def _wait_reason(cluster: SlurmCluster, job: str, reason: str) -> None:
    said = ""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        said = cluster.run("squeue", "-h", "-t", "all", "-o", "%r", "-j", job)
        if said.replace("_", " ") == reason:
            return
        time.sleep(0.1)
    raise SystemExit(f"job {job} has no reason {reason}: {said}")


def _number(value: object) -> object:
    return value.get("number") if isinstance(value, dict) else value


if __name__ == "__main__":
    main()
