from __future__ import annotations

from math import inf, isnan

import msgspec
import pytest

from relight.model.allowances import Allowances
from relight.model.findings import Kind
from relight.model.instants import Instant, seconds
from relight.model.jobs import AttemptKey, JobKey
from relight.model.pulses import Beat, Pulse
from relight.model.signals import FileUnseen, Mark, Reading
from relight.perception.attempts import Perceived, PerceptionState, perceive
from relight.perception.ears import Ears, Lexicon
from relight.perception.rhythm.figures import Figures, figures_in, scale_in
from relight.perception.rhythm.states import Phase

EARS = Ears(Lexicon([]), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))
NOW = Instant(1_900_000_000_000_000)
FILE = "/srv/jobs/7.out"


def read(
    state: PerceptionState, text: bytes, now: Instant = NOW, *, at_end: bool = True
) -> Perceived:
    offset = state.files[FILE].next_offset if FILE in state.files else 0
    reading = Reading(
        file=FILE, offset=offset, data=text, mark=Mark(offset=offset + len(text)), at_end=at_end
    )
    return perceive(state, [reading], now, EARS, allowances=Allowances())


def pulses_of(*lines: str) -> tuple[Pulse, ...]:
    return read(PerceptionState(), "".join(f"{line}\n" for line in lines).encode()).pulses


MEGATRON = (
    " [2025-01-31 12:00:{second:02d}.500000] iteration {step:8d}/  500000 | consumed samples: 256 |"
    " elapsed time per iteration (ms): 1500.0 | global batch size: 256 | lm loss: {loss} |"
    " loss scale: 1.0 | grad norm: {norm} | params norm: 123.4 |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def test_a_step_tells_its_numbers() -> None:
    first, second = pulses_of(
        MEGATRON.format(second=1, step=10, loss="6.5E+00", norm="1.25"),
        MEGATRON.format(second=16, step=20, loss="NAN", norm="inf"),
    )
    assert (first.what, first.step, first.seconds, first.loss) == (Beat.STEP, 10, 1.5, 6.5)
    assert (first.grad_norm, first.scale, first.total) == (1.25, 1.0, 500_000)
    assert first.heard_at == NOW
    assert first.at is not None
    assert second.at is not None
    assert second.at - first.at == seconds(15)
    assert second.loss is not None
    assert isnan(second.loss)
    assert second.grad_norm == inf
    assert second.place is not None
    assert second.place.line == 2


@pytest.mark.parametrize(
    ("line", "beat"),
    [
        ("saving checkpoint at iteration     500 to /srv/ckpt in torch_dist format", Beat.SAVING),
        ("  successfully saved checkpoint from iteration     500 to /srv/ckpt", Beat.SAVED),
        ("Saving the checkpoint (or staging if async is enabled).", Beat.SAVING),
        ("Finished saving the checkpoint (or staging) in 2.1 seconds.", Beat.SAVED),
        ("***** Running Evaluation *****", Beat.EVALUATING),
        ("Evaluating iter 1/10", Beat.EVALUATING),
        ("Test: [  0/98]  eta: 0:00:10", Beat.EVALUATING),
        (" validation loss at iteration 100 | lm loss value: 7.6E+00 |", Beat.EVALUATED),
        ("[after dataloaders are built] datetime: 2025-12-22 19:30:14", Beat.SET_UP),
        ("[before the start of training step] datetime: 2025-12-22 19:30:14", Beat.SET_UP),
        ("Restored all states from the checkpoint at /srv/ckpt/last.ckpt", Beat.RESUMED),
        ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1",
         Beat.SKIPPED),
        ("[after training is done] datetime: 2025-12-22 19:30:14", Beat.FINISHED),
    ],
)  # fmt: skip
def test_what_else_a_line_says_is_a_pulse(line: str, beat: Beat) -> None:
    assert beat in [one.what for one in pulses_of("iter 10: loss 6.1, time 99.0ms", line)]


def test_a_checkpoint_names_the_step_that_it_is_of_and_not_the_last_one() -> None:
    step = MEGATRON.format(second=1, step=49, loss="6.5E+00", norm="1.25")
    _, saving = pulses_of(step, "saving checkpoint at iteration      50 to /srv/ckpt in torch_dist")
    assert (saving.what, saving.step) == (Beat.SAVING, 50)


def test_where_nobody_waits_for_more_no_pulses_are_made() -> None:
    line = MEGATRON.format(second=1, step=49, loss="6.5E+00", norm="1.25").encode() + b"\n"
    reading = Reading(file=FILE, offset=0, data=line, mark=Mark(offset=len(line)))
    perceived = perceive(PerceptionState(), [reading], NOW, EARS)
    assert perceived.progress.best_step == 49
    assert perceived.pulses == ()
    assert perceived.state.rhythm == PerceptionState().rhythm


def test_words_without_a_meaning_for_the_rhythm_are_no_pulse() -> None:
    quiet = (
        "evaluation strategy is steps",
        "NCCL INFO Channel 00 : 0 -> 1 via P2P",
        "the model was saved by someone else",
    )
    assert pulses_of(*quiet) == ()


