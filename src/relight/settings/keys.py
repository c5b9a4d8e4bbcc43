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
