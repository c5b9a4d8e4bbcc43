from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from relight.model.advice import Action, Mode
from relight.model.instants import seconds
from relight.policy.policies import OptIn, Policy, PolicyBook, Response
from relight.settings.loading import MOST_BYTES, load
from relight.settings.problems import Problem, SettingsError
from relight.settings.records import Attribution, Cluster, Settings, Telemetry

SMALLEST = """\
[cluster.main]
kind = "slurm"            # slurm | kubernetes | local
reach = "commands"        # commands | ssh | rest
logs = "files"            # files | loki | victorialogs
[[opt_in]]
cluster = "main"
partition = "train"
policy = "default"
[policy.default]
mode = "monitor"          # monitor | approve | act
max_restarts = 3
settle = "60s"
may = ["requeue", "exclude"]
"""
MAIN = '[cluster.main]\nkind = "slurm"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "relight.toml"


def loaded(file: Path, text: str, environ: Mapping[str, str] | None = None) -> Settings:
    file.write_text(text)
    return load(file, environ or {}, is_root=False)


def refused(
    file: Path, text: str | bytes, environ: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SettingsError) as error:
        load(file, environ or {}, is_root=False)
    return error.value.problems


def test_the_smallest_file_loads(file: Path) -> None:
    settings = loaded(file, SMALLEST)
    assert settings.clusters == (Cluster(name="main"),)
    assert settings.policies == (Policy(name="default"),)
    assert settings.opt_ins == (OptIn(cluster="main", partition="train", policy="default"),)
    assert settings.book() == PolicyBook(
        policies=(Policy(name="default"),), opt_ins=settings.opt_ins
    )
    assert settings.origin == str(file)


def test_every_key_reaches_its_record(file: Path) -> None:
    settings = loaded(
        file,
        """
        [cluster.main]
        kind = "local"
        slurm_conf = "/etc/slurm/slurm.conf"
        bin_dir = "/opt/slurm/bin"
        poll = "500ms"
        mode = "approve"
        log_roots = ["/home", "/scratch"]
        partitions = ["train"]
        telemetry = "prom"
        kernel_logs = ["/srv/logs/%N/kern.log"]
        attribution = ["second"]
        [telemetry.prom]
        url = "http://127.0.0.1:9090"
        node_labels = ["instance"]
        tenant = "team"
        token_file = "/etc/relight/prom"
        timeout = "2s"
        [attribution.second]
        kind = "nvrx"
        url = "http://127.0.0.1:8000"
        token_file = "/etc/relight/second"
        timeout = "30s"
        [policy.bold]
        mode = "act"
        max_restarts = 0
        settle = "0s"
        drain_logs = "5s"
        backoff = "1m 30s"
        hold = "1h"
        expires = "2h"
        may = ["requeue", "exclude", "cancel", "requeue"]
        hang = "report"
        hang_floor = "1m"
        hang_steps = 7
        hang_unconfirmed = "0s"
        startup_pause = "1h"
        checkpoint_pause = "20m"
        evaluation_pause = "40m"
        slow = "restart"
        slow_percent = 20
        slow_for = "10m"
        numeric = "stop"
        evidence = "30s"
        signal_first = "B:USR1@120"
        flight_recorder = "/scratch/nccl_trace_rank_"
        [store]
        path = "/srv/relight"
        url = "sqlite:////srv/other.db"
        [serve]
        host = "::1"
        port = 0
        """,
    )
    cluster = settings.cluster("main")
    assert cluster == Cluster(
        name="main",
        kind="local",
        slurm_conf="/etc/slurm/slurm.conf",
        bin_dir="/opt/slurm/bin",
        poll=seconds(0.5),
        mode=Mode.APPROVE,
        log_roots=("/home", "/scratch"),
        partitions=("train",),
        telemetry="prom",
        kernel_logs=("/srv/logs/%N/kern.log",),
        attribution=("second",),
    )
    assert settings.telemetry == (
        Telemetry(
            name="prom",
            url="http://127.0.0.1:9090",
            node_labels=("instance",),
            tenant="team",
            token_file="/etc/relight/prom",  # noqa: S106 - the name of a file
            timeout=seconds(2),
        ),
    )
    assert settings.attribution == (
        Attribution(
            name="second",
            kind="nvrx",
            url="http://127.0.0.1:8000",
            token_file="/etc/relight/second",  # noqa: S106 - the name of a file
            timeout=seconds(30),
        ),
    )
    assert settings.policies[1] == Policy(
        name="bold",
        mode=Mode.ACT,
        max_restarts=0,
        settle=seconds(0),
        drain_logs=seconds(5),
        backoff=seconds(90),
        hold=seconds(3_600),
        expires=seconds(7_200),
        may=(Action.REQUEUE, Action.EXCLUDE, Action.CANCEL),
        hang=Response.REPORT,
        hang_floor=seconds(60),
        hang_steps=7,
        hang_unconfirmed=seconds(0),
        startup_pause=seconds(3_600),
        checkpoint_pause=seconds(1_200),
        evaluation_pause=seconds(2_400),
        slow=Response.RESTART,
        slow_percent=20,
        slow_for=seconds(600),
        numeric=Response.STOP,
        evidence=seconds(30),
        signal_first="B:USR1@120",
        flight_recorder="/scratch/nccl_trace_rank_",
    )
    assert settings.policies[0] == Policy(name="default")
    assert settings.store.database == "sqlite:////srv/other.db"
    assert (settings.serve.host, settings.serve.port) == ("::1", 0)


