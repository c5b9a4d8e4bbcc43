from __future__ import annotations

import pytest

from relight.model.instants import Instant, from_iso
from relight.model.jobs import AttemptKey, JobKey
from relight.model.progress import Progress
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, perceive
from relight.perception.ears import Ears, Lexicon

NOW = Instant(1_900_000_000_000_000)
ATTEMPT = AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0)
EARS = Ears(Lexicon([]), ATTEMPT)


def progress_of(*lines: str) -> Progress:
    data = ("\n".join(lines) + "\n").encode()
    given = Reading(file="out.log", offset=0, data=data, mark=Mark(offset=len(data)))
    return perceive(PerceptionState(), [given], NOW, EARS).progress


STEPS: list[tuple[str, str, int, float | None]] = [
    (
        "Megatron-LM",
        (
            " [2025-01-31 12:00:00.123] iteration      100/  500000 | consumed samples:  25600 |"
            " elapsed time per iteration (ms): 1234.5 | lm loss: 6.1E+00 |"
        ),
        100,
        1.2345,
    ),
    (
        "NeMo 2",
        (
            "Training epoch 0, iteration 99/999 | lr: 1e-05 | global_step: 99 |"
            " train_step_timing in s: 1.23 | consumed_samples: 25600"
        ),
        99,
        1.23,
    ),
    (
        "NeMo 1",
        (
            "Epoch 0: :  10%|# | 100/1000 [10:48<1:37:12, v_num=1, reduced_train_loss=6.12,"
            " global_step=99.00, train_step_timing in s=6.48]"
        ),
        99,
        6.48,
    ),
    ("Lightning", "Epoch 3:  40%|####  | 400/1000 [01:20<02:00,  5.00it/s, v_num=7]", 3400, 0.2),
    ("DeepSpeed", "[INFO] [Rank 0] step=100, skipped=4, lr=[0.0001], mom=[[0.9]]", 100, None),
    (
        "DeepSpeed timer",
        "[timer.py:264:stop] epoch=0/micro_step=400/global_step=100, RunningAvgSamplesPerSec=12.3",
        100,
        None,
    ),
    (
        "torchtitan in colours",
        "[titan] 2025-01-31 12:00:00,123 - root - INFO - \x1b[31mstep: 100  \x1b[32mloss:  6.1234",
        100,
        None,
    ),
    (" Hugging Face", " 10%|#         | 100/1000 [01:40<15:00,  1.25s/it]", 100, 1.25),
    ("Hugging Face behind a rank", "0:  10%|#    | 100/1000 [01:40<15:00,  4.00it/s]", 100, 0.25),
    ("ms-swift", "{'loss': 6.1, 'global_step/max_steps': '100/1000'}", 100, None),
    ("Composer", "[epoch=1][batch=100/4800]:", 100, None),
    ("MaxText", "completed step: 100, seconds: 1.234, TFLOP/s/device: 345.678", 100, 1.234),
    ("nanoGPT", "iter 100: loss 6.1234, time 1234.56ms, mfu 35.12%", 100, 1.23456),
    (
        "build-nanogpt",
        "step   100 | loss: 6.123456 | lr 1e-4 | dt: 123.45ms | tok/sec: 1",
        100,
        0.12345,
    ),
    ("modded-nanogpt", "step:100/5100 train_time:12345ms step_avg:123.45ms", 100, 0.12345),
    ("OLMo", "[step=100/1000,epoch=1,eta=1:23:45]", 100, None),
    ("veRL", "(TaskRunner pid=7) step:10 - actor/pg_loss:-0.1 - timing_s/step:95.2", 10, 95.2),
    ("timm", "Train: 2 [ 100/5000 (  2%)]  Loss: 1.0  Time: 0.123s, 1234.5/s", 10100, 0.123),
    ("any loop with a metric", "2025-01-31 INFO iter 10/50000 loss 0.18 time 2.01", 10, None),
    ("any loop with thousands apart", "Step 1,200/17,000 | loss 0.5 | 3.1 s", 1200, None),
    ("any loop of batches", "batch 120 of 500: loss=2.11 lr=0.1", 120, None),
    ("Ray", "training_iteration: 41, loss: 0.5", 41, None),
    ("any loop in JSON", '{"step": 12, "loss": 0.5}', 12, None),
]


