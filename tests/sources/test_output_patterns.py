"""What Slurm makes of output patterns; the batch table was seen on a real Slurm 22.05."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.jobs import JobFact, OutputPaths
from relight.sources.output_patterns import MOST_FILES, LogFile, expand, output_files

NODES = ("node-01.lab", "node-02.lab")


def job(stdout: str = "", stderr: str = "", **more: object) -> JobFact:
    fact = JobFact(
        cluster="main",
        scheduler_id="15",
        user="ana",
        name="my job",
        output=OutputPaths(stdout=stdout, stderr=stderr, work_dir="/home/ana/run"),
    )
    return JobFact(**({name: getattr(fact, name) for name in fact.__struct_fields__} | more))


def paths(fact: JobFact, nodes: tuple[str, ...] = NODES) -> list[str]:
    return [file.path for file in output_files(fact, nodes).files]


BATCH_NAMES = [
    ("a-%j-%J-%s-%t-%n-%N-%u-%x-%A.out", "a-15-15-batch-0-0-node-01-ana-my job-15.out"),
    ("a-%a.out", "a-4294967294.out"),
    ("b-%4j-%04t-%3N-%12j-%12x.out", "b-0015-0000-node-01-0000000015-my job.out"),
    ("c-%%-%j-%q-%5q-%.out", "c-%-15-%q-5q-%.out"),
    ("\\d-%j.out", "d-%j.out"),
    ("e-\\%j.out", "e-%j.out"),
    ("g-%%%j.out", "g-%15.out"),
    ("i-%5%j.out", "i-515.out"),
    ("j-%j%", "j-15%"),
    ("k-%3", "k-3"),
    ("sub/../h-%j.out", "sub/../h-15.out"),
    ("%999999999999999999999j", "0000000015"),
]


@pytest.mark.parametrize(("pattern", "name"), BATCH_NAMES)
def test_a_batch_script_has_the_one_file_that_slurm_was_seen_to_write(
    pattern: str, name: str
) -> None:
    assert output_files(job(pattern), NODES).files == (LogFile(path=f"/home/ana/run/{name}"),)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("f-%A-%a-%3a.out", "f-6-12-012.out"),
        ("f-%b.out", "f-2.out"),
        ("", "slurm-6_12.out"),
    ],
)
def test_an_array_task_is_named_by_array_and_index(pattern: str, name: str) -> None:
    fact = job(pattern, scheduler_id="6_12", array_job="6", array_task="12")
    assert paths(fact) == [f"/home/ana/run/{name}"]


def test_an_array_task_whose_own_number_is_not_told_is_unseen_and_not_guessed() -> None:
    files = output_files(job("%j.out", scheduler_id="6_12", array_job="6", array_task="12"), NODES)
    assert files.files == ()
    assert "%A_%a" in files.unseen[0].why


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (job(), ["/home/ana/run/slurm-15.out"]),
        (job("o.txt"), ["/home/ana/run/o.txt"]),
        (job("/x/o-%j", "e-%j"), ["/x/o-15", "/home/ana/run/e-15"]),
        (job("/x/o-%j", "/x/o-%j"), ["/x/o-15"]),
        (job("", "e"), ["/home/ana/run/slurm-15.out", "/home/ana/run/e"]),
        (job(is_batch=False), []),
        (job(scheduler_id="15+0"), ["/home/ana/run/slurm-15.out"]),
    ],
)
def test_defaults_merging_and_folders(fact: JobFact, expected: list[str]) -> None:
    assert paths(fact) == expected


def test_names_that_the_scheduler_has_expanded_are_taken_as_they_are() -> None:
    output = OutputPaths(stdout="/x/100%j\\.out", stderr="", work_dir="/w", expanded=True)
    assert paths(job(output=output)) == ["/x/100%j\\.out"]


def test_hostile_job_names_stay_literal() -> None:
    assert paths(job("%x.out", name="../../etc/%j\nx")) == ["/home/ana/run/../../etc/%j\nx.out"]


def test_a_node_in_the_name_waits_for_the_allocation() -> None:
    files = output_files(job("%N.out"), ())
    assert (files.files, files.unseen[0].why) == ((), "not there yet")


def test_a_relative_name_without_a_work_folder_is_unseen() -> None:
    files = output_files(job(output=OutputPaths(stdout="a.out")), NODES)
    assert files.files == ()
    assert "work folder" in files.unseen[0].why


def test_a_step_writes_a_file_for_each_task_and_names_rank_and_node() -> None:
    fact = job("/o/%J-%2t-%n-%N", is_batch=False, tasks=4, tasks_per_node=2)
    assert output_files(fact, NODES).files == (
        LogFile(path="/o/15.0-00-0-node-01", rank=0, node="node-01.lab"),
        LogFile(path="/o/15.0-01-0-node-01", rank=1, node="node-01.lab"),
        LogFile(path="/o/15.0-02-1-node-02", rank=2, node="node-02.lab"),
        LogFile(path="/o/15.0-03-1-node-02", rank=3, node="node-02.lab"),
    )


def test_a_step_writes_a_file_for_each_node() -> None:
    files = output_files(job("/o/%n", is_batch=False), NODES).files
    assert [(file.path, file.rank, file.node) for file in files] == [
        ("/o/0", None, "node-01.lab"),
        ("/o/1", None, "node-02.lab"),
    ]


def test_a_huge_step_names_a_bounded_number_of_files() -> None:
    assert len(paths(job("/o/%t", is_batch=False, tasks=10**9))) == MOST_FILES


def test_rank_and_node_without_the_layout_are_unseen() -> None:
    files = output_files(job("/o/%t-%n", is_batch=False), NODES)
    assert files.files == ()
    assert "how ranks lie" in files.unseen[0].why


@given(st.text(alphabet="%\\0123456789jJnNtsx/.é\n", max_size=40))
def test_no_pattern_breaks_the_expansion(pattern: str) -> None:
    assert len(output_files(job(pattern), NODES).files) == 1


@given(st.text())
def test_a_text_without_symbols_stays_as_it_is(text: str) -> None:
    plain = text.replace("%", "").replace("\\", "")
    assert expand(plain, str) == plain