def test_every_problem_is_told_at_once_with_path_line_and_cure(file: Path) -> None:
    problems = refused(
        file,
        """\
[cluster.main]
kind = "kubernetes"
polls = "1s"
log_roots = [
  "/a",  # ] [x]
  "b",
]
[cluster."we/ird"]
kind = "slrum"
[[opt_in]]
cluster = "mian"
[[opt_in]]
cluster = "main"
policy = "defualt"
partition = ""
[policy.default]
max_restarts = "three"
settle = 60
may = ["drain"]
[serve]
port = 99999
host = true
[sotre]
path = "/x"
""",
    )
    assert [(problem.line, problem.path) for problem in problems] == [
        (2, "cluster.main.kind"),
        (3, "cluster.main.polls"),
        (4, "cluster.main.log_roots"),
        (8, 'cluster."we/ird"'),
        (9, 'cluster."we/ird".kind'),
        (11, "opt_in[1].cluster"),
        (14, "opt_in[2].policy"),
        (15, "opt_in[2].partition"),
        (17, "policy.default.max_restarts"),
        (18, "policy.default.settle"),
        (19, "policy.default.may"),
        (21, "serve.port"),
        (22, "serve.host"),
        (23, "sotre"),
    ]
    assert all(problem.source == str(file) and problem.cure for problem in problems)
    assert str(problems[8]) == (
        f'{file}:17: policy.default.max_restarts: is "three"; '
        "allowed is a whole number from 0 to 1000"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cluster: is missing; write [cluster.main] with a kind"),
        ("[cluster.main]", "cluster.main.kind: is missing"),
        ("cluster = 1", "cluster: is not a table"),
        ("[cluster]\nmain = 3", "cluster.main: is not a table"),
        (f"{MAIN}[opt_in]\ncluster = 'main'", "opt_in: is not a list of tables"),
        (f"opt_in = [3]\n{MAIN}", "opt_in[1]: is not a table"),
        (f"{MAIN}[[opt_in]]\npolicy = 'default'", "opt_in[1].cluster: is missing"),
        (f"{MAIN}reach = 'ssh'", 'is "ssh", which relight cannot do yet; allowed is "commands"'),
        (f"{MAIN}logs = 'loki'", 'is "loki", which relight cannot do yet; allowed is "files"'),
        (f"{MAIN}mode = 'atc'", '(did you mean "act"?)'),
        (f"{MAIN}poll = '1ms'", "cluster.main.poll"),
        (f"{MAIN}poll = 2020-01-01", "is a date or time, not a text"),
        (f"{MAIN}slurm_conf = 'slurm.conf'", "an absolute path of a file"),
        (f"{MAIN}log_roots = []", "is an empty list"),
        (f"{MAIN}log_roots = '/'", "not a list"),
        (f'{MAIN}bin_dir = "/a\\u0000"', "cannot be printed"),
        (f"{MAIN}[policy.default]\nmax_restarts = true", "max_restarts: is true"),
        (f"{MAIN}[policy.default]\nmax_restarts = -1", "max_restarts: is -1"),
        (f"{MAIN}[policy.default]\nmax_restrats = 1", 'did you mean "max_restarts"?'),
        (f"{MAIN}[policy.default]\nhold = 'soon'", 'hold: is "soon"'),
        (f"{MAIN}[store]\nurl = 'mysql://a/b'", "store.url"),
        (f"{MAIN}[serve]\nport = 18446744073709551616", "is a very large number"),
        (f"{MAIN}[serve]\nhost = '{'a' * 5_000}'", "has 5000 characters"),
        ("[cluster.main\nkind = 'slurm'", "is not TOML"),
        ("kind = [1,\n", ":2: is not TOML"),
        ("kind = 1\nkind = 2", ":2: is not TOML"),
        (b"# \n\xff", ":2: is not UTF-8"),
        ("a = " + "[" * 50_000, "is nested too deeply"),
        ("a." * 50_000 + "b = 1", ":1: has more than 100 dots"),
        ("a = " + "9" * 5_000, "holds a value that cannot be read"),
        ("#" * (MOST_BYTES + 1), f"more than {MOST_BYTES} bytes"),
    ],
)
def test_what_is_wrong_is_said(file: Path, text: str | bytes, said: str) -> None:
    assert any(said in str(problem) for problem in refused(file, text))


