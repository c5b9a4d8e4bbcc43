"""Counters of MLPerf's logger, NVIDIA's DLLogger and recommenders."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.perception.shapes.entries import (
    ENGINE,
    EPOCH,
    OWN,
    SUMMARY,
    Example,
    N,
    Says,
    Shape,
    counter,
)

_STEP = r'"step(?:_num)?": (?P<step>\d+)'
_SAMPLES = r'"samples_count": (?P<step>\d+)'
_HEAD = (
    ':::MLLOG {"namespace": "", "time_ms": 1760825335084, "event_type": "POINT_IN_TIME", "key": '
)
_TAIL = ', "metadata": {"file": "/workspace/callbacks.py", "lineno": 480, '


def _mllog(
    name: str,
    patterns: tuple[str, ...],
    *reads: str,
    tier: int,
    unit: StepUnit = StepUnit.STEP,
    examples: tuple[Example, ...],
) -> Shape:
    return Shape(
        name=name,
        framework="MLPerf logger",
        says=Says.STEP,
        patterns=patterns,
        reads=reads,
        tier=tier,
        unit=unit,
        only_rises=True,
        counts_more=unit is StepUnit.STEP,
        examples=examples,
    )


MLPERF: tuple[Shape, ...] = (
    _mllog(
        "mllog",
        (r'"(?:tracked_stats|train_loss)", "value": [^\n]*"step(?:_num)?": \d',),
        rf'"tracked_stats", "value": \{{[^}}]*(?:["_]loss|"train_step_tim)[^}}]*\}}.*{_STEP}',
        rf'"train_loss", "value": .*{_STEP}',
        r'"train_step_tim(?:e|ing in s)": (?P<s>[\d.]+)',
        tier=OWN,
        examples=(
            Example(
                line=f'0: {_HEAD}"tracked_stats", "value": {{"train_step_time": 0.4485,'
                f' "reduced_train_loss": 6.35}}{_TAIL}"step": 351.0, "samples_count": 5632.0}}}}',
                step=351,
                seconds=0.4485,
            ),
            Example(
                line=f'{_HEAD}"train_loss", "value": 1.28{_TAIL}"epoch_num": 1, "step_num": 20}}}}',
                step=20,
            ),
            Example(
                line=f'{_HEAD}"tracked_stats", "value": {{"throughput": 523.7, "loss": 0.873}}'
                f'{_TAIL}"step_num": 200}}}}',
                step=200,
            ),
        ),
    ),
    _mllog(
        "mllog-samples",
        (r'"(?:tracked_stats|train_loss)", "value": [^\n]*"samples_count": \d',),
        rf'"train_loss", "value": .*{_SAMPLES}',
        rf'"tracked_stats", "value": \{{[^}}]*"train[^}}]*\}}.*{_SAMPLES}',
        tier=ENGINE,
        unit=StepUnit.SAMPLE,
        examples=(
            Example(
                line=f'{_HEAD}"train_loss", "value": 1.3{_TAIL}"samples_count": 320, "lr": 0.1}}}}',
                step=320,
            ),
        ),
    ),
    _mllog(
        "mllog-throughput",
        (r'"tracked_stats", "value": \{"throughput": [^\n]*"step(?:_num)?": \d',),
        _STEP,
        tier=SUMMARY,
        examples=(
            Example(
                line=f'{_HEAD}"tracked_stats", "value": {{"throughput": 5.4}}{_TAIL}"step": 20}}}}',
                step=20,
            ),
        ),
    ),
    _mllog(
        "mllog-block",
        (r'"block_stop", "value": [^\n]*"samples_count": \d',),
        _SAMPLES,
        tier=SUMMARY,
        unit=StepUnit.SAMPLE,
        examples=(
            Example(
                line=f'{_HEAD}"block_stop", "value": "training"{_TAIL}"samples_count": 1024}}}}',
                step=1024,
            ),
        ),
    ),
    _mllog(
        "mllog-epoch",
        (r'"epoch_stop", "value": [^\n]*"epoch_num": \d',),
        r'"epoch_num": (?P<step>\d+)',
        tier=EPOCH,
        unit=StepUnit.EPOCH,
        examples=(
            Example(line=f'{_HEAD}"epoch_stop", "value": null{_TAIL}"epoch_num": 2}}}}', step=2),
        ),
    ),
    _mllog(
        "mllog-accuracy",
        (r'"eval_accuracy", "value": [^\n]*"(?:epoch_num|samples_count)": \d',),
        r'"(?:epoch_num|samples_count)": (?P<step>\d+)',
        tier=EPOCH + 1,
        unit=StepUnit.EPOCH,
        examples=(
            Example(line=f'{_HEAD}"eval_accuracy", "value": 0.43{_TAIL}"epoch_num": 7}}}}', step=7),
        ),
    ),
    Shape(
        name="mllog-batch",
        framework="MLPerf logger",
        says=Says.BATCH,
        patterns=(r'"key": "global_batch_size", "value": \d',),
        reads=(r'"global_batch_size", "value": (?P<step>\d+)',),
        examples=(Example(line=f'{_HEAD}"global_batch_size", "value": 8{_TAIL}', step=8),),
    ),
    counter(
        "bert-dict",
        "BERT of MLPerf",
        rf"\{{'training_steps': {N}, ",
        r"'training_steps': (?P<step>\d+)",
        r"'timestamp': (?P<unix>\d{9,10}\.\d+)",
        unit=StepUnit.ITERATION,
        example=(
            (
                "0: {'training_steps': 21, 'average_loss': 4.34, 'step_loss': 4.34, 'seq/s':"
                " 1052.0,"
                " 'global_steps': 14, 'skipped_steps': 7, 'timestamp': 1593140160.4051948}"
            ),
            21,
            None,
        ),
    ),
    counter(
        "bert-dict-evaluation",
        "BERT of MLPerf",
        rf"\{{'global_steps': {N}, 'eval_loss'",
        r"'global_steps': (?P<step>\d+)",
        tier=SUMMARY,
        example=("{'global_steps': 20, 'eval_loss': 4.16, 'eval_mlm_accuracy': 0.368}", 20, None),
    ),
    counter(
        "dlrm",
        "DLRM",
        rf"Finished training it {N}/{N} of epoch \d",
        r"training it (?P<step>\d+)/(?P<total>\d+) of epoch (?P<epoch>\d+)",
        r", (?P<ms>[\d.]+) ms/it",
        unit=StepUnit.ITERATION,
        epoch_from=0,
        example=(
            "[7] Finished training it 384/128028 of epoch 0, 24.65 ms/it, loss 0.138264",
            384,
            0.02465,
        ),
    ),
    counter(
        "hugectr",
        "HugeCTR",
        rf"\bIter: {N} Time\({N} iters\): ",
        r"\bIter: (?P<step>\d+) Time\((?P<span>\d+) iters\): (?P<span_s>[\d.]+)s",
        unit=StepUnit.ITERATION,
        example=(
            (
                "[HCTR][17:36:49.733][INFO][RK0][main]: Iter: 100 Time(100 iters): 0.578562s"
                " Loss: 0.133054 lr:0.004"
            ),
            100,
            0.00578562,
        ),
    ),
)

DLLOGGER: tuple[Shape, ...] = (
    counter(
        "dll",
        "NVIDIA DLLogger",
        rf"\d - Iteration:? {N} ",
        r"\bDLL .{10,40} - Iteration:? (?P<step>\d+) ",
        r"iteration_time : (?P<ms>[\d.]+) ms",
        r"iteration_time : (?P<s>[\d.]+) s",
        unit=StepUnit.ITERATION,
        example=(
            (
                "0: DLL 2025-10-03 21:44:13.359686 - Iteration 100 | train_acc : 0.6572 % |"
                " iteration_time : 72.53 ms | train_loss : 1.0918"
            ),
            100,
            0.07253,
        ),
    ),
    counter(
        "dll-epochs",
        "NVIDIA DLLogger",
        rf"\d - (?:Training )?Epoch: \d{{1,6}} (?:Training )?Iteration: {N} +(?:train|step)",
        r"\bDLL .{10,40}Epoch: (?P<epoch>\d+) (?:Training )?Iteration: (?P<step>\d+) ",
        r"(?:step_time|compute_time|iter_time) : (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        epoch_from=0,
        example=(
            (
                "DLL 2022-06-01 10:54:48.201947 - Epoch: 0 Iteration: 4  train.loss : 6.93778"
                "  train.total_ips : 22183.30 img/s"
            ),
            4,
            None,
        ),
    ),
    counter(
        "dll-tuple",
        "NVIDIA DLLogger",
        rf"\d - \(\d{{1,6}}, {N}\) ",
        r"\bDLL .{10,40} - \((?P<epoch>\d+), (?P<step>\d+)\) ",
        unit=StepUnit.ITERATION,
        epoch_from=0,
        example=("DLL 2022-06-13 17:46:32.110563 - (0, 300) total_ips : 12740.51", 300, None),
    ),
    counter(
        "dll-number",
        "NVIDIA DLLogger",
        rf"\bDLL 20[-\d]{{8}} [:.\d]{{8,15}} - {N} [^\n]*loss",
        r"\bDLL .{10,40} - (?P<step>\d+) ",
        tier=ENGINE,
        example=("DLL 2022-06-13 17:46:32.110563 - 300 loss : 2.1 lr : 0.1", 300, None),
    ),
    counter(
        "rnnt",
        "RNN-T of MLPerf",
        rf"\bepoch +\d{{1,6}} \| iter +{N}/ ?{N} \| ",
        r"epoch +(?P<epoch>\d+) \| iter +(?P<step>\d+)/ ?(?P<total>\d+) \|",
        r"\| took +(?P<s>[\d.]+) s",
        unit=StepUnit.ITERATION,
        epoch_from=1,
        example=(
            (
                "DLL 2022-05-19 15:54:44.884926 - epoch    1 | iter   10/1520 | loss  300.1 |"
                " utts/s   14834 | took  0.21 s | lrate 1e-03"
            ),
            10,
            0.21,
        ),
    ),
    counter(
        "rnnt-epoch",
        "RNN-T of MLPerf",
        r"\bepoch +\d{1,6} \| avg train utts/s",
        r"epoch +(?P<step>\d+) \| avg",
        tier=EPOCH,
        unit=StepUnit.EPOCH,
        example=(
            "DLL 2022-05-19 15:54:44.884926 - epoch    1 | avg train utts/s 14834 | took 18.78 s",
            1,
            None,
        ),
    ),
)
