"""Every key of the configuration, once: what it may be, its default, and what it does.

Loading, explaining, the environment and the page in the documentation all read this table;
a key that is not here does not exist. ``NAME`` in a pattern stands for a name that the
operator chooses.
"""

from __future__ import annotations

from relight.model.instants import seconds
from relight.settings.key_kinds import (
    HOUR,
    MODE,
    NAME,
    NAME_WORDS,
    NAMED,
    PATTERN,
    URL,
    Key,
)
from relight.settings.policy_keys import POLICY_KEYS
from relight.settings.shapes import FILE, FOLDER, Duration, Several, Text, Whole, Word

__all__ = ["KEYS", "NAME", "NAME_WORDS", "SECTIONS", "Key", "of_section"]

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
        Duration(seconds(0.1), HOUR),
        '"1s"',
        "Says how often the scheduler is asked what has changed.",
        "A short squeue listing of 2,000 jobs costs about 20 ms, so a second is cheap.",
    ),
    Key(
        "cluster.NAME.mode",
        MODE,
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
        NAMED,
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
        Several(NAMED),
        "[]",
        "Lists the [attribution.NAME] services that are asked for a second opinion.",
        "relight's own verdict needs none.",
    ),
    Key(
        "opt_in.cluster",
        NAMED,
        "required",
        "Names the cluster whose jobs are meant.",
        "None: an opt-in is for one cluster.",
        required=True,
    ),
    Key(
        "opt_in.partition",
        PATTERN,
        "none: any partition",
        "Covers jobs in partitions that match.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.account",
        PATTERN,
        "none: any account",
        "Covers jobs of accounts that match.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.user",
        PATTERN,
        "none: any user",
        "Covers jobs of users that match.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.name",
        PATTERN,
        "none: any name",
        "Covers jobs whose name matches.",
        "What is not written does not narrow.",
    ),
    Key(
        "opt_in.policy",
        NAMED,
        '"default"',
        "Names the policy that covered jobs are under, unless their comment picks another.",
        "The policy that always exists.",
    ),
    *POLICY_KEYS,
    Key(
        "telemetry.NAME.url",
        URL,
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
        Duration(seconds(0.1), HOUR),
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
        URL,
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
        Duration(seconds(0.1), HOUR),
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