@pytest.mark.parametrize(
    ("line", "step", "seconds"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS]
)
def test_a_completed_step_is_read(line: str, step: int, seconds: float | None) -> None:
    progress = progress_of(line)
    assert (progress.best_step, progress.first_step) == (step, step)
    assert progress.step_seconds == pytest.approx(seconds)


NOT_PROGRESS = [
    "saving checkpoint at iteration     500 to /ckpt",
    "starting step 5",
    "validation loss at iteration 100 | lm loss value: 7.6 | lm loss PPL: 2.1 |",
    "  0%|          | 0/1218 [00:00<?, ?it/s]",
    "Loading checkpoint shards:  67%|##   | 2/3 [00:01<00:00,  1.00it/s]",
    "Map: 100%|####| 5000/5000 [00:01<00:00, 100.00 examples/s]",
    "Validation: 50%|##   | 10/20 [00:01<00:00,  1.00it/s]",
    "max_steps = 1000",
    "[INFO|2026-01-31 10:00:00] trainer.py:2320 >>   Gradient Accumulation steps = 64",
    "[INFO|2026-01-31 10:00:00] trainer.py:2321 >>   Total optimization steps = 17,000",
    "pretrain.py --train-iters 500 --lr 1e-4 --loss-scale 0",
    "Generating train split: 50%|##   | 10/20 [00:01<00:00,  1.00it/s]",
    "Step 3/12 : RUN pip install tokenizers",
    "slurmstepd: error: *** STEP 158.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 *** loss",
    "job failed at step 300, loss 0.5",
    "Test:  [  20/388]  eta: 0:01:11  model_time: 0.1835  time: 0.1886",
    "step:58 - val/loss:0.411",
    '"key": "tracked_stats", "value": {"validation_step_time": 0.1}, "metadata": {"step": 3}}',
    "step 5",
    "NCCL INFO comm 0x5 rank 3 nranks 8",
    "step: 9999999999999999999 loss: 1",
]


@pytest.mark.parametrize("line", NOT_PROGRESS)
def test_what_only_looks_like_a_step_is_none(line: str) -> None:
    assert progress_of(line).best_step is None


def test_a_bare_step_counts_once_it_is_seen_to_rise() -> None:
    assert progress_of("step 1", "step 2").best_step is None
    assert progress_of("step 1", "step 2", "step 3").best_step == 3
    assert progress_of("step 9", "step 2", "step 7", "step 1", "step 5").best_step is None


def test_the_framework_s_own_line_is_believed_before_a_bar() -> None:
    progress = progress_of(
        " 50%|##   | 5000/10000 [00:01<00:00,  1.00it/s]",
        "completed step: 7, seconds: 1.5, TFLOP/s/device: 1",
    )
    assert (progress.best_step, progress.step_seconds) == (7, 1.5)


def test_a_bar_that_was_full_before_training_gives_way() -> None:
    assert (
        progress_of(
            "100%|####| 25/25 [00:01<00:00, 25.0it/s]",
            "  0%|    | 3/1000 [00:01<00:00,  1.0it/s]",
        ).best_step
        == 3
    )


def test_an_evaluation_s_bar_does_not_replace_training_s() -> None:
    assert (
        progress_of(
            "100%|####| 1000/1000 [00:01<00:00,  1.0it/s]",
            " 50%|##  | 100/200 [00:01<00:00,  1.0it/s]",
        ).best_step
        == 1000
    )


