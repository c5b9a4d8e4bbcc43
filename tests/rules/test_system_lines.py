from __future__ import annotations

import pytest

from relight.model.findings import End, Role
from relight.rules.loading import load
from relight.rules.patterns import CompiledRule

RULES = {rule.id: rule for rule in load()}
COMPILED = {name: CompiledRule(rule) for name, rule in RULES.items()}

HEARD = [
    # disks and file systems
    ("disk-full", "cp: error writing '/scratch/x': No space left on device"),
    (
        "disk-full",
        "errors_impl.ResourceExhaustedError: /ckpt/x; No space left on device",
    ),
    (
        "disk-full",
        "OSError: Can't write data (errno = 28, error message = 'No space left on device')",
    ),
    ("disk-full", "Exception: No space left on device (os error 28)"),
    ("disk-full", "OSError: Not enough disk space. Needed: 811.31 GiB (download: 300 GiB)"),
    (
        "disk-full",
        "OSError: [Errno 28] Error writing bytes. Detail: [errno 28] No space left on device",
    ),
    ("local-disk-full", "OSError: [Errno 28] No space left on device: '/raid/cache/tmp1'"),
    ("disk-quota-exceeded", "RuntimeError: write(): fd 31 failed with Disk quota exceeded"),
    ("disk-quota-exceeded", "cp: failed to close '/home/u/x': Disk quota exceeded"),
    ("stale-file-handle", "2: rm: cannot remove '/mnt/x': Stale file handle"),
    ("stale-file-handle", "Exception: Stale file handle (os error 116)"),
    (
        "filesystem-io-error",
        "RuntimeError: unable to mmap 812 bytes from file </lustre/x>: Input/output error (5)",
    ),
    ("filesystem-io-error", "Error: I/O error: Input/output error (os error 5)"),
    ("filesystem-io-error", "OSError: [Errno 110] Connection timed out: '/nfs/data/x.bin'"),
    ("filesystem-io-error", "OSError: [Errno 5] Input/output error: '/gpfs/ckpt/iter_10'"),
    ("filesystem-read-only", "touch: cannot touch '/data/x': Read-only file system"),
    (
        "lustre-request-failed",
        "LustreError: 11-0: s-OST0003-osc-ffff: operation ost_write failed: rc = -5",
    ),
    ("nfs-server-not-responding", "[ 4242.123] nfs: server 10.2.0.9 not responding, still trying"),
    (
        "local-disk-error",
        "XFS (nvme0n1p1): Metadata corruption detected at xfs_inode_buf_verify+0x14d",
    ),
    ("local-disk-error", "kernel: critical medium error, dev sdb, sector 81 op 0x0:(READ)"),
    (
        "local-disk-error",
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
    ),
    (
        "remote-storage-error",
        'botocore.exceptions.ReadTimeoutError: Read timeout on endpoint URL: "https://b.s3.amazona',
    ),
    (
        "remote-storage-error",
        "google.api_core.exceptions.TooManyRequests: 429 GET https://storage.googleapis.com/x: rat",
    ),
    ("remote-storage-error", "azure.core.exceptions.ServiceResponseError: Connection aborted."),
    (
        "remote-storage-error",
        "gcsfs.retry.HttpError: We encountered an internal error. Please try again., 503",
    ),
    (
        "remote-storage-refused",
        "google.api_core.exceptions.Forbidden: 403 POST https://storage.googleapis.com/upload/x",
    ),
    (
        "remote-storage-refused",
        "botocore.exceptions.ClientError: An error occurred (403) when calling the HeadObject oper",
    ),
    ("file-not-found", "Error: No such file or directory (os error 2)"),
    (
        "file-not-found",
        "what():  filesystem error: cannot open: No such file or directory [/data/x]",
    ),
    ("checkpoint-rename-race", "FileExistsError: [Errno 17] File exists: '/out/run/logs'"),
    ("permission-denied", "PermissionError: [Errno 1] Operation not permitted: '/data/x'"),
    # Slurm
    ("slurm-node-failure", "salloc: error: Node failure on gpu-3"),
    (
        "slurm-launch-failed",
        "5: srun: error: Task launch for StepId=9.0 failed on node gpu-3: Invalid job credential",
    ),
    (
        "slurm-launch-failed",
        "srun: error: Task launch for 73706.26 failed on node c002n0032: Communication connection ",
    ),
    (
        "slurm-application-launch-failed",
        "srun: error: Application launch failed: Communication connection failure",
    ),
    (
        "slurm-request-refused",
        "srun: error: Unable to create step for job 5777731: Access/permission denied (forbidden)",
    ),
    (
        "slurm-request-refused",
        "srun: error: Unable to create step for job 9: Memory required by task is not available",
    ),
    (
        "slurm-request-refused",
        "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or e",
    ),
    (
        "slurm-request-refused",
        "srun: error: Unable to allocate resources: Invalid qos specification",
    ),
    (
        "slurm-nodes-busy",
        "srun: error: Unable to create step for job: Job/step already completing or completed",
    ),
    (
        "slurm-authentication-failed",
        'srun: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": Permissio',
    ),
    ("slurm-authentication-failed", "slurmstepd: error: Munge decode failed: Expired credential"),
    ("slurm-prolog-failed", "slurmctld: error: prolog failure on node gpu-7"),
    ("slurm-node-unfit", "Low RealMemory       slurm     2025-05-17T01:05:47 gpu-[04-05]"),
    ("slurm-task-died", "srun: error: gpu-3: task 12: Aborted (core dumped)"),
    (
        "slurm-request-refused",
        "srun: error: Task launch for 7.0 failed on node p-9: Unable to satisfy cpu bind request",
    ),
    (
        "slurm-launch-failed",
        "srun: error: Task launch for 13289877.0 failed on node ampere01: Can't find an address, c",
    ),
    (
        "container-start-failed",
        "FATAL:   container creation failed: failed to resolve session directory /localscratch/app",
    ),
    # containers
    (
        "container-start-reason",
        "slurmstepd: error: pyxis:     [ERROR] Failed to refresh the dynamic linker cache",
    ),
    (
        "container-start-reason",
        "0: slurmstepd: error: pyxis:     [ERROR] /etc/enroot/hooks.d/87-slurm.sh exited with retu",
    ),
    (
        "container-start-reason",
        "slurmstepd: error: pyxis:     mkdir: cannot create directory \u2018/run/user/1000\u2019: ",
    ),
    (
        "container-gpu-hook-failed",
        "slurmstepd: error: pyxis:     [ERROR] Command not found: nvidia-container-cli, see https:",
    ),
    (
        "container-image-refused",
        "pyxis:     [ERROR] URL https://ghcr.io/v2/x returned error code: 401 Unauthorized",
    ),
    (
        "container-image-refused",
        'slurmstepd: error: pyxis: error: a container with name "pyxis_x" does not exist, and --co',
    ),
    (
        "container-registry-unavailable",
        "pyxis:     [ERROR] URL https://nvcr.io/proxy_auth returned error code: 503",
    ),
    (
        "container-mount-failed",
        "enroot-mount: failed to mount: /opt/x at /home/u/.local/share/enroot/ubuntu/opt/x: No suc",
    ),
    ("pod-out-of-memory", "train-worker-3   0/1     OOMKilled   1 (3m ago)   2h"),
    ("kubernetes-node-lost", "Warning  NodeNotReady  3s  node-controller  Node is not ready"),
    ("file-not-found", "IOError: [Errno 2] No such file or directory: '/data/x'"),
    ("checkpoint-rename-race", "shutil.Error: Destination path '/out/x' already exists"),
    ("container-start-reason", "pyxis:     FATAL ERROR:Failed to write to output filesystem"),
    # slow
    ("straggler-named", "Detected straggler rank 5 (node gpu-7): 2.1x slower"),
    ("straggler-score-low", "  Rank=13 Node=gpu-02 Score=0.58"),
    (
        "straggler-gpu-score",
        "STRAGGLER DETECTION WARNING: Some GPUs performance dropped. Affected ranks: [13]",
    ),
    ("straggler-named", "[rank0]: stragglers detected: [13, 29]"),
]

