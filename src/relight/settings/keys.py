"""Every key of the configuration, once: what it may be, its default, and what it does.

Loading, explaining, the environment and the page in the documentation all read this table;
a key that is not here does not exist. ``NAME`` in a pattern stands for a name that the
operator chooses.
"""

from __future__ import annotations

from dataclasses import dataclass

from relight.model.advice import Action, Mode
from relight.model.instants import seconds
from relight.settings.shapes import FILE, FOLDER, Duration, Several, Shape, Text, Whole, Word

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"
NAME_WORDS = "letters, digits, dots, dashes and underscores, at most 64"

_HOUR = seconds(3_600)
_DAY = 24 * _HOUR
_MODE = Word(choices=tuple(mode.value for mode in Mode))
_NAMED = Text(words=f"a name: {NAME_WORDS}", pattern=NAME)
_RESPONSE = Word(choices=("report", "restart"))
_URL = Text(words="an http or https address", pattern=r"https?://[^\s@]{1,1000}")
_PATTERN = Text(words="a shell-style pattern, such as train or llm-*")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: ``default`` is written as in the file, or says in words what holds without it.

    ``precedent`` is where the default comes from. A ``required`` key has no default.
    """

    pattern: str
    shape: Shape
    default: str
    meaning: str
    precedent: str
    required: bool = False

    @property
    def section(self) -> str:
        """Return the first part of the pattern."""
        return self.pattern.partition(".")[0]

    @property
    def leaf(self) -> str:
        """Return the last part of the pattern: the key's own name."""
        return self.pattern.rpartition(".")[2]

    @property
    def variable(self) -> str:
        """Return the environment variable that overrides it, empty when none does."""
        if self.section == "opt_in":
            return ""
        return "RELIGHT_" + self.pattern.upper().replace(".", "__")


SECTIONS = {
    "cluster": "A scheduler and how it is reached; one table a cluster.",
    "opt_in": "Which jobs are watched without a word from their owner; the first match wins.",
    "policy": "What may be done for a job, and how often. `default` exists without being written.",
    "telemetry": "A metrics server that knows the nodes; one table a server.",
    "attribution": "An outside service that is asked for a second opinion; never needed.",
    "store": "Where relight keeps what it knows.",
    "serve": "Where the API listens.",
    "rules": "Which failure signatures are heard beside those that relight brings.",
}