def test_step_time_comes_from_printed_times_when_no_line_tells_it() -> None:
    progress = progress_of(
        "2025-01-31 12:00:00 step: 10  loss:  6.1",
        "2025-01-31 12:00:20 step: 20  loss:  6.0",
        "2025-01-31 12:00:40 step: 30  loss:  5.9",
    )
    assert progress.step_seconds == 2.0
    assert progress.first_step_at == from_iso("2025-01-31T12:00:00Z")
    assert progress.last_step_at == from_iso("2025-01-31T12:00:40Z")


def test_a_step_repeated_by_another_rank_is_no_progress() -> None:
    progress = progress_of(
        "2025-01-31 12:00:00 step: 10  loss:  6.1", "2025-01-31 13:00:00 step: 10  loss:  6.1"
    )
    assert progress.last_step_at == from_iso("2025-01-31T12:00:00Z")


def test_steps_done_again_after_a_restart_in_place_keep_the_best() -> None:
    progress = progress_of(*(f"step: {step}  loss:  1" for step in (8, 9, 5, 6)))
    assert (progress.best_step, progress.first_step) == (9, 8)


CHECKPOINTS: list[tuple[tuple[str, ...], int | None]] = [
    (("successfully saved checkpoint from iteration     500 to /ckpt",), 500),
    (("saving checkpoint at iteration     500 to /ckpt",), None),
    (("Checkpoint for step 40 saved successfully",), 40),
    (("[Torch] Checkpoint global_step30 is ready now!",), 30),
    (("saved checkpoint to /ckpt/step_00120",), 120),
    (("iter 9: loss 1.0, time 1.0ms", "saved checkpoint to /ckpt/latest.pt"), 9),
    (("Saving model checkpoint to out/checkpoint-500",), None),
    (
        (
            "Saving model checkpoint to out/checkpoint-500",
            " 50%|#  | 501/1000 [01:40<15:00,  1.25s/it]",
        ),
        500,
    ),
    (
        (
            "step: 10  loss:  1",
            "Finished saving the checkpoint (or staging if async is enabled) in 1.0 seconds.",
            "step: 20  loss:  1",
        ),
        None,
    ),
    (
        (
            "step: 10  loss:  1",
            "Finished saving the checkpoint (or staging if async is enabled) in 1.0 seconds.",
            "step: 20  loss:  1",
            "Finished saving the checkpoint (or staging if async is enabled) in 1.0 seconds.",
        ),
        10,
    ),
]


@pytest.mark.parametrize(("lines", "step"), CHECKPOINTS)
def test_a_checkpoint_counts_once_it_is_durable(lines: tuple[str, ...], step: int | None) -> None:
    assert progress_of(*lines).best_checkpoint == step


RESUMES: list[tuple[tuple[str, ...], int | None]] = [
    (("successfully loaded checkpoint from /ckpt/iter_0000100 [ t 0 ] at iteration 100",), 100),
    (("Restored all states from the checkpoint at /ckpt/epoch=1-step=300.ckpt",), 300),
    (("  Continuing training from global step 500",), 500),
    (("Loading the checkpoint from outputs/checkpoint/step-70.",), 70),
    (("Setting global step to 20",), 20),
    (("Resuming from /ckpt/global_step_60",), 60),
    (("resuming from latest.pt", "iter 31: loss 1.0, time 1.0ms"), 30),
    (("Training from scratch",), 0),
    (("will not load any checkpoints and will start from random",), 0),
    (("iter 31: loss 1.0, time 1.0ms",), None),
]


@pytest.mark.parametrize(("lines", "step"), RESUMES)
def test_where_an_attempt_resumed_is_read(lines: tuple[str, ...], step: int | None) -> None:
    assert progress_of(*lines).resumed_from == step


def test_progress_is_told_to_have_changed_only_when_it_did() -> None:
    data = b"step: 10  loss:  1\n"
    given = Reading(file="f", offset=0, data=data, mark=Mark(offset=len(data)))
    first = perceive(PerceptionState(), [given], NOW, EARS)
    again = perceive(first.state, [given], NOW, EARS)
    assert (first.progress_changed, again.progress_changed) == (True, False)


