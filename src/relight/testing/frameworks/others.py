"""Benchmarks, TensorFlow, MXNet, translation, speech, recommenders, and plain loops."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.testing.frameworks.entries import Framework

_MLLOG = (
    ':::MLLOG {{"namespace": "", "time_ms": {m.unix_ms}, "event_type": "POINT_IN_TIME", "key": '
)
_META = ', "metadata": {{"file": "/workspace/callbacks.py", "lineno": 480, '
_RUN_STOP = _MLLOG + '"run_stop", "value": null' + _META + '"status": "success"}}}}'
_RUN_START = _MLLOG + '"init_start", "value": null' + _META + '"rank": 0}}}}'

OTHERS: tuple[Framework, ...] = (
    Framework(
        name="mlperf-nemo",
        head=(_RUN_START, _RUN_START),
        step=(
            _MLLOG
            + '"tracked_stats", "value": {{"train_step_time": {m.s:.6f}, "reduced_train_loss":'
            + " {m.loss:.5f}}}"
            + _META
            + '"step": {m.step}.0, "samples_count": {m.step}.0}}}}',
        ),
        evaluated=(
            _MLLOG
            + '"tracked_stats", "value": {{"validation_step_time": 0.1}}'
            + _META
            + '"step": 3, "samples_count": 16}}}}',
            _MLLOG + '"eval_accuracy", "value": 3.1' + _META + '"samples_count": {m.step}}}}}',
        ),
        tail=(_RUN_STOP,),
        every=8,
        finishes=True,
    ),
    Framework(
        name="mlperf-gpt3",
        step=(
            _MLLOG
            + '"tracked_stats", "value": {{"train_step_timing in s": {m.s:.6f}}}'
            + _META
            + '"step": {m.step}}}}}',
        ),
        tail=(_RUN_STOP,),
        unit=StepUnit.TOKEN,
        samples_a_step=4_194_304,
        finishes=True,
    ),
    Framework(
        name="mlperf-samples",
        head=(_MLLOG + '"global_batch_size", "value": 8' + _META + '"rank": 0}}}}',),
        step=(
            _MLLOG
            + '"train_loss", "value": {m.loss:.6f}'
            + _META
            + '"samples_count": {m.step}, "lr": 0.0004}}}}',
        ),
        tail=(_RUN_STOP,),
        unit=StepUnit.SAMPLE,
        samples_a_step=8,
        finishes=True,
    ),
    Framework(
        name="mlperf-deepcam",
        step=(
            _MLLOG
            + '"learning_rate", "value": 0.001'
            + _META
            + '"epoch_num": 1, "step_num": {m.step}}}}}',
            _MLLOG
            + '"train_loss", "value": {m.loss:.6f}'
            + _META
            + '"epoch_num": 1, "step_num": {m.step}}}}}',
        ),
        tail=(_RUN_STOP,),
        every=10,
        finishes=True,
    ),
    Framework(
        name="mlperf-epochs",
        step=(_MLLOG + '"epoch_stop", "value": null' + _META + '"epoch_num": {m.step}}}}}',),
        tail=(_RUN_STOP,),
        unit=StepUnit.EPOCH,
        tells_time=False,
        finishes=True,
    ),
    Framework(
        name="mlperf-bert",
        step=(
            (
                "{{'training_steps': {m.step}, 'average_loss': {m.loss:.5f}, 'step_loss':"
                " {m.loss:.5f},"
                " 'seq/s': 1052.01, 'global_steps': {m.before}, 'skipped_steps': 1, 'timestamp':"
                " {m.unix_s:.7f}}}"
            ),
        ),
        evaluated=("{{'global_steps': 20, 'eval_loss': 4.16, 'eval_mlm_accuracy': 0.368}}",),
        unit=StepUnit.ITERATION,
    ),
    Framework(
        name="dllogger",
        step=(
            (
                "DLL {m.at:%Y-%m-%d %H:%M:%S.%f} - Iteration {m.step} | train_acc : 0.6572 % |"
                " iteration_time : {m.ms:.2f} ms | train_loss : {m.loss:.4f}  |"
            ),
        ),
        unit=StepUnit.ITERATION,
        first=0,
    ),
    Framework(
        name="dllogger-epochs",
        step=(
            (
                "DLL {m.at:%Y-%m-%d %H:%M:%S.%f} - Epoch: {m.epoch} Iteration: {m.inner} "
                " train.loss :"
                " {m.loss:.5f}  train.total_ips : 22183.30 img/s"
            ),
        ),
        unit=StepUnit.ITERATION,
        per_epoch=60,
    ),
    Framework(
        name="rnnt",
        step=(
            (
                "DLL {m.at:%Y-%m-%d %H:%M:%S.%f} - epoch {m.epoch:4d} | iter"
                " {m.inner:4d}/{m.per_epoch}"
                " | loss {m.loss:7.2f} | utts/s 14834 | took {m.s:5.3f} s | lrate 1.00e-03"
            ),
        ),
        evaluated=(
            "DLL 2026-01-31 10:00:00.000001 - epoch    1 | avg train utts/s 14834 | took 1 s",
        ),
        unit=StepUnit.ITERATION,
        per_epoch=60,
        epoch_from=1,
    ),
    Framework(
        name="dlrm",
        step=tuple(
            f"[{rank}] Finished training it {{m.step}}/{{m.total}} of epoch 0, {{m.ms:.2f}} ms/it,"
            " loss {m.loss:.6f}, accuracy 96.697 %"
            for rank in (3, 0, 2, 1)
        ),
        unit=StepUnit.ITERATION,
        every=10,
    ),
    Framework(
        name="hugectr",
        step=(
            (
                "[HCTR][10:36:49.733][INFO][RK0][main]: Iter: {m.step} Time({m.every} iters):"
                " {m.span:.6f}s Loss: {m.loss:.6f} lr:0.004"
            ),
        ),
        unit=StepUnit.ITERATION,
        every=10,
    ),
    Framework(
        name="gnmt",
        step=(
            (
                "TRAIN [{m.epoch}][{m.inner}/{m.per_epoch}]\tTime {m.s:.3f} (0.161)\tData 1.85e-04"
                " (2.75e-02)\tTok/s 100536 (96148)\tLoss/tok {m.loss:.4f} (10.1064)\tLR 2.576e-05"
            ),
        ),
        evaluated=("TEST [0][0/3]\tTime 0.750 (0.750)\tDecoder iters 149.0 (149.0)\tTok/s 22030",),
        unit=StepUnit.BATCH,
        first=0,
        per_epoch=60,
    ),
    Framework(
        name="tf-estimator",
        head=(
            "INFO:tensorflow:Running local_init_op.",
            "INFO:tensorflow:Done running local_init_op.",
        ),
        step=(
            "INFO:tensorflow:global_step/sec: {m.rate:.6f}",
            "INFO:tensorflow:loss = {m.loss:.6f}, step = {m.step} ({m.span:.3f} sec)",
        ),
        saved=("INFO:tensorflow:Saving checkpoints for {m.step} into /ckpt/model.ckpt.",),
        every=10,
    ),
    Framework(
        name="tf-model-garden",
        step=(
            (
                "I0131 10:44:11.099272 1403 keras_utils.py:145] TimeHistory: {m.span:.4f} seconds,"
                " 4900.12 examples/second between steps {m.before} and {m.step}"
            ),
        ),
        every=10,
    ),
    Framework(
        name="mxnet",
        step=(
            (
                "{m.stamp} Node[0] Epoch[{m.epoch}] Batch [{m.inner}]\tSpeed: 74548.82 samples/sec"
                "\taccuracy=nan"
            ),
        ),
        unit=StepUnit.BATCH,
        per_epoch=60,
    ),
    Framework(
        name="fairseq",
        step=(
            (
                "{m.at:%Y-%m-%d %H:%M:%S} | INFO | train_inner | epoch 001: {m.step:6d} / {m.total}"
                " loss={m.loss:.3f}, nll_loss=8.442, ppl=347.81, wps=30688.2, ups=0.07, wpb=427295,"
                " num_updates={m.step}, lr=0.000175, gnorm={m.norm:.3f}, clip=100%,"
                " train_wall=1281,"
                " wall={m.elapsed:.3f}"
            ),
        ),
        tail=(
            "{m.at:%Y-%m-%d %H:%M:%S} | INFO | fairseq_cli.train | done training in 100.1 seconds",
        ),
        unit=StepUnit.UPDATE,
        every=10,
        finishes=True,
    ),
    Framework(
        name="marian",
        step=(
            (
                "[{m.at:%Y-%m-%d %H:%M:%S}] Ep. 1 : Up. {m.step} : Sen. 12,110,202 : Cost"
                " {m.loss:.5f}"
                " * 1,210,022 : Time {m.span:.3f}s : 41120.12 words/s : gNorm {m.norm:.4f}"
            ),
        ),
        tail=("[{m.at:%Y-%m-%d %H:%M:%S}] Training finished",),
        unit=StepUnit.UPDATE,
        every=10,
        finishes=True,
    ),
    Framework(
        name="opennmt",
        step=(
            (
                "[{m.stamp} INFO] Step {m.step}/{m.total}; acc:  61.31; ppl:  6.83; xent: 1.92;"
                " lr: 0.00098; 20988/24077 tok/s;   {m.elapsed:.0f} sec"
            ),
        ),
        every=50,
    ),
    Framework(
        name="espnet",
        step=(
            (
                "[node-001] {m.stamp} (trainer:655) INFO: {m.epoch}epoch:train:{m.before_inner}-"
                "{m.inner}batch: iter_time=1.5e-04, forward_time=0.2, loss={m.loss:.3f},"
                " train_time={m.s:.4f}"
            ),
        ),
        unit=StepUnit.BATCH,
        every=10,
        per_epoch=60,
        epoch_from=1,
    ),
    Framework(
        name="determined",
        step=(
            (
                "<info> [{m.at:%Y-%m-%d %H:%M:%S}] Trial 1311: batches trained {m.step},"
                " loss {m.loss:.3f}"
            ),
        ),
        every=20,
    ),
    Framework(
        name="pax",
        step=(
            "[PAX STATUS]: step_i: {m.step}, training loss: {m.loss:.4f}, steps/sec: {m.rate:.6f}",
        ),
        first=0,
        every=10,
    ),
    Framework(
        name="clu",
        step=(
            (
                "I0131 10:00:00.123456 140 logging_writer.py:48] [{m.step}] accuracy=0.5,"
                " loss={m.loss:.4f}, steps_per_second=1.0"
            ),
        ),
        every=10,
        tells_time=False,
    ),
    Framework(
        name="plain",
        step=("{m.stamp} INFO iter {m.step}/{m.total} loss {m.loss:.4f} lr 0.001",),
        every=10,
    ),
    Framework(
        name="json",
        step=('{{"level": "info", "step": {m.step}, "loss": {m.loss:.4f}, "ts": "{m.stamp}"}}',),
        every=10,
    ),
)
