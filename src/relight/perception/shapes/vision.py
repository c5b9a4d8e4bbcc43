"""Counters of what trains on images, and of PaddlePaddle."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.perception.shapes.entries import BEGIN, SUMMARY, Example, N, Says, Shape, counter

VISION: tuple[Shape, ...] = (
    counter(
        "timm",
        "timm",
        rf"\bTrain: \d{{1,6}} \[ *{N}/{N} ",
        r"Train: (?P<epoch>\d+) \[ *(?P<step>\d+)/(?P<total>\d+) ",
        r"Time: +(?P<s>[\d.]+)s",
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=(
            "Train: 2 [ 100/5000 (  2%)]  Loss: 1.0 (1.1)  Time: 0.123s, 1234.5/s",
            10100,
            0.123,
        ),
    ),
    counter(
        "metric-logger",
        "torchvision references, DeiT, MAE",
        rf"\bEpoch: \[\d{{1,6}}\] +\[ *{N}/{N}\] +eta: ",
        r"Epoch: \[(?P<epoch>\d+)\] +\[ *(?P<step>\d+)/(?P<total>\d+)\]",
        r"[ :]time: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        epoch_from=0,
        example=(
            (
                "Epoch: [1]  [   20/18286]  eta: 0:50:32  lr: 0.0001  loss: 1.1 (1.2)  time: 0.1662"
                "  data: 0.1495  max mem: 10927"
            ),
            18306,
            0.1662,
        ),
    ),
    counter(
        "metric-logger-whole",
        "DINOv2",
        rf"\bTraining  \[ *{N}/{N}\]  eta: ",
        r"Training  \[ *(?P<step>\d+)/(?P<total>\d+)\]",
        r"[ :]time: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        example=(
            (
                "I20230501 10:00:00 1 dinov2 helpers.py:102] Training  [  100/125000]  eta: 1 day,"
                " 1:02:03  lr: 0.0001  time: 0.722 data: 0.001  max mem: 20011"
            ),
            100,
            0.722,
        ),
    ),
    counter(
        "imagenet",
        "PyTorch's ImageNet example",
        rf"\bEpoch: \[\d{{1,6}}\]\[ *{N}/{N}\]",
        r"Epoch: \[(?P<epoch>\d+)\]\[ *(?P<step>\d+)/(?P<total>\d+)\]",
        r"\bTime:? +(?P<s>[\d.]+)",
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=("Epoch: [1][  10/5005]\tTime  0.300 ( 0.412)\tLoss 6.9e+00", 5015, 0.3),
    ),
    counter(
        "cutie",
        "XMem, Cutie",
        rf"\bIt +{N} \[TRAIN\]",
        r"\bIt +(?P<step>\d+) \[TRAIN\]",
        r"\(T=(?P<s>[\d.]+)\)",
        unit=StepUnit.ITERATION,
        example=("It    110 [TRAIN] [exp]: (T=0.518) loss=5.1128, lr=1.00e-04", 110, 0.518),
    ),
    counter(
        "swin",
        "Swin Transformer",
        rf"\bTrain: \[\d{{1,6}}/\d{{1,6}}\]\[ *{N}/{N}\]",
        r"Train: \[(?P<epoch>\d+)/\d+\]\[ *(?P<step>\d+)/(?P<total>\d+)\]",
        r"\btime (?P<s>[\d.]+)",
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=(
            (
                "[2022-01-01 10:00:00 swin](main.py 199): INFO Train: [1/300][10/1251]\teta 0:08:21"
                " lr 0.000001\t time 0.4012 (0.5001)\tloss 6.9021 (6.9111)"
            ),
            1261,
            0.4012,
        ),
    ),
    counter(
        "detectron",
        "Detectron2, maskrcnn-benchmark",
        rf"  iter: {N} +\S",
        r"\beta: .{1,40} iter: (?P<step>\d+) ",
        r"  (?:last_)?time: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        example=(
            (
                "[10/23 11:02:10 d2.utils.events]: eta: 1 day, 3:11:02  iter: 11219 "
                " total_loss: 0.882"
                "  time: 0.3921  data_time: 0.0102  lr: 0.01"
            ),
            11219,
            0.3921,
        ),
    ),
    counter(
        "mmengine-iterations",
        "MMEngine, xtuner",
        rf"\bIter\(train\) +\[ *{N}/{N}\]",
        r"Iter\(train\) +\[ *(?P<step>\d+)/(?P<total>\d+)\]",
        r"[ :]time: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        example=(
            (
                "10/01 10:00:00 - mmengine - INFO - Iter(train) [  50/80000]  lr: 1.0000e-02  eta:"
                " 6:40:00  time: 0.3011  data_time: 0.0081  memory: 5903  loss: 1.2"
            ),
            50,
            0.3011,
        ),
    ),
    counter(
        "mmengine-epochs",
        "MMEngine",
        rf"\bEpoch\(train\) +\[\d{{1,6}}\]\[ *{N}/{N}\]",
        r"Epoch\(train\) +\[(?P<epoch>\d+)\]\[ *(?P<step>\d+)/(?P<total>\d+)\]",
        r"[ :]time: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        epoch_from=1,
        example=(
            (
                "10/01 10:00:00 - mmengine - INFO - Epoch(train) [2][  50/7330]  lr:"
                " 1.0000e-02  eta:"
                " 1 day, 6:40:00  time: 0.3011  data_time: 0.0081  memory: 5903  loss: 1.2"
            ),
            7380,
            0.3011,
        ),
    ),
    counter(
        "mmcv-iterations",
        "MMSegmentation and its kin on mmcv 1",
        rf"\bIter \[{N}/{N}\]\tlr: ",
        r"Iter \[(?P<step>\d+)/(?P<total>\d+)\]\t",
        r"[ ,]time: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        example=(
            (
                "2021-05-31 14:03:49,021 - mmseg - INFO - Iter [8/10]\tlr: 3.450e-03, eta: 0:00:04,"
                " time: 1.061, data_time: 0.033, memory: 13660, loss: 2.2225"
            ),
            8,
            1.061,
        ),
    ),
    counter(
        "mmcv-epochs",
        "MMDetection and its kin on mmcv 1",
        rf"\bEpoch \[\d{{1,6}}\]\[ *{N}/{N}\]\tlr: ",
        r"Epoch \[(?P<epoch>\d+)\]\[ *(?P<step>\d+)/(?P<total>\d+)\]\t",
        r"[ ,]time: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        epoch_from=1,
        example=(
            (
                "2021-05-31 14:03:49,021 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03,"
                " eta: 1 day, 0:00:04, time: 0.561, data_time: 0.033, memory: 3660, loss: 2.2225"
            ),
            50,
            0.561,
        ),
    ),
    counter(
        "yolox",
        "YOLOX",
        rf"\bepoch: \d{{1,6}}/\d{{1,6}}, iter: {N}/{N}, mem",
        r"epoch: (?P<epoch>\d+)/\d+, iter: (?P<step>\d+)/(?P<total>\d+),",
        r"iter_time: (?P<s>[\d.]+)s",
        unit=StepUnit.ITERATION,
        epoch_from=1,
        example=(
            (
                "2022-01-01 10:00:00 | INFO     | yolox.core.trainer:260 - epoch: 1/300,"
                " iter: 10/1849,"
                " mem: 6241Mb, iter_time: 0.511s, data_time: 0.001s, total_loss: 15.2"
            ),
            10,
            0.511,
        ),
    ),
    counter(
        "mnist",
        "PyTorch's MNIST example",
        rf"\bTrain Epoch: \d{{1,6}} \[ *{N}/{N} \(",
        r"Train Epoch: (?P<epoch>\d+) \[ *(?P<step>\d+)/(?P<total>\d+) \(",
        unit=StepUnit.SAMPLE,
        epoch_from=1,
        example=("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300", 640, None),
    ),
    counter(
        "darknet",
        "Darknet",
        rf"{BEGIN} ?{N}: [\d.]{{1,20}}, [\d.]{{1,20}} avg",
        r"\b(?P<step>\d+): [\d.]+, [\d.]+ avg",
        r" rate, (?P<s>[\d.]+) seconds",
        unit=StepUnit.BATCH,
        example=("100: 5.123, 4.987 avg loss, 0.001 rate, 3.21 seconds, 6400 images", 100, 3.21),
    ),
    counter(
        "caffe",
        "Caffe",
        rf"\bIteration {N}(?: \([^\n)]*\))?, loss = ",
        r"\bIteration (?P<step>\d+)",
        r"(?P<span_s>[\d.]+)s/(?P<span>\d+) iters",
        unit=StepUnit.ITERATION,
        example=(
            (
                "I1119 18:06:20.551210 14141 solver.cpp:236] Iteration 1500 (0.5 iter/s,"
                " 40s/20 iters),"
                " loss = 4.08811"
            ),
            1500,
            2.0,
        ),
    ),
)

PADDLE: tuple[Shape, ...] = (
    counter(
        "paddle-global",
        "PaddleNLP, PaddleOCR",
        rf"\b(?:global|tobal)[_ ]step:? {N}, ",
        r"\b(?:global|tobal)[_ ]step:? (?P<step>\d+),",
        r"avg_batch_cost: (?P<s>[\d.]+) s",
        r"interval_steps_per_second: (?P<rate>[\d.]+)",
        r"speed: (?P<rate>[\d.]+) step/s",
        example=(
            (
                "tobal step: 170, epoch: 0, batch: 169, loss: 11.121875, avg_reader_cost:"
                " 0.00009 sec,"
                " avg_batch_cost: 0.14543 sec, avg_samples: 96.00000, ips: 659.69472 sequences/sec"
            ),
            170,
            0.14543,
        ),
    ),
    counter(
        "paddle-clas",
        "PaddleClas",
        rf"\bepoch:\d{{1,6}} +train step:{N}\b",
        r"epoch:(?P<epoch>\d+) +train step:(?P<step>\d+)",
        r"batch_cost: (?P<s>[\d.]+) s",
        unit=StepUnit.ITERATION,
        epoch_from=0,
        example=(
            (
                "[2022/06/02 16:03:55] ppcls INFO: epoch:0   train step:10   lr: 0.100000,"
                " loss:  7.0085 batch_cost: 0.20012 s, reader_cost: 0.00081 s, ips: 1279.2"
                " samples/s."
            ),
            10,
            0.20012,
        ),
    ),
    Shape(
        name="paddle-clas-epoch",
        framework="PaddleClas",
        says=Says.LENGTH,
        patterns=(r"END epoch:\d{1,6} +train [^\n]*batch_cost_sum: \d",),
        reads=(
            r" batch_cost: (?P<s>[\d.]+) s",
            r"batch_cost_sum: (?P<sum_s>[\d.]+) s",
        ),
        examples=(
            Example(
                line=(
                    "[2022/06/02 16:06:58] ppcls INFO: END epoch:12  train  loss:  2.1362"
                    " batch_cost: 0.20459 s, reader_cost: 0.00082 s, batch_cost_sum: 12.88924 s,"
                ),
                step=63,
            ),
        ),
    ),
    counter(
        "paddle-clas-2",
        "PaddleClas",
        rf"\[Train\]\[Epoch \d{{1,6}}/\d{{1,6}}\]\[Iter: {N}/{N}\]",
        r"\[Train\]\[Epoch (?P<epoch>\d+)/\d+\]\[Iter: (?P<step>\d+)/(?P<total>\d+)\]",
        r"batch_cost: (?P<s>[\d.]+)s",
        unit=StepUnit.ITERATION,
        epoch_from=1,
        example=(
            (
                "[2022/06/02 16:03:55] ppcls INFO: [Train][Epoch 1/120][Iter: 10/626]lr(Piecewise):"
                " 0.1, top1: 0.1, loss: 6.9, batch_cost: 0.21012s, reader_cost: 0.0, ips: 1218.0"
            ),
            10,
            0.21012,
        ),
    ),
    counter(
        "paddle-detection",
        "PaddleDetection",
        rf"\bEpoch: \[\d{{1,6}}\] \[ *{N}/{N}\] learning_rate: ",
        r"Epoch: \[(?P<epoch>\d+)\] \[ *(?P<step>\d+)/(?P<total>\d+)\] learning_rate",
        r"batch_cost: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        epoch_from=0,
        example=(
            (
                "[06/02 16:03:55] ppdet.engine INFO: Epoch: [0] [ 20/916] learning_rate:"
                " 0.000067 loss:"
                " 3.9 eta: 1:02:03 batch_cost: 0.7712 data_cost: 0.0003 ips: 10.3 images/s"
            ),
            20,
            0.7712,
        ),
    ),
    counter(
        "paddle-seg",
        "PaddleSeg",
        rf"\[TRAIN\] epoch: \d{{1,6}}, iter: {N}/{N}, ",
        r"\[TRAIN\] epoch: \d+, iter: (?P<step>\d+)/(?P<total>\d+),",
        r"batch_cost: (?P<s>[\d.]+)",
        unit=StepUnit.ITERATION,
        example=(
            (
                "2022-06-02 16:03:55 [INFO]\t[TRAIN] epoch: 1, iter: 10/1000, loss: 0.9, lr: 0.01,"
                " batch_cost: 0.2511, reader_cost: 0.0, ips: 7.9 samples/sec | ETA 00:04:08"
            ),
            10,
            0.2511,
        ),
    ),
    counter(
        "paddle-batches",
        "PaddlePaddle",
        rf"\bepoch:? ?\[?\d{{1,6}}[^\n]{{0,12}}, (?:batch|step|iter):? ?\[?{N}\b",
        r"epoch:? ?\[?(?P<epoch>\d+)[^\n]{0,12}, (?:batch|step|iter):? ?\[?(?P<step>\d+)",
        r"batch_cost: (?P<s>[\d.]+)",
        r"speed: (?P<rate>[\d.]+) step/s",
        unit=StepUnit.BATCH,
        epoch_from=0,
        tier=SUMMARY,
        example=(
            "epoch: 0, batch: 99, loss: 8.121, avg_batch_cost: 0.1453 sec, ips: 659.6 seq/sec",
            99,
            0.1453,
        ),
    ),
)
