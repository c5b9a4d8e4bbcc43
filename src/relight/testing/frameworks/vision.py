"""Trainers of vision models, and PaddlePaddle."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.testing.frameworks.entries import Framework

VISION: tuple[Framework, ...] = (
    Framework(
        name="timm",
        step=(
            (
                "Train: {m.epoch} [{m.inner:4d}/{m.per_epoch} ({m.percent:3d}%)]  Loss:"
                " {m.loss:.3f}"
                " (6.94)  Time: {m.s:.3f}s, 1234.56/s  (0.412s, 1230.00/s)  LR: 1.0e-04 "
                " Data: 0.010"
            ),
        ),
        unit=StepUnit.BATCH,
        first=0,
        per_epoch=60,
    ),
    Framework(
        name="torchvision",
        step=(
            (
                "Epoch: [{m.epoch}]  [{m.inner:5d}/{m.per_epoch}]  eta: 0:50:32  lr: 0.0001"
                "  loss: {m.loss:.4f} (1.2)  time: {m.s:.4f}  data: 0.1495  max mem: 10927"
            ),
        ),
        evaluated=(
            (
                "Test:  [  0/388]  eta: 0:01:11  model_time: 0.1835 (0.1907)  time: 0.1886"
                "  data: 0.0006  max mem: 10927"
            ),
            "Test: Total time: 0:01:14 (0.1920 s / it)",
        ),
        unit=StepUnit.ITERATION,
        first=0,
        per_epoch=60,
    ),
    Framework(
        name="imagenet",
        step=(
            (
                "Epoch: [{m.epoch}][{m.inner:5d}/{m.per_epoch}]\tTime {m.s:6.3f} ( 0.412)"
                "\tData  0.001 ( 0.012)\tLoss {m.loss:.4e} (6.9e+00)\tAcc@1   0.00 (  0.10)"
            ),
        ),
        evaluated=("Test: [  0/196]\tTime  3.100 ( 3.100)\tLoss 6.9e+00 (6.9e+00)",),
        unit=StepUnit.BATCH,
        first=0,
        per_epoch=60,
    ),
    Framework(
        name="swin",
        step=(
            (
                "[{m.at:%Y-%m-%d %H:%M:%S} swin](main.py 199): INFO Train: [{m.epoch}/300]"
                "[{m.inner}/{m.per_epoch}]\teta 0:08:21 lr 0.000001\t time {m.s:.4f} (0.5001)"
                "\tloss {m.loss:.4f} (6.9111)\tgrad_norm {m.norm:.4f} (1.0)\tmem 9999MB"
            ),
        ),
        unit=StepUnit.BATCH,
        first=0,
        per_epoch=60,
    ),
    Framework(
        name="dinov2",
        step=(
            (
                "I20260131 10:00:00 1 dinov2 helpers.py:102] Training "
                " [{m.step:6d}/{m.total}]  eta:"
                " 1 day, 1:02:03  lr: 0.0001  total_loss: {m.loss:.4f} (9.1)  time: {m.s:.6f}"
                "  data: 0.001  max mem: 20011"
            ),
        ),
        unit=StepUnit.ITERATION,
        first=0,
        every=10,
    ),
    Framework(
        name="detectron2",
        step=(
            (
                "[01/31 10:02:10 d2.utils.events]:  eta: 3:11:02  iter: {m.step}"
                "  total_loss: {m.loss:.3f}  loss_cls: 0.301  time: {m.s:.4f}  data_time: 0.0102"
                "  lr: 0.01  max_mem: 4000M"
            ),
        ),
        unit=StepUnit.ITERATION,
        first=0,
        every=20,
    ),
    Framework(
        name="maskrcnn-benchmark",
        step=(
            (
                "{m.stamp} maskrcnn_benchmark.trainer INFO: eta: 15:44:27  iter: {m.step}"
                "  loss: {m.loss:.4f} (3.7364)  loss_mask: 0.9656 (1.0170)  time: {m.s:.4f}"
                " (0.7085)"
                "  data: 0.0026 (0.1380)  lr: 0.001920  max mem: 6108"
            ),
        ),
        unit=StepUnit.ITERATION,
        every=20,
    ),
    Framework(
        name="mmdetection",
        step=(
            (
                "{m.stamp} - mmdet - INFO - Epoch [{m.epoch}][{m.inner}/{m.per_epoch}]\tlr:"
                " 1.978e-03,"
                " eta: 1 day, 0:00:04, time: {m.s:.3f}, data_time: 0.033, memory: 3660,"
                " loss: {m.loss:.4f}"
            ),
        ),
        evaluated=("{m.stamp} - mmdet - INFO - Epoch(val) [1][100]\tbbox_mAP: 0.1",),
        unit=StepUnit.ITERATION,
        per_epoch=60,
        epoch_from=1,
    ),
    Framework(
        name="mmsegmentation",
        step=(
            (
                "{m.stamp} - mmseg - INFO - Iter [{m.step}/{m.total}]\tlr: 3.450e-03, eta: 0:00:04,"
                " time: {m.s:.3f}, data_time: 0.033, memory: 13660, loss: {m.loss:.4f}"
            ),
        ),
        unit=StepUnit.ITERATION,
        every=5,
    ),
    Framework(
        name="mmengine",
        step=(
            (
                "01/31 10:00:00 - mmengine - INFO - Iter(train) [{m.step:5d}/{m.total}]"
                "  lr: 1.0000e-02  eta: 6:40:00  time: {m.s:.4f}  data_time: 0.0081  memory: 5903"
                "  loss: {m.loss:.4f}"
            ),
        ),
        evaluated=("01/31 10:00:00 - mmengine - INFO - Iter(val) [ 50/100]  eta: 0:00:10",),
        saved=("01/31 10:00:00 - mmengine - INFO - Saved checkpoint at {m.step} iterations",),
        unit=StepUnit.ITERATION,
        every=10,
    ),
    Framework(
        name="mmengine-epochs",
        step=(
            (
                "01/31 10:00:00 - mmengine - INFO - Epoch(train) [{m.epoch}][{m.inner:4d}/"
                "{m.per_epoch}]  lr: 1.0000e-02  eta: 6:40:00  time: {m.s:.4f}  data_time: 0.0081"
                "  memory: 5903  loss: {m.loss:.4f}"
            ),
        ),
        unit=StepUnit.ITERATION,
        per_epoch=50,
        epoch_from=1,
    ),
    Framework(
        name="yolox",
        step=(
            (
                "{m.at:%Y-%m-%d %H:%M:%S} | INFO     | yolox.core.trainer:260 - epoch:"
                " {m.epoch}/300,"
                " iter: {m.inner}/{m.per_epoch}, mem: 6241Mb, iter_time: {m.s:.3f}s,"
                " data_time: 0.001s,"
                " total_loss: {m.loss:.1f}, lr: 1.2e-04"
            ),
        ),
        unit=StepUnit.ITERATION,
        per_epoch=50,
        epoch_from=1,
    ),
    Framework(
        name="keras",
        head=("Epoch 1/1",),
        step=(
            (
                "{m.steps:4d}/{m.total} [==============>...............] - ETA: 1:23"
                " - loss: {m.loss:.4f}"
            ),
        ),
        unit=StepUnit.BATCH,
        is_bar=True,
        tells_time=False,
    ),
    Framework(
        name="keras-3",
        head=("Epoch 1/1",),
        step=(
            (
                "{m.steps}/{m.total} \u2501\u2501\u2501\u2501\u2501\u2501\u2501 1:23"
                " {m.ms:.0f}ms/step - loss: {m.loss:.4f}"
            ),
        ),
        unit=StepUnit.BATCH,
        is_bar=True,
    ),
    Framework(
        name="caffe",
        step=(
            (
                "I0131 10:06:20.551210 14141 solver.cpp:236] Iteration {m.step} (0.5 iter/s,"
                " {m.span:.4f}s/{m.every} iters), loss = {m.loss:.5f}"
            ),
            "I0131 10:06:20.551300 14141 sgd_solver.cpp:106] Iteration {m.step}, lr = 0.01",
        ),
        unit=StepUnit.ITERATION,
        every=20,
        first=1,
    ),
    Framework(
        name="paddle-nlp",
        step=(
            (
                "global step {m.step}, epoch: 0, batch: {m.before}, loss: {m.loss:.6f},"
                " avg_reader_cost: 0.00009 sec, avg_batch_cost: {m.s:.5f} sec, avg_samples:"
                " 96.00000,"
                " ips: 659.69472 sequences/sec"
            ),
        ),
        every=10,
    ),
    Framework(
        name="paddle-clas",
        step=(
            (
                "[{m.at:%Y/%m/%d %H:%M:%S}] ppcls INFO: [Train][Epoch {m.epoch}/120]"
                "[Iter: {m.inner}/{m.per_epoch}]lr(Piecewise): 0.10000000, top1: 0.1,"
                " loss: {m.loss:.5f}, batch_cost: {m.s:.5f}s, reader_cost: 0.0, ips: 1218.0"
                " samples/s"
            ),
        ),
        unit=StepUnit.ITERATION,
        first=0,
        per_epoch=60,
        epoch_from=1,
    ),
    Framework(
        name="paddle-detection",
        step=(
            (
                "[01/31 10:03:55] ppdet.engine INFO: Epoch: [{m.epoch}]"
                " [{m.inner:3d}/{m.per_epoch}]"
                " learning_rate: 0.000067 loss: {m.loss:.4f} eta: 1:02:03 batch_cost: {m.s:.4f}"
                " data_cost: 0.0003 ips: 10.3 images/s"
            ),
        ),
        unit=StepUnit.ITERATION,
        first=0,
        per_epoch=60,
    ),
    Framework(
        name="paddle-seg",
        step=(
            (
                "{m.at:%Y-%m-%d %H:%M:%S} [INFO]\t[TRAIN] epoch: 1, iter: {m.step}/{m.total},"
                " loss: {m.loss:.4f}, lr: 0.01, batch_cost: {m.s:.4f}, reader_cost: 0.0001,"
                " ips: 7.9 samples/sec | ETA 00:04:08"
            ),
        ),
        unit=StepUnit.ITERATION,
        every=10,
    ),
)