KEYS = (
    Key(
        "cluster.NAME.kind",
        Word(choices=("slurm", "local"), later=("kubernetes",)),
        "required",
        "Says which scheduler this is; local runs jobs on this machine.",
        "None: a wrong guess here would watch nothing.",
        required=True,
    ),
    Key(
        "cluster.NAME.reach",
        Word(choices=("commands",), later=("ssh", "rest")),
        '"commands"',
        "Says how the scheduler is asked; commands means squeue, scontrol and their like.",
        "Works in every version of Slurm, whether or not slurmrestd runs.",
    ),
    Key(
        "cluster.NAME.logs",
        Word(choices=("files",), later=("loki", "victorialogs")),
        '"files"',
        "Says where the output of jobs is read from.",
        "sbatch writes files; a log service is an addition.",
    ),
    Key(
        "cluster.NAME.slurm_conf",
        FILE,
        "none: Slurm's own search",
        "Names the slurm.conf that Slurm's commands use, as SLURM_CONF does.",
        "Slurm's commands look at SLURM_CONF, then where they were built to look.",
    ),
    Key(
        "cluster.NAME.bin_dir",
        FOLDER,
        "none: the PATH",
        "Names the folder that Slurm's commands are run from.",
        "Packages put them on the PATH; modules and hand-built ones do not.",
    ),
    Key(
        "cluster.NAME.poll",
        Duration(seconds(0.1), _HOUR),
        '"1s"',
        "Says how often the scheduler is asked what has changed.",
        "A short squeue listing of 2,000 jobs costs about 20 ms, so a second is cheap.",
    ),
    Key(
        "cluster.NAME.mode",
        _MODE,
        '"act"',
        "Caps what any policy may do on this cluster; act caps nothing.",
        "One place to decide: policies start in monitor mode themselves.",
    ),
    Key(
        "cluster.NAME.log_roots",
        Several(FOLDER, least=1),
        '["/"]',
        "Lists the folders below which job output may be read.",
        "Output paths are the user's choice; files are opened with the owner's rights anyway.",
    ),
    Key(
        "cluster.NAME.partitions",
        Several(Text(words="the name of a partition")),
        "[]",
        "Lists the only partitions in which anything may be changed; empty means all.",
        "Policies start in monitor mode, so a list is a second lock, not the first.",
    ),
    Key(
        "cluster.NAME.telemetry",
        _NAMED,
        "none: not asked",
        "Names the [telemetry.NAME] that knows this cluster's nodes.",
        "Metrics are an addition: without them the logs and the scheduler decide.",
    ),
    Key(
        "cluster.NAME.kernel_logs",
        Several(Text(words="an absolute path with %N for the node's name", pattern=r"/.*%N.*")),
        "[]",
        "Lists files in which the kernel log of each node is gathered.",
        "There is no usual place: rsyslog's templates are each site's own.",
    ),
    Key(
        "cluster.NAME.attribution",
        Several(_NAMED),
        "[]",
        "Lists the [attribution.NAME] services that are asked for a second opinion.",
        "relight's own verdict needs none.",
    ),
    Key(
        "opt_in.cluster",
        _NAMED,
        "required",
        "Names the cluster whose jobs are meant.",
        "None: an opt-in is for one cluster.",
        required=True,
    ),
    Key(
        "opt_in.partition",
        _PATTERN,
        "none: any partition",
        "Covers jobs in partitions that match.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.account",
        _PATTERN,
        "none: any account",
        "Covers jobs of accounts that match.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.user",
        _PATTERN,
        "none: any user",
        "Covers jobs of users that match.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.name",
        _PATTERN,
        "none: any name",
        "Covers jobs whose name matches.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.policy",
        _NAMED,
        '"default"',
        "Names the policy that covered jobs are under, unless their comment picks another.",
        "The policy that always exists.",
    ),
    Key(
        "policy.NAME.mode",
        _MODE,
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
        Duration(0, _DAY),
        '"60s"',
        "Says how long a living job completes no step after a fatal line before it is restarted.",
        "Longer than a launcher's own recovery in place, far below NCCL's watchdog of 10 minutes.",
    ),
    Key(
        "policy.NAME.drain_logs",
        Duration(0, _HOUR),
        '"10s"',
        "Says how long after its end a job's last lines are waited for.",
        "NFS keeps a file's size for 3 s at least (acregmin), several times that when busy.",
    ),
    Key(
        "policy.NAME.backoff",
        Duration(0, _DAY),
        '"60s"',
        "Is the wait before a second restart without progress, doubled for each further one.",
        "Doubling as a Kubernetes Job does, which starts at 10 s; training starts dearer.",
    ),
    Key(
        "policy.NAME.hold",
        Duration(seconds(1), 7 * _DAY),
        '"10m"',
        "Is the wait before a restart is tried again while a shared thing, such as storage, ails.",
        "Near the 6 minutes at which a Kubernetes Job's waits stop growing.",
    ),
    Key(
        "policy.NAME.expires",
        Duration(seconds(1), 30 * _DAY),
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
        _RESPONSE,
        '"restart"',
        "Says what is done about a living job that has stopped stepping.",
        "A hung job burns all its GPUs until its time limit; in monitor mode it is only said.",
    ),
    Key(
        "policy.NAME.hang_floor",
        Duration(seconds(10), _DAY),
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
        Duration(0, _DAY),
        '"10m"',
        "Is waited on top where neither telemetry, recorder nor a line confirms the silence.",
        "As long as PyTorch's watchdog takes, which speaks of most hangs by then.",
    ),
    Key(
        "policy.NAME.startup_pause",
        Duration(seconds(10), 7 * _DAY),
        '"30m"',
        "Says how long a start and the first steps may take.",
        "Loading, compiling and a first checkpoint of large models take up to half an hour.",
    ),
    Key(
        "policy.NAME.checkpoint_pause",
        Duration(seconds(10), _DAY),
        '"15m"',
        "Says how long a checkpoint may take before the job's own are known.",
        "What DLRover allows for one.",
    ),
    Key(
        "policy.NAME.evaluation_pause",
        Duration(seconds(10), 7 * _DAY),
        '"30m"',
        "Says how long an evaluation may take before the job's own are known.",
        "As long as a start: both are loops of unknown length.",
    ),
    Key(
        "policy.NAME.slow",
        _RESPONSE,
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
        Duration(seconds(30), _DAY),
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
        Duration(0, _HOUR),
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
    Key(
        "telemetry.NAME.url",
        _URL,
        "required",
        "Is the address of an API as Prometheus has it (Prometheus, VictoriaMetrics, Mimir, "
        "Thanos), without /api/v1.",
        "None: there is no usual place.",
        required=True,
    ),
    Key(
        "telemetry.NAME.node_labels",
        Several(Text(words="the name of a label", pattern=r"[A-Za-z_][A-Za-z0-9_]*"), least=1),
        '["Hostname", "hostname", "node", "nodename", "instance"]',
        "Lists the labels that may name a node; a short name, an FQDN or host:port is understood.",
        "Hostname is dcgm-exporter's, instance is Prometheus's own.",
    ),
    Key(
        "telemetry.NAME.tenant",
        Text(words="a tenant's name"),
        "none: no header",
        "Is sent as X-Scope-OrgID.",
        "Mimir and Thanos tell tenants apart by it.",
    ),
    Key(
        "telemetry.NAME.token_file",
        FILE,
        "none: no token",
        "Names a file whose content is sent as a bearer token.",
        "A secret does not belong into a settings file.",
    ),
    Key(
        "telemetry.NAME.timeout",
        Duration(seconds(0.1), _HOUR),
        '"5s"',
        "Says how long one query may take.",
        "A healthy server takes a tenth of a second for one job's nodes.",
    ),
    Key(
        "attribution.NAME.kind",
        Word(choices=("relight", "nvrx")),
        '"relight"',
        "Says which protocol the service speaks; nvrx is nvidia-resiliency-ext's attrsvc.",
        "Our own schema is documented, and an example server comes with it.",
    ),
    Key(
        "attribution.NAME.url",
        _URL,
        "required",
        "Is the address of an outside service that is asked for a second opinion.",
        "None: relight needs no such service.",
        required=True,
    ),
    Key(
        "attribution.NAME.token_file",
        FILE,
        "none: no token",
        "Names a file whose content is sent as a bearer token.",
        "A secret does not belong into a settings file.",
    ),
    Key(
        "attribution.NAME.timeout",
        Duration(seconds(0.1), _HOUR),
        '"4m"',
        "Says how long its answer is waited for; a later one changes nothing.",
        "What nvidia-resiliency-ext allows its own language model.",
    ),
    Key(
        "store.path",
        FOLDER,
        "$RELIGHT_STATE, else /var/lib/relight as root, else ./relight-state",
        "Names the folder for everything that relight writes on this machine.",
        "The Filesystem Hierarchy Standard for a service; a visible folder for a trial.",
    ),
    Key(
        "store.url",
        Text(words='a SQLite URL, such as "sqlite:////srv/relight.db"', pattern=r"sqlite:///.+"),
        "none: relight.db in store.path",
        "Names the database.",
        "SQLite needs no server.",
    ),
    Key(
        "serve.host",
        Text(words="a host name or an address", pattern=r"[A-Za-z0-9.:_-]{1,253}"),
        '"127.0.0.1"',
        "Is the address that the API listens on.",
        "Nothing is open to the network that nobody opened.",
    ),
    Key(
        "serve.port",
        Whole(0, 65_535),
        "8474",
        "Is the port that the API listens on; 0 lets the system pick one.",
        "Above 1023, so that it needs no root.",
    ),
    Key(
        "rules.directories",
        Several(FOLDER),
        "[]",
        "Lists folders whose *.toml files add rules of the site, or change ours.",
        "The rules that relight brings know no site's own programs.",
    ),
)


def of_section(section: str) -> dict[str, Key]:
    """Return the keys of one section by their own names."""
    return {key.leaf: key for key in KEYS if key.section == section}