def test_what_a_line_says_beside_its_step_is_read() -> None:
    progress = progress_of(
        " iteration      100/  500000 | elapsed time per iteration (ms): 1234.5 |"
        " throughput per GPU (TFLOP/s/GPU): 412.3 | lm loss: 6.123456E+00 | grad norm: 1.234 |"
    )
    assert (progress.total, progress.loss, progress.grad_norm) == (500_000, 6.123456, 1.234)
    assert progress.throughput == "412.3 TFLOP/s/GPU"


LOST = [
    ("iter 30: loss nan, time 1020.10ms, mfu 14.12%", 1),
    ("| lm loss: NaN | grad norm: inf |", 1),
    ("{'loss': nan, 'grad_norm': 1.0}", 1),
    ("step_avg:nanms", 0),
    ("accuracy=nan", 0),
    ("number of nan iterations:   0 | loss scale: inf", 0),
    ("loss 11.009 (+nanz)| norm 15.2 (+nanz)|", 0),
    ("loss: 1.0 info", 0),
]


@pytest.mark.parametrize(("line", "count"), LOST)
def test_a_loss_that_is_no_number_is_counted(line: str, count: int) -> None:
    assert progress_of(line).nan_losses == count


def test_skipped_updates_are_counted() -> None:
    progress = progress_of(
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 65536.0",
        "| number of skipped iterations:   1 | number of nan iterations:   0 |",
        "| number of skipped iterations:   0 | number of nan iterations:   0 |",
    )
    assert progress.skipped == 3


def test_training_is_over_until_a_later_step_says_otherwise() -> None:
    over = ["{'train_runtime': 100.1, 'train_loss': 1.2, 'epoch': 3.0}"]
    bar = "100%|####| 250/250 [00:01<00:00,  1.0it/s]"
    assert progress_of(bar, *over).is_finished
    assert progress_of(*over, bar).is_finished
    assert not progress_of(*over, " 10%|#   | 25/250 [00:01<00:00,  1.0it/s]").is_finished


def test_a_bar_at_nought_tells_that_no_step_was_completed() -> None:
    progress = progress_of("  0%|          | 0/1218 [00:00<?, ?it/s]")
    assert (progress.best_step, progress.first_step, progress.last_step) == (None, None, 0)


def test_a_bar_inside_epochs_shows_its_own_step_and_counts_on() -> None:
    progress = progress_of("Epoch 3:  40%|####  | 400/1000 [01:20<02:00,  5.00it/s, v_num=7]")
    assert (progress.last_step, progress.best_step, progress.epoch) == (400, 3400, 3)


def test_a_counter_of_samples_or_tokens_is_told_from_one_of_steps() -> None:
    def told(stride: int) -> list[str]:
        return [
            f':::MLLOG {{"time_ms": {1_700_000_000_000 + 10_000 * n}, "key": "tracked_stats",'
            f' "value": {{"train_step_time": 10.0}}, "metadata": {{"step": {n * stride}}}}}'
            for n in range(1, 5)
        ]

    units = [progress_of(*told(stride)).unit.value for stride in (1, 1152, 4_194_304)]
    assert units == ["step", "sample", "token"]


def test_a_clock_of_whole_seconds_does_not_hide_faster_steps() -> None:
    lines = [f"2026-01-31 10:00:{n // 5:02d} step: {n}  loss:  1.0" for n in range(100)]
    assert progress_of(*lines).step_seconds == pytest.approx(0.2)


def test_the_length_of_an_epoch_is_learnt_where_no_line_tells_it() -> None:
    lines = [
        f"2026-01-31 10:00:00,000 Node[0] Epoch[{epoch}] Batch [{batch}]\tSpeed: 1.0 samples/sec"
        for epoch in range(3)
        for batch in (20, 40, 60)
    ]
    assert progress_of(*lines).best_step == 180
