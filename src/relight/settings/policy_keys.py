"""The keys of a policy: what may be done for a job, how often, and how long is waited."""

from __future__ import annotations

from relight.model.advice import Action
from relight.model.instants import seconds
from relight.settings.key_kinds import DAY, HOUR, MODE, RESPONSE, Key
from relight.settings.shapes import Duration, Several, Text, Whole, Word

POLICY_KEYS = (
    Key(
        "policy.NAME.mode",
        MODE,
        '"monitor"',
        "Says how far relight goes: say so, ask a person first, or act.",
        "Trust is earned: a newcomer on a cluster watches first.",
    ),
    Key(
        "policy.NAME.max_restarts",
        Whole(0, 1_000),
        "3",
        "Bounds the restarts without progress; a comment can only lower it.",
        "The number in NVIDIA's examples; Determined allows 5, a Kubernetes Job 6.",
    ),
    Key(
        "policy.NAME.settle",
        Duration(0, DAY),
        '"60s"',
        "Says how long a living job completes no step after a fatal line before it is restarted.",
        "Longer than a launcher's own recovery in place, far below NCCL's watchdog of 10 minutes.",
    ),
    Key(
        "policy.NAME.drain_logs",
        Duration(0, HOUR),
        '"10s"',
        "Says how long after its end a job's last lines are waited for.",
        "NFS keeps a file's size for 3 s at least (acregmin), several times that when busy.",
    ),
    Key(
        "policy.NAME.backoff",
        Duration(0, DAY),
        '"60s"',
        "Is the wait before a second restart without progress, doubled for each further one.",
        "Doubling as a Kubernetes Job does, which starts at 10 s; training starts dearer.",
    ),
    Key(
        "policy.NAME.hold",
        Duration(seconds(1), 7 * DAY),
        '"10m"',
        "Is the wait before a restart is tried again while a shared thing, such as storage, ails.",
        "Near the 6 minutes at which a Kubernetes Job's waits stop growing.",
    ),
    Key(
        "policy.NAME.expires",
        Duration(seconds(1), 30 * DAY),
        '"1h"',
        "Says how long an advice may be followed after it was given.",
        "Long enough for a person to say yes, short enough that the cluster is still the same.",
    ),
    Key(
        "policy.NAME.may",
        Several(Word(choices=tuple(action.value for action in Action))),
        '["requeue", "exclude"]',
        "Lists the kinds of action that are allowed in the modes approve and act.",
        "What the job's owner could undo; cancel ends a job and has to be written.",
    ),
    Key(
        "policy.NAME.hang",
        RESPONSE,
        '"restart"',
        "Says what is done about a living job that has stopped stepping.",
        "A hung job burns all its GPUs until its time limit; in monitor mode it is only said.",
    ),
    Key(
        "policy.NAME.hang_floor",
        Duration(seconds(10), DAY),
        '"2m"',
        "Is the least time without a step that can be called a hang.",
        "A fifth of PyTorch's own watchdog of 10 minutes, and longer than most pauses.",
    ),
    Key(
        "policy.NAME.hang_steps",
        Whole(2, 1_000),
        "5",
        "Says how many of the job's usual steps may be missing before that is a hang.",
        "The safety factor of NVIDIA's nvidia-resiliency-ext.",
    ),
    Key(
        "policy.NAME.hang_unconfirmed",
        Duration(0, DAY),
        '"10m"',
        "Is waited on top where neither telemetry, recorder nor a line confirms the silence.",
        "As long as PyTorch's watchdog takes, which speaks of most hangs by then.",
    ),
    Key(
        "policy.NAME.startup_pause",
        Duration(seconds(10), 7 * DAY),
        '"30m"',
        "Says how long a start and the first steps may take.",
        "Loading, compiling and a first checkpoint of large models take up to half an hour.",
    ),
    Key(
        "policy.NAME.checkpoint_pause",
        Duration(seconds(10), DAY),
        '"15m"',
        "Says how long a checkpoint may take before the job's own are known.",
        "What DLRover allows for one.",
    ),
    Key(
        "policy.NAME.evaluation_pause",
        Duration(seconds(10), 7 * DAY),
        '"30m"',
        "Says how long an evaluation may take before the job's own are known.",
        "As long as a start: both are loops of unknown length.",
    ),
    Key(
        "policy.NAME.slow",
        RESPONSE,
        '"report"',
        "Says what is done about a job that a slow node holds back.",
        "A slow job still gets on; a restart is dear and has to be wanted.",
    ),
    Key(
        "policy.NAME.slow_percent",
        Whole(5, 90),
        "15",
        "Says by how many per cent the throughput must have dropped to be told.",
        "Below it, clocks, data and neighbours make as much difference by themselves.",
    ),
    Key(
        "policy.NAME.slow_for",
        Duration(seconds(30), DAY),
        '"5m"',
        "Says for how long the throughput must have been lower before it is told.",
        "Longer than a checkpoint's aftermath, shorter than a coffee.",
    ),
    Key(
        "policy.NAME.numeric",
        Word(choices=("report", "restart", "stop")),
        '"report"',
        "Says what is done about a living job whose loss is no number or has jumped.",
        "Some runs live through a spike: only their owner can tell.",
    ),
    Key(
        "policy.NAME.evidence",
        Duration(0, HOUR),
        '"15s"',
        "Says how long telemetry, kernel logs and recorders are waited for before a decision.",
        "Ten times what a healthy metrics server takes; a hang has cost minutes by then.",
    ),
    Key(
        "policy.NAME.signal_first",
        Text(
            words='a signal and seconds as in sbatch --signal, such as "USR1@120" or "B:USR1@120"',
            pattern=r"(B:)?(HUP|INT|QUIT|USR1|USR2|TERM|CONT|URG)@[0-9]{1,5}",
        ),
        "none: no signal",
        "Names a signal that a living job gets this long before a planned restart.",
        "Only its owner knows which signal makes a job write a checkpoint.",
    ),
    Key(
        "policy.NAME.flight_recorder",
        Text(words="an absolute path, or a prefix of the dump files", pattern=r"/.*"),
        "none: not looked at",
        "Says where NCCL's flight recorder writes, for jobs whose comment does not say.",
        "PyTorch's own default is a folder of the node, which relight cannot read.",
    ),
)
