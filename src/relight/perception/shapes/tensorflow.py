"""Counters of TensorFlow, Flax, tinygrad and MXNet."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.perception.shapes.entries import BEGIN, ENGINE, EPOCH, Example, N, Says, Shape, counter

TENSORFLOW: tuple[Shape, ...] = (
    counter(
        "tf-estimator",
        "TensorFlow Estimator",
        rf"\bloss = \S{{1,30}}, (?:global_)?step = {N}\b",
        r"step = (?P<step>\d+)",
        r"\((?P<since_s>[\d.]+) sec\)",
        tier=ENGINE,
        example=("INFO:tensorflow:loss = 3.14, step = 100 (12.300 sec)", 100, None),
    ),
    Shape(
        name="tf-rate",
        framework="TensorFlow Estimator",
        says=Says.MEASURED,
        patterns=(r"\bglobal_step/sec: \d",),
        reads=(r"\bglobal_step/sec: (?P<rate>[\d.]+)",),
        examples=(Example(line="INFO:tensorflow:global_step/sec: 8.0", seconds=0.125),),
    ),
    counter(
        "tf-time-history",
        "TensorFlow Model Garden",
        rf"examples/second between steps {N} and {N}",
        r"(?P<span_s>[\d.]+) seconds, [\d.]+ examples/second between steps (?P<from>\d+) and"
        r" (?P<step>\d+)",
        example=(
            (
                "I0801 05:44:11.099272 1 keras_utils.py:145] TimeHistory: 5.00 seconds, 4900.12"
                " examples/second between steps 100 and 200"
            ),
            200,
            0.05,
        ),
    ),
    counter(
        "tf-train-step",
        "TensorFlow Model Garden",
        rf"\bTrain Step: {N}/{N} ",
        r"Train Step: (?P<step>\d+)/(?P<total>\d+)",
        example=("Train Step: 100/1000  / training_loss = 7.2", 100, None),
    ),
    counter(
        "tf-benchmarks",
        "tf_cnn_benchmarks",
        rf"(?:^|[\s>:|])\b{N}\timages/sec: \d",
        r"\b(?P<step>\d+)\timages/sec",
        example=("10\timages/sec: 2500.0 +/- 0.0 (jitter = 0.0)\t7.6", 10, None),
    ),
    counter(
        "clu",
        "CLU, T5X, Flax",
        rf"logging_writer\.py:\d{{1,5}}\] \[{N}\] [^\n]*loss",
        r"\] \[(?P<step>\d+)\]",
        example=(
            "I0101 10:00:00.1 7 logging_writer.py:48] [100] accuracy=0.5, loss=3.2",
            100,
            None,
        ),
    ),
    counter(
        "clu-progress",
        "CLU, T5X, Flax",
        rf"\d steps/s, [\d.]{{1,6}}% \({N}/{N}\)",
        r"% \((?P<step>\d+)/(?P<total>\d+)\)",
        r"(?P<rate>[\d.]+) steps/s",
        tier=ENGINE,
        example=("Setting work unit notes: 4.0 steps/s, 10.0% (100/1000), ETA: 5m", 100, 0.25),
    ),
    counter(
        "flax-examples",
        "Hugging Face's Flax examples",
        rf"\bStep\.\.\. \({N} \| ",
        r"Step\.\.\. \((?P<step>\d+) \|",
        example=("Step... (100 | Loss: 3.21, Learning Rate: 0.0001)", 100, None),
    ),
    counter(
        "tinygrad",
        "tinygrad",
        rf"{BEGIN} {{0,8}}{N} +[\d.]{{1,12}} ms run, ",
        r"\b(?P<step>\d+) +(?P<ms>[\d.]+) ms run,",
        example=("   10  812.34 ms run,   12.10 ms python,  6.21 loss, 0.001 LR", 10, 0.81234),
    ),
)

MXNET: tuple[Shape, ...] = (
    counter(
        "mxnet",
        "MXNet",
        rf"\bEpoch\[\d{{1,6}}\] Batch \[(?:{N}-)?{N}\]",
        r"Epoch\[(?P<epoch>\d+)\] Batch \[(?:\d+-)?(?P<step>\d+)\]",
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=(
            "2022-05-13 12:51:37,582 Node[0] Epoch[0] Batch [0-20]\tSpeed: 74548.82 samples/sec",
            20,
            None,
        ),
    ),
    counter(
        "mxnet-gluon",
        "GluonCV, GluonNLP",
        rf"\[Epoch \d{{1,6}}(?:/\d{{1,6}})?\]? ?\[?(?:Batch|Iteration|Interval) {N}(?:/{N})?\]",
        r"\[Epoch (?P<epoch>\d+)(?:/\d+)?\]? ?\[?(?:Batch|Iteration|Interval)"
        r" (?P<step>\d+)(?:/(?P<total>\d+))?\]",
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=("[Epoch 0][Batch 49], Speed: 32.1 samples/sec, loss=5.1", 49, None),
    ),
    counter(
        "mxnet-epoch",
        "MXNet SSD of MLPerf",
        r"\[Training\]\[Epoch \d{1,6}\] training time: ",
        r"\[Training\]\[Epoch (?P<step>\d+)\] training time: (?P<s>[\d.]+)",
        tier=EPOCH,
        unit=StepUnit.EPOCH,
        example=(
            "INFO:root:[Training][Epoch 1] training time: 2.404 [sec],avg speed: 49206.0",
            1,
            2.404,
        ),
    ),
)
