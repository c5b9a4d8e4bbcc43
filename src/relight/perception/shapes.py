"""The shapes of progress lines: which frameworks print a completed step, a checkpoint, a resume.

Facts from the sources and logs of the frameworks named. ``patterns`` only find a line and are
short, since they run over every byte; ``reads`` take the values from the few lines found.
"""

from __future__ import annotations

from enum import StrEnum

from relight.model.records import Record
from relight.rules.patterns import Pattern


class Says(StrEnum):
    """What a line of progress tells."""

    STEP = "step"
    SAVED = "saved"
    """A checkpoint is durable."""
    SAVING = "saving"
    """A checkpoint is being written; durable once a later step is completed."""
    STAGED = "staged"
    """A checkpoint may be only in memory; durable once the next one begins."""
    RESUMED = "resumed"
    FRESH = "fresh"
    """Training begins from nothing."""


class Shape(Record, frozen=True, kw_only=True):
    """One shape. ``tier`` orders what to believe: 0 a framework's own, 1 a bar, 2 a guess."""

    name: str
    says: Says
    patterns: tuple[str, ...]
    reads: tuple[str, ...] = ()
    tier: int = 0


_NUMBER = r"\d{1,12}"
_WORDS = "global[_ ]?step|train[_ ]step|step|iter|iteration"
_NAMED_STEP = (
    r"^.*(?:step|iteration|iter|checkpoint|ckpt)[-_=: ]{0,12}(?:to )?(?P<step>\d{1,12})\b",
    r"^.*(?:step|iteration|iter|checkpoint|ckpt)[-_=: ]{0,12}(?:to )?(?P<step>\d{1,12})",
)


def _step(name: str, pattern: str, *reads: str, tier: int = 0) -> Shape:
    return Shape(name=name, says=Says.STEP, patterns=(pattern,), reads=reads, tier=tier)


