from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.progress import Progress
from relight.model.reports import LogFile
from relight.model.signals import Mark, Reading
from relight.perception.attempts import PerceptionState, perceive
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.testing.frameworks import FRAMEWORKS, Dress, Generated, Prefix, generate

EARS = Ears(Lexicon([]), AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0))
DRESSES = [
    Dress(),
    Dress(prefix=Prefix.SRUN, crlf=True, noise=7),
    Dress(prefix=Prefix.RANK, colours=True),
    Dress(prefix=Prefix.RAY),
    Dress(prefix=Prefix.HOST, noise=3),
    Dress(prefix=Prefix.TORCHRUN),
    Dress(prefix=Prefix.MPIRUN),
]


def progress_of(data: bytes) -> Progress:
    report = report_of(LogFile(file="out.log"), [data], EARS, Instant(1_900_000_000_000_000))
    assert len(report.runs) == 1
    return report.runs[0].progress


def check(generated: Generated) -> None:
    progress, truth = progress_of(generated.data), generated.truth
    told = (progress.first_step, progress.last_step, progress.unit, progress.best_checkpoint)
    assert told == (truth.first_step, truth.last_step, truth.unit, truth.last_checkpoint_step)
    if truth.step_seconds is not None:
        assert progress.step_seconds == pytest.approx(truth.step_seconds, rel=0.03)
    assert progress.is_finished == truth.is_finished
    assert progress.nan_losses == 0


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_is_true_of_a_healthy_log_is_read_in_it(name: str) -> None:
    shift = list(FRAMEWORKS).index(name)
    for seed in range(3):
        dress = DRESSES[(shift + 3 * seed) % len(DRESSES)]
        check(generate(name, seed=seed, steps=120, dress=dress))


def test_a_log_without_a_report_is_refused() -> None:
    with pytest.raises(ValueError, match="reports each 50 steps"):
        generate("opennmt", steps=49)


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert generate("megatron", seed=3) == generate("megatron", seed=3)
    assert generate("megatron", seed=3) != generate("megatron", seed=4)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(FRAMEWORKS)), st.integers(0, 1 << 30), st.binary(max_size=12))
def test_damaged_logs_neither_crash_nor_break_what_is_stored(
    name: str, place: int, rubbish: bytes
) -> None:
    data = bytearray(generate(name, seed=place, steps=60).data)
    digits = [at for at, byte in enumerate(data) if chr(byte).isdigit()]
    for number in range(12):
        at = digits[(place * 31 + number * 7919) % len(digits)]
        data[at:at] = rubbish if number % 2 else b"9" * (place % 400)
    given_data = bytes(data)
    reading = Reading(file="out.log", offset=0, data=given_data, mark=Mark(offset=len(given_data)))
    state = perceive(PerceptionState(), [reading], Instant(0), EARS).state
    assert msgspec.json.decode(msgspec.json.encode(state), type=PerceptionState) == state