ENDS = [
    (End.CANCELLED, "wandb: Ctrl + C detected. Stopping sweep."),
    (End.PREEMPTED, "WARNING - 0:10:00 - Signal handler called with signal 10"),
    (End.PREEMPTED, "INFO:tensorflow:TPU is in state PREEMPTED"),
    (End.FINISHED, "*** Training completed successfully ***"),
    (
        End.CANCELLED,
        "slurmstepd: error: *** STEP 6053.0 ON node-1 CANCELLED AT 2024-04-23T12:18:08 ***",
    ),
    (End.CANCELLED, "4242.0  python  CANCELLED by 1001"),
    (End.CANCELLED, "TERM_OWNER: job killed by owner."),
    (
        End.TIMEOUT,
        "error: *** STEP 3.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***",
    ),
    (End.TIMEOUT, "=>> PBS: job killed: walltime 3629 exceeded limit 3600"),
    (End.TIMEOUT, "TERM_RUNLIMIT: job killed after reaching LSF run time limit."),
    (End.TIMEOUT, "exiting program after 230 minutes"),
    (
        End.PREEMPTED,
        "error: *** JOB 3 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***",
    ),
    (
        End.PREEMPTED,
        "google_metadata_script_runner: GCP Metadata Service says termination is imminent",
    ),
    (End.PREEMPTED, "Spot VM node-3 was preempted"),
    (End.PREEMPTED, "TPU slice tpu-v5-12 has been preempted"),
    (End.PREEMPTED, "Instance i-0abc was preempted."),
    (End.PREEMPTED, 'Azure scheduled event: {"EventType": "Preempt", "Resources": ["vm1"]}'),
    (End.PREEMPTED, "[NeMo I 2025-01-01] Received signal 15, initiating graceful stop"),
    (End.PREEMPTED, "0: exiting program after receiving SIGTERM."),
    (End.PREEMPTED, "handling SIGUSR1"),
    (End.PREEMPTED, "Requeued SLURM job: 42"),
    (End.PREEMPTED, "Caught signal SIGUSR1, saving checkpoint and requeueing"),
    (End.FINISHED, "`Trainer.fit` stopped: `max_steps=3500` reached."),
    (End.FINISHED, "Trainer.fit stopped: max_epochs=3 reached."),
    (End.FINISHED, "[default0]:[after training is done] datetime: 2025-03-04 05:06:07"),
    (End.FINISHED, "2025-01-02 03:04:05 INFO Training finished"),
    (End.FINISHED, "{'train_runtime': 12.4, 'train_samples_per_second': 1.0}"),
    (End.FINISHED, "PyTorchJob llama-sft is successfully completed."),
]