def test_the_bar_of_an_evaluation_moves_and_completes_no_step() -> None:
    train = " 10%|#         | 100/1000 [01:40<15:00,  1.25s/it]"
    bar = "Evaluating:  {0}%|##   | {0}/100 [00:10<00:40,  2.00it/s]"
    state = read(PerceptionState(), f"{train}\n".encode()).state
    found: list[Beat] = []
    for number in (10, 20, 20, 30):
        heard = read(state, f"{bar.format(number)}\r".encode(), Instant(NOW + number))
        state = heard.state
        found += [one.what for one in heard.pulses]
    assert found == [Beat.EVALUATING, Beat.MOVED] * 3
    assert state.rhythm.phase is Phase.EVALUATION
    assert state.progress.last_step == 100


def test_a_loss_on_a_line_of_its_own_is_that_of_the_last_step() -> None:
    bar = " 10%|#         | 100/1000 [01:40<15:00,  1.25s/it]"
    step, beside = pulses_of(bar, "{'loss': nan, 'grad_norm': nan, 'epoch': 0.1}")
    assert (step.step, beside.step) == (100, 100)
    assert beside.loss is not None
    assert isnan(beside.loss)


def test_a_clock_that_lines_print_tells_the_time_of_a_step() -> None:
    lines = [f"step:{n}/6710 train_time:{n * 250}ms step_avg:250.00ms" for n in range(1, 5)]
    assert [one.seconds for one in pulses_of(*lines)] == [None, 0.25, 0.25, 0.25]


@pytest.mark.parametrize(
    ("line", "figures"),
    [
        ("step: 2  loss:  7.7082  grad_norm:  1.5585  memory: 1.3GiB", Figures(7.7082, 1.5585)),
        ("val_loss=0.5, train_loss=0.25", Figures(0.25)),
        (
            "Loss/tok 9.5806 (10.1864)\tData 7.20e-05 (2.53e-02)",
            Figures(9.5806, None, None, 7.2e-5),
        ),
        ("time: 0.16  data: 0.1495  max mem: 10927", Figures(None, None, None, 0.1495)),
        ("batch_cost: 0.25, reader_cost: 0.125, ips: 7.9", Figures(None, None, None, 0.125)),
        ("batch-generator ....: (12.5, 31.25)", Figures(None, None, None, 0.03125)),
        ("throughput/device/data loading (s)=0.001", Figures(None, None, None, 0.001)),
        ("loss inf | norm 15.2 (+nanz)", Figures(inf, 15.2)),
        ("loss scale: 1024.0 | params norm: 3.5", Figures(None, None, 1024.0)),
        ("loss info printed each 10 steps", Figures()),
        ("loss 1.2.3.4", Figures()),
    ],
)
def test_figures_are_read_beside_the_step(line: str, figures: Figures) -> None:
    assert figures_in(line) == figures


def test_the_scale_that_is_left_is_the_last_one_told() -> None:
    line = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, reducing to 2048"
    assert scale_in(line) == 2048


def test_a_silence_is_found_in_a_file_that_is_read_and_in_no_other() -> None:
    state, now = PerceptionState(), NOW
    state = perceive(state, [], now, EARS, allowances=Allowances()).state
    for step in range(30):
        now = Instant(now + seconds(2))
        line = MEGATRON.format(second=step, step=step + 1, loss="6.5", norm="1.0")
        state = read(state, f"{line}\n".encode(), now).state
    blind = state
    found: list[Kind] = []
    for _ in range(40):
        now = Instant(now + seconds(5))
        heard = read(state, b"NCCL INFO heartbeat\n", now)
        state = heard.state
        found += [one.kind for one in heard.findings]
        unseen = [FileUnseen(file=FILE, why="permission denied")]
        told = perceive(blind, unseen, now, EARS, allowances=Allowances())
        blind = told.state
        assert told.findings == ()
    assert found == [Kind.HANG]
    assert state.rhythm.place is not None
    stored = msgspec.json.encode(state)
    assert msgspec.json.decode(stored, type=PerceptionState) == state


def test_a_state_stored_before_there_was_a_rhythm_is_read() -> None:
    assert msgspec.json.decode(b'{"counts": {}}', type=PerceptionState) == PerceptionState()


def test_how_a_log_is_cut_into_readings_does_not_change_the_rhythm() -> None:
    lines = [MEGATRON.format(second=n, step=n + 1, loss="6.5", norm="1.0") for n in range(40)]
    lines.insert(20, "saving checkpoint at iteration 20 to /srv/ckpt")
    text = "".join(f"{line}\n" for line in lines).encode()
    whole = read(PerceptionState(), text).state
    for size in (13, 97, 1_000):
        state = PerceptionState()
        for at in range(0, len(text), size):
            state = read(state, text[at : at + size]).state
        assert state.rhythm == msgspec.structs.replace(
            whole.rhythm, judged_at=state.rhythm.judged_at
        )
        assert state.beats == whole.beats