def test_a_file_that_begins_with_a_byte_order_mark_loads(file: Path) -> None:
    assert loaded(file, "\ufeff" + SMALLEST).clusters


@pytest.mark.parametrize("named", ["missing.toml", ".", "fifo", "a\0b"])
def test_a_path_that_is_no_readable_file_is_said_and_never_waited_for(
    tmp_path: Path, named: str
) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SettingsError, match="cannot be read"):
        load(tmp_path / named, {})


def test_the_file_is_looked_for_by_argument_then_variable_then_place(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.toml" for name in ("argument", "variable", "here", "etc")]
    for file in files:
        file.write_text(SMALLEST)
    argument, variable, here, etc = files
    named = {"RELIGHT_CONFIG": str(variable)}
    places = (here, etc)
    assert load(argument, named, places=places).origin == str(argument)
    assert load(None, named, places=places).origin == str(variable)
    assert load(None, {"RELIGHT_CONFIG": ""}, places=places).origin == str(here)
    here.unlink()
    assert load(None, {}, places=places).origin == str(etc)
    etc.unlink()
    with pytest.raises(SettingsError, match=re.escape(f"no settings file at {here}, {etc}")):
        load(None, {}, places=places)


def test_the_environment_overrides_the_file(file: Path) -> None:
    settings = loaded(
        file,
        SMALLEST + '[policy.Night-Shift]\nmode = "monitor"\n',
        {
            "RELIGHT_SERVE__PORT": "9000",
            "RELIGHT_POLICY__DEFAULT__MODE": "act",
            "RELIGHT_POLICY__NIGHT_SHIFT__MAX_RESTARTS": "7",
            "RELIGHT_POLICY__NEW__MODE": "approve",
            "RELIGHT_CLUSTER__MAIN__LOG_ROOTS": "/a, /b",
            "RELIGHT_CLUSTER__MAIN__PARTITIONS": "",
            "RELIGHT_TOKEN": "belongs to something else",
            "OTHER__THING": "likewise",
        },
    )
    assert settings.serve.port == 9000
    assert {policy.name: policy.mode for policy in settings.policies} == {
        "default": Mode.ACT,
        "Night-Shift": Mode.MONITOR,
        "new": Mode.APPROVE,
    }
    assert settings.policies[1].max_restarts == 7
    assert settings.clusters[0].log_roots == ("/a", "/b")


def test_the_environment_alone_can_describe_a_cluster() -> None:
    settings = load(None, {"RELIGHT_CLUSTER__MAIN__KIND": "local"}, places=())
    assert settings.clusters == (Cluster(name="main", kind="local"),)
    assert settings.origin == "the environment"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RELIGHT_SERVE__PORT", "many", 'RELIGHT_SERVE__PORT: serve.port: is "many"'),
        ("RELIGHT_SERVE__PROT", "1", "did you mean RELIGHT_SERVE__PORT?"),
        ("RELIGHT_SERVE_PORT", "1", "did you mean RELIGHT_SERVE__PORT?"),
        ("RELIGHT_SERVE__X__PORT", "1", "sets no key"),
        ("RELIGHT___", "1", "sets no key"),
        ("RELIGHT_OPT_IN__0__POLICY", "default", "write [[opt_in]] in the file"),
        ("RELIGHT_POLICY__A_B__MODE", "act", "fits several names"),
        ("RELIGHT_POLICY____MODE", "act", "sets no key"),
    ],
)
def test_a_variable_that_sets_nothing_or_something_wrong_is_a_problem(
    file: Path, variable: str, value: str, said: str
) -> None:
    text = SMALLEST + "[policy.a-b]\n[policy.a_b]\n"
    assert said in "\n".join(map(str, refused(file, text, {variable: value})))


def test_the_state_folder_follows_the_file_then_the_variable_then_who_runs(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(MAIN)
    monkeypatch.chdir(tmp_path)
    state = {"RELIGHT_STATE": "/srv/state"}
    assert load(file, {}, is_root=True).store.path == "/var/lib/relight"
    assert load(file, {}, is_root=False).store.path == str(tmp_path / "relight-state")
    assert load(file, state, is_root=True).store.database == "sqlite:////srv/state/relight.db"
    file.write_text(f"{MAIN}[store]\npath = '/data'\n")
    assert load(file, state, is_root=True).store.path == "/data"