HARMLESS = [
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    "squeue: error: slurm_load_jobs error: Socket timed out on send/recv operation",
    "[W socket.cpp:697] [c10d] (errno: 97 - Address family not supported by protocol).",
    "/usr/lib/python3/dist-packages/x.py:3: DeprecationWarning: invalid escape sequence",
    "gpu-3:42:99 [1] NCCL INFO PROFILER/Plugin: Could not find: libnccl-profiler.so",
    "gpu-3:42:42 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin symbol.",
    "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verb",
    "WARNING:urllib3.connectionpool:Retrying (Retry(total=4)) after connection broken by 'SSLError",
    "wandb: WARNING Tried to log to step 10 that is less than the current step 12.",
    "/bin/sh: fatal: not a git repository (or any of the parent directories): .git",
    "[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
    "slurmstepd: error: Unable to create TMPDIR [/tmp/u]: Permission denied",
]

SILENT = [
    "Run was preempted, resuming from checkpoint 4000",
    "SLURM auto-requeueing enabled. Setting signal handlers.",
    "Finished training it 1024/4096 of epoch 0, 12.3 ms/it, loss 0.13",
    "saving every 500 steps so that a preempted job can resume",
    "INFO: will exit gracefully on SIGTERM",
    "disk usage of /scratch: 81 % of quota",
    "storage: retries=5 timeout=30s on_error=raise",
    "checkpoint.read_only: false",
    "slurm: time limit 1-00:00:00, partition gpu, preempt mode requeue",
    "val/io_error: 0.0  val/stale: 0.1",
    "training will be complete after 5000 steps",
    "container image: nvcr.io/nvidia/pytorch:24.05-py3",
    "stragglers: 0",
    "The job may be preempted if a node is reclaimed",
    "node gpu-3 joined, 4 of 4 nodes ready",
    "OOMKilled: false",
]


def heard(line: str) -> dict[str, Role]:
    data = line.encode()
    found = {name for name, one in COMPILED.items() if one.captures(data) is not None}
    return {name: RULES[name].role for name in sorted(found)}


@pytest.mark.parametrize(("rule", "line"), HEARD)
def test_a_wording_is_heard_by_its_rule_and_by_no_louder_one(rule: str, line: str) -> None:
    roles = heard(line)
    assert rule in roles
    louder = {name for name, role in roles.items() if role is Role.ROOT and name != rule}
    assert louder == set()
    assert Role.BENIGN not in roles.values()


@pytest.mark.parametrize(("end", "line"), ENDS)
def test_an_ending_is_told_and_no_failure_with_it(end: End, line: str) -> None:
    roles = heard(line)
    assert {RULES[name].ending for name in roles} - {None} == {end}
    causes = {name for name, role in roles.items() if role in {Role.ROOT, Role.EITHER}}
    assert all(RULES[name].ending is end for name in causes)


@pytest.mark.parametrize("line", HARMLESS)
def test_an_alarming_line_that_means_nothing_is_known_as_such(line: str) -> None:
    assert Role.BENIGN in heard(line).values()


@pytest.mark.parametrize("line", SILENT)
def test_an_ordinary_line_is_not_heard(line: str) -> None:
    assert heard(line) == {}