SHAPES: tuple[Shape, ...] = (
    _step(
        "megatron",
        rf"iteration +{_NUMBER}/ *{_NUMBER} \| (?:consumed|elapsed)",
        r"iteration +(?P<step>\d+)/ *(?P<total>\d+) \|",
        r"elapsed time per iteration \(ms\): (?P<ms>[\d.]+)",
    ),
    _step(
        "nemo",
        rf"Training epoch \d{{1,6}}, iteration {_NUMBER}/{_NUMBER} \|",
        r"iteration (?P<step>\d+)/(?P<total>\d+)",
        r"global_step: (?P<global>\d+)",
        r"train_step_timing in s: (?P<s>[\d.]+)",
    ),
    _step(
        "nemo-bar",
        r"\| \d{1,12}/\d{1,12} \[[^\n]{1,200}, global_step=\d{1,12}",
        r"global_step=(?P<step>\d+)",
        r"train_step_timing in s=(?P<s>[\d.]+)",
    ),
    _step("deepspeed", rf"\bstep={_NUMBER}, skipped=", r"\bstep=(?P<step>\d+), skipped="),
    _step(
        "deepspeed-timer",
        rf"global_step={_NUMBER}, RunningAvgSamplesPerSec",
        r"global_step=(?P<step>\d+), RunningAvg",
    ),
    _step(
        "deepspeed-pipe",
        rf"\bsteps: {_NUMBER} loss: [^\n]{{1,60}} iter time",
        r"\bsteps: (?P<step>\d+) loss: ",
        r"iter time \(s\): (?P<s>[\d.]+)",
    ),
    _step(
        "torchtitan", rf"\bstep: {{1,8}}{_NUMBER} {{1,8}}loss: ", r"\bstep: +(?P<step>\d+) +loss"
    ),
    _step(
        "maxtext",
        rf"completed step: {_NUMBER}, seconds: ",
        r"completed step: (?P<step>\d+), seconds: (?P<s>[\d.]+)",
    ),
    _step(
        "nanogpt",
        rf"\biter {_NUMBER}: loss [^\n]{{1,40}}, time ",
        r"\biter (?P<step>\d+): loss .{1,40}, time (?P<ms>[\d.]+)ms",
    ),
    _step(
        "gpt2-loop",
        rf"\bstep {{1,8}}{_NUMBER}(?:/{_NUMBER})? \| [^\n]{{0,40}}loss",
        r"\bstep +(?P<step>\d+)(?:/(?P<total>\d+))? \|",
        r"\bdt: (?P<ms>[\d.]+)ms",
        r"\| (?P<ms>[\d.]+) ms \|",
    ),
    _step(
        "modded-nanogpt",
        rf"\bstep:{_NUMBER}/{_NUMBER} [^\n]{{0,80}}train_time:",
        r"\bstep:(?P<step>\d+)/(?P<total>\d+)",
        r"step_avg:(?P<ms>[\d.]+)ms",
    ),
    _step("composer", rf"\[batch={_NUMBER}/{_NUMBER}\]", r"\[batch=(?P<step>\d+)/(?P<total>\d+)\]"),
    _step(
        "olmo", rf"\[step={_NUMBER}/{_NUMBER},epoch=", r"\[step=(?P<step>\d+)/(?P<total>\d+),epoch="
    ),
    _step(
        "verl",
        rf"\bstep:{_NUMBER} - \w",
        r"\bstep:(?P<step>\d+) - ",
        r"(?:timing_s/step|perf/time_per_step):(?P<s>[\d.]+)",
    ),
    _step(
        "swift",
        rf"'(?:global_step/max_steps|iteration)': '{_NUMBER}/{_NUMBER}'",
        r"'(?:global_step/max_steps|iteration)': '(?P<step>\d+)/(?P<total>\d+)'",
        r"'train_speed\(s/it\)': '?(?P<s>[\d.]+)",
    ),
    _step(
        "mllog",
        r'"train_step_time": \d',
        r'"step": (?P<step>\d+)',
        r'"train_step_time": (?P<s>[\d.]+)',
    ),
    _step(
        "mllog-loss",
        r'"key": "train_loss"[^\n]{1,300}"step_num": \d',
        r'"step_num": (?P<step>\d+)',
    ),
    _step("fairseq", rf"\bnum_updates=?\"?:? ?\"?{_NUMBER}\b", r"num_updates\W{1,4}(?P<step>\d+)"),
    _step(
        "lightning",
        rf"Epoch \d{{1,6}}: +\d{{1,3}}%\|[^|\n]{{0,300}}\| {_NUMBER}/{_NUMBER} \[",
        r"Epoch (?P<epoch>\d+): +\d+%\|[^|]*\| (?P<step>\d+)/(?P<total>\d+) \[",
        r"[ ,](?P<rate>[\d.]+)it/s",
        r"[ ,](?P<s>[\d.]+)s/it",
        tier=1,
    ),
    _step(
        "timm",
        rf"\bTrain: \d{{1,6}} \[ *{_NUMBER}/{_NUMBER} ",
        r"Train: (?P<epoch>\d+) \[ *(?P<step>\d+)/(?P<total>\d+) ",
        r"Time: (?P<s>[\d.]+)s",
        tier=1,
    ),
    _step(
        "bar",
        rf"\d{{1,3}}%\|[^|\n]{{0,300}}\| *{_NUMBER}/{_NUMBER} \[\d",
        r"^(?P<title>.*?):? *\d{1,3}%\|[^|]*\| *(?P<step>\d+)/(?P<total>\d+) \[",
        r"[ ,](?P<rate>[\d.]+)it/s",
        r"[ ,](?P<s>[\d.]+)s/it",
        tier=1,
    ),
    _step(
        "plain",
        rf"(?i)\b(?:{_WORDS})s?[\"']?[ =:#\[]{{1,4}}{_NUMBER}\b",
        rf"(?i)\b(?P<word>{_WORDS})s?[\"']?[ =:#\[]{{1,4}}(?P<step>{_NUMBER})\b",
        tier=2,
    ),
    Shape(
        name="saved",
        says=Says.SAVED,
        patterns=(
            r"successfully saved checkpoint from iteration +\d",
            r"Checkpoint for step \d{1,12} saved successfully",
            r"Checkpoint global_step\d{1,12} is ready now",
            r"(?i)\bsaved (?:a |the |model )?checkpoint\b",
            r"(?i)\bcheckpoint [^\n]{0,100}\b(?:was |successfully )?saved\b",
        ),
        reads=_NAMED_STEP,
    ),
    Shape(
        name="saving",
        says=Says.SAVING,
        patterns=(
            r"Saving model checkpoint to \S{0,300}checkpoint-\d",
            r"Saving JIT checkpoint at step \d",
        ),
        reads=_NAMED_STEP,
    ),
    Shape(name="staged", says=Says.STAGED, patterns=(r"Finished saving the checkpoint",)),
    Shape(
        name="resumed",
        says=Says.RESUMED,
        patterns=(
            r"successfully loaded checkpoint ",
            r"Restored all states from the checkpoint",
            r"Continuing training from global step \d",
            r"Setting global step to \d",
            r"Loading the checkpoint from ",
            r"Autoresuming training from checkpoint",
            r"Checkpoint successfully loaded",
            r"(?i)\bresum(?:ed|ing) (?:training )?(?:from|at)\b",
        ),
        reads=_NAMED_STEP,
    ),
    Shape(
        name="fresh",
        says=Says.FRESH,
        patterns=(
            r"will not load any checkpoints and will start from random",
            r"\bTraining from scratch\b",
            r"No previous autoresume checkpoint found",
            r"Training starts at step 1\b",
        ),
    ),
)

READS: tuple[tuple[Pattern, ...], ...] = tuple(
    tuple(Pattern(expression) for expression in shape.reads) for shape in SHAPES
)
"""The compiled ``reads`` of each shape, in the order of ``SHAPES``."""
