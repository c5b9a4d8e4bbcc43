"""Bars, which any program may draw, and guesses at what any program may print."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.perception.shapes.entries import BAR, CHECKPOINT, EPOCH, GUESS, N, Shape, counter

_RATE = r"[ ,](?P<rate>[\d.]+) ?(?:it|batch(?:es)?|steps?|iters?)/s"
_SECONDS = r"[ ,](?P<s>[\d.]+) ?s/(?:it|batch|step|iter)"
_WORDS = (
    "global[_ ]?step|train(?:ing)?[_ ](?:step|iteration)|step|iter|iteration|update|batches trained"
)
_COUNT = r"(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,12})"
"""A number as people write it, perhaps with thousands apart."""

BARS: tuple[Shape, ...] = (
    counter(
        "lightning",
        "PyTorch Lightning, plain tqdm by epochs",
        rf"Epoch:? #?\d{{1,6}}(?:/\d{{1,6}})?\]?:? +\d{{1,3}}%\|[^|\n]*\| *{N}/{N} \[",
        r"Epoch:? #?(?P<epoch>\d+)(?:/\d+)?\]?:? +\d+%\|[^|]*\| *(?P<step>\d+)/(?P<total>\d+) \[",
        _RATE,
        _SECONDS,
        tier=BAR,
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=(
            "Epoch 3:  40%|####  | 400/1000 [01:20<02:00,  5.00it/s, v_num=7, train_loss=0.123]",
            3400,
            0.2,
        ),
    ),
    counter(
        "lightning-rich",
        "PyTorch Lightning",
        rf"Epoch \d{{1,6}}/\d{{1,6}} [^\n\d]* {N}/{N} ",
        r"Epoch (?P<epoch>\d+)/\d+ [^\n\d]{1,400} (?P<step>\d+)/(?P<total>\d+) ",
        r" (?P<rate>[\d.]+)it/s",
        tier=BAR,
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=("Epoch 1/9  ---------- 20/100 0:00:10 \u2022 0:00:40 2.0it/s v_num: 0", 120, 0.5),
    ),
    counter(
        "bar",
        "tqdm: Hugging Face Trainer, accelerate, TRL, axolotl, LLaMA-Factory, OpenRLHF",
        rf"%\|[^|\n]*\| *{N}/{N} \[\d",
        r"^(?P<title>.*?)\d{1,3}%\|[^|]*\| *(?P<step>\d+)/(?P<total>\d+) \[",
        _RATE,
        _SECONDS,
        tier=BAR,
        example=(" 10%|#         | 100/1000 [01:40<15:00,  1.25s/it]", 100, 1.25),
    ),
    counter(
        "keras",
        "Keras",
        rf"{N}/{N} \[[=>.]{{10}}",
        r"^(?P<title>.*?)(?P<step>\d+)/(?P<total>\d+) \[[=>.]{10}",
        r" (?P<ms>\d+)ms/(?:step|epoch)",
        r" (?P<s>\d+)s/step",
        tier=BAR,
        unit=StepUnit.BATCH,
        example=(
            " 100/1000 [==>...........................] - ETA: 1:23 - loss: 0.1234",
            100,
            None,
        ),
    ),
    counter(
        "keras-3",
        "Keras 3",
        rf"{N}/{N} \x1b?[^\n\d\x1b]{{0,20}}\xe2\x94\x81",
        r"(?P<step>\d+)/(?P<total>\d+) [^\n\d]{0,20}\xe2\x94\x81",
        r" (?P<ms>\d+)ms/step",
        r" (?P<s>\d+)s/step",
        tier=BAR,
        unit=StepUnit.BATCH,
        example=(
            "100/1000 \u2501\u2501\u2501\u2501\u2501\u2501\u2501\u2501 1:23 84ms/step - loss: 0.1",
            100,
            0.084,
        ),
    ),
)

_STEPS_OF_EPOCH = "(?:mini-?)?batch|step|iter|iteration|it|update|global[ _]step"
_IN_EPOCH = r"(?:/\d{1,6})?[^\n\d]{1,24}\b"
_EPOCH_IS = r"(?i)\bep(?:och)?[ =:#\[(]{1,4}"

GUESSES: tuple[Shape, ...] = (
    counter(
        "epoch-batches",
        "any loop",
        rf"{_EPOCH_IS}\d{{1,6}}{_IN_EPOCH}(?:{_STEPS_OF_EPOCH})[ =:#\[(]{{1,4}}{N}\b",
        rf"{_EPOCH_IS}(?P<epoch>\d{{1,6}}){_IN_EPOCH}(?P<word>{_STEPS_OF_EPOCH})"
        rf"[ =:#\[(]{{1,4}}(?P<step>{_COUNT})(?: ?(?:/|of) ?(?P<total>{_COUNT}))?\b",
        tier=GUESS,
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=("(Worker pid=7, ip=10.0.0.3) epoch 4 batch 330 loss 0.242", 330, None),
    ),
    counter(
        "plain",
        "any loop",
        rf"(?i)(?:^|[^\w-])(?:{_WORDS})s?[\"']?[ =:#\[]{{1,4}}{N}\b",
        rf"(?i)(?:^|[^\w-])(?P<word>{_WORDS})s?[\"']?[ =:#\[]{{1,4}}(?P<step>{_COUNT})"
        rf"(?: ?(?:/|of) ?(?P<total>{_COUNT}))?\b",
        r"(?i)\b(?:step|iter|iteration|batch)[ _]?time[ :=]{1,3}(?P<s>[\d.]+) ?s?\b",
        tier=GUESS,
        example=("2025-01-31 INFO iter 10/50000 loss 0.18 time 2.01", 10, None),
    ),
    counter(
        "batches",
        "any loop",
        rf"(?i)(?:^|[^\w-])batch[ =:#\[]{{1,4}}{N} ?(?:/|of) ?{N}\b",
        rf"(?i)(?:^|[^\w-])(?P<word>batch)[ =:#\[]{{1,4}}(?P<step>{N}) ?(?:/|of) ?(?P<total>{N})\b",
        tier=GUESS,
        unit=StepUnit.BATCH,
        example=("Batch 120 of 500 | loss=2.11 lr=0.1", 120, None),
    ),
    counter(
        "lightning-checkpoint",
        "PyTorch Lightning",
        rf"\bEpoch \d{{1,6}}, global step {N}: ",
        r", global step (?P<step>\d+): ",
        tier=CHECKPOINT,
        example=(
            (
                "Epoch 0, global step 500: 'val_loss' reached 0.512 (best 0.512), saving model to"
                " '/logs/last.ckpt' as top 1"
            ),
            500,
            None,
        ),
    ),
    counter(
        "checkpoint",
        "Hugging Face Trainer",
        r"Saving model checkpoint to \S*checkpoint-\d",
        r"checkpoint-(?P<step>\d+)",
        tier=CHECKPOINT,
        example=("Saving model checkpoint to out/checkpoint-500", 500, None),
    ),
    counter(
        "epoch",
        "any loop",
        r"(?i)\bepoch[\"']?[ =:#\[]{1,4}\d{1,6}\b[^\n]*loss",
        r"(?i)\b(?P<word>epoch)[\"']?[ =:#\[]{1,4}(?P<step>\d{1,6})\b",
        tier=EPOCH,
        unit=StepUnit.EPOCH,
        example=("epoch 41/400 | train loss 0.3310 | val loss 0.3928 | best", 41, None),
    ),
)
