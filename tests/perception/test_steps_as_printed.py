from __future__ import annotations

import pytest

from relight.model.instants import Instant, from_iso
from relight.model.jobs import AttemptKey, JobKey
from relight.model.progress import Progress
from relight.model.reports import LogFile
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, perceive
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of

NOW = Instant(1_900_000_000_000_000)
EARS = Ears(Lexicon([]), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))


def progress(*lines: str) -> Progress:
    data = ("\n".join(lines) + "\n").encode()
    return report_of(LogFile(file="a.log"), [data], EARS, NOW).runs[-1].progress


def imagenet(epoch: int, first: int, last: int, each: int = 10) -> list[str]:
    return [
        f"Epoch: [{epoch}][{n:4d}/100]\tTime  0.300 ( 0.412)\tLoss 6.9e+00"
        for n in range(first, last + 1, each)
    ]


EPOCHS: list[tuple[str, list[str], int, int]] = [
    ("the middle of an epoch", imagenet(11, 70, 90), 90, 1190),
    ("a turn of epochs", [*imagenet(11, 90, 90), *imagenet(12, 0, 20)], 20, 1220),
    ("the first epoch", imagenet(0, 0, 50), 50, 50),
    (
        "from the first epoch on",
        [*imagenet(0, 0, 90), *imagenet(1, 0, 90), *imagenet(2, 0, 10)],
        210,
        210,
    ),
    ("from the end of the first on", [*imagenet(0, 80, 90), *imagenet(1, 0, 20)], 20, 120),
]


@pytest.mark.parametrize(
    ("lines", "last", "best"), [case[1:] for case in EPOCHS], ids=[case[0] for case in EPOCHS]
)
def test_a_step_inside_an_epoch_is_as_printed_unless_the_log_holds_all(
    lines: list[str], last: int, best: int
) -> None:
    told = progress(*lines)
    assert (told.last_step, told.best_step) == (last, best)
    assert told.total is None


LINES: list[tuple[tuple[str, ...], int | None]] = [
    (("epoch 4 batch 330 loss 0.242", "epoch 4 batch 340 loss 0.274"), 340),
    (("epoch 4 batch 990 loss 0.242", "epoch 5 batch 10 loss 0.274"), 10),
    (
        ("[2024-02-27T18:34:52Z] fa88a9df || INFO: [rank=0] Training: epoch 2 batch 410 loss 1",),
        410,
    ),
    (("INFO: Validating: epoch 2 batch 310 loss 0.1",), None),
    (("ep 41 train, step 128, ce 2.110, fer 0.495, 1.981 sec/step",), 128),
    (("Epoch [3/10], Step [200/600], Loss: 0.1",), 200),
    (("I1115 12:00:39.451544 140641718562816 trainer.py:501] Training: step 205",), 205),
    (("2024-11-19 02:00:31 - INFO - It    110 [TRAIN] [x]: (T=0.518) loss=5.1",), 110),
    (("[1,0]<stdout>:20\timages/sec: 2113.0 +/- 0.9 (jitter = 2.0)\t8.014",), 20),
    (("[1,0]<stdout>:Step\t5450\timages/sec: 5343.4 +/- 0.9 (jitter = 9.1)\t7.6",), 5450),
    (("Train Epoch: 3 [   81920/12800000 (1%)] Data (t): 0.3 Loss: 4.9",), 81920),
    (("step 240 error_rate=0.06 oom_events=0 killed_tasks=0 loss=2.760",), 240),
    (("step 240 failed, loading the last checkpoint, loss=2.760",), None),
    (("slurmstepd: error: *** STEP 51822.0 ON dgx-16 CANCELLED AT 2024-01-01T00:00:00 ***",), None),
    (("[5] STEP 51822.0 ON dgx-16 TIMEOUT 0.11",), None),
    (("node-1: s:9780 trl:3.4378 lr:0.000317 norm:0.25",), 9780),
    (("[titan] 1|100|Loss: 6.12:  10%|#   | 100/1000 [01:40<15:00,  1.25s/it]",), 100),
    (("max steps=100000 lr=0.1 save_every=100",), None),
    (("iter=10 lr=0.1 save_every=100 load_seconds=0.2",), 10),
]


@pytest.mark.parametrize(("lines", "last"), LINES)
def test_the_last_step_is_the_counter_as_printed(lines: tuple[str, ...], last: int | None) -> None:
    assert progress(*lines).last_step == last


def test_a_counter_that_runs_through_is_not_counted_on() -> None:
    told = progress("epoch 1 step 900 loss 0.5", "epoch 2 step 1800 loss 0.4")
    assert (told.last_step, told.best_step) == (1800, 1800)


BARE = "step 10 | loss: 3.10"
TIMED = "2026-01-31 10:00:00 step 20 | loss: 3.05"


@pytest.mark.parametrize(
    ("lines", "first", "last"),
    [
        ((BARE,), None, None),
        ((TIMED,), "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ((BARE, TIMED), None, "2026-01-31T10:00:00Z"),
    ],
)
def test_a_file_tells_no_time_that_it_does_not_print(
    lines: tuple[str, ...], first: str | None, last: str | None
) -> None:
    told = progress(*lines)
    expected = [one if one is None else from_iso(one) for one in (first, last)]
    assert [told.first_step_at, told.last_step_at] == expected


def test_a_living_log_is_timed_by_its_reader() -> None:
    data = f"{BARE}\n".encode()
    reading = Reading(file="a.log", offset=0, data=data, mark=Mark(offset=len(data)))
    told = perceive(PerceptionState(), [reading], NOW, EARS).progress
    assert (told.first_step_at, told.last_step_at) == (NOW, NOW)
