"""Trainers of language models."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.testing.frameworks.entries import Framework

_MEGATRON = (
    "iteration {m.step:8d}/{m.total:8d} | consumed samples: {m.step:12d} |"
    " elapsed time per iteration (ms): {m.ms:.1f} | throughput per GPU (TFLOP/s/GPU): 412.3 |"
    " learning rate: 1.500000E-04 | global batch size:   256 | lm loss: {m.loss:.6E} |"
    " loss scale: 1.0 | grad norm: {m.norm:.3f} | number of skipped iterations:   0 |"
    " number of nan iterations:   0 |"
)
_BAR = "{m.percent:3d}%|{m.bar}| {m.steps}/{m.total} [{m.clock}<10:00, {m.speed}]"

TRAINERS: tuple[Framework, ...] = (
    Framework(
        name="megatron",
        head=(
            "using world size: 16, data-parallel size: 4, tensor-model-parallel size: 2",
            "WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt",
            "    will not load any checkpoints and will start from random",
            "[after megatron is initialized] datetime: {m.at:%Y-%m-%d %H:%M:%S}",
            "training ...",
            "[before the start of training step] datetime: {m.at:%Y-%m-%d %H:%M:%S}",
        ),
        step=(" [{m.at:%Y-%m-%d %H:%M:%S.%f}] " + _MEGATRON,),
        saved=(
            "saving checkpoint at iteration {m.step:7d} to /ckpt in torch_dist format",
            "  successfully saved checkpoint from iteration {m.step:7d} to /ckpt",
        ),
        evaluated=(
            " validation loss at iteration {m.step} | lm loss value: 7.6E+00 | lm loss PPL: 2.1 | ",
        ),
        tail=("[after training is done] datetime: {m.at:%Y-%m-%d %H:%M:%S} ",),
        unit=StepUnit.ITERATION,
        finishes=True,
    ),
    Framework(
        name="megatron-deepspeed",
        head=("[after megatron is initialized] datetime: {m.at:%Y-%m-%d %H:%M:%S}",),
        step=(
            "steps: {m.step} loss: {m.loss:.4f} iter time (s): {m.s:.3f} samples/sec: 0.858",
            " " + _MEGATRON,
        ),
        tail=("[after training is done] datetime: {m.at:%Y-%m-%d %H:%M:%S} ",),
        unit=StepUnit.ITERATION,
        finishes=True,
    ),
    Framework(
        name="gpt-neox",
        step=(
            (
                " samples/sec: 39.912 | iteration {m.step:8d}/{m.total:8d} |"
                " elapsed time per iteration (ms): {m.ms:.1f} | learning rate: 3.937E-06 |"
                " approx flops"
                " per GPU: 41.2TFLOPS | lm_loss: {m.loss:.6E} | loss scale: 131072.0 |"
            ),
        ),
        unit=StepUnit.ITERATION,
        every=10,
        first=1,
    ),
    Framework(
        name="nemo-2",
        head=("Trainer already configured with model summary callbacks.",),
        step=(
            (
                "Training epoch 0, iteration {m.step}/{m.total} | lr: 1e-05 |"
                " global_batch_size: 256 |"
                " global_step: {m.step} | reduced_train_loss: {m.loss:.3f} |"
                " train_step_timing in s: {m.s:.4f} | consumed_samples: 25600"
            ),
        ),
        tail=("`Trainer.fit` stopped: `max_steps={m.total}` reached.",),
        first=0,
        finishes=True,
    ),
    Framework(
        name="nemo-1",
        step=(
            (
                "Epoch 0: : {m.percent:3d}%|{m.bar}| {m.steps}/{m.total} [{m.clock}<1:37:12,"
                " v_num=1,"
                " reduced_train_loss={m.loss:.2f}, global_step={m.step:.2f},"
                " train_step_timing in s={m.s:.4f}]"
            ),
        ),
        first=0,
        is_bar=True,
    ),
    Framework(
        name="lightning",
        head=(
            "GPU available: True (cuda), used: True",
            "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/8",
        ),
        step=(
            (
                "Epoch {m.epoch}: {m.percent:3d}%|{m.bar}| {m.inner}/{m.per_epoch}"
                " [{m.clock}<02:00,"
                " {m.speed}, v_num=7, train_loss={m.loss:.3f}]"
            ),
        ),
        tail=("`Trainer.fit` stopped: `max_steps={m.total}` reached.",),
        unit=StepUnit.BATCH,
        per_epoch=80,
        is_bar=True,
        shows_epoch_steps=True,
        finishes=True,
    ),
    Framework(
        name="deepspeed",
        step=(
            (
                "[{m.stamp}] [INFO] [logging.py:107:log_dist] [Rank 0] step={m.step}, skipped=4,"
                " lr=[0.0001], mom=[[0.9, 0.95]]"
            ),
            (
                "[{m.stamp}] [INFO] [timer.py:264:stop] epoch=0/micro_step={m.step}/global_step="
                "{m.step}, RunningAvgSamplesPerSec=12.3, CurrSamplesPerSec=12.5,"
                " MemAllocated=10.1GB"
            ),
        ),
        saved=("[{m.stamp}] [INFO] [Torch] Checkpoint global_step{m.step} is ready now!",),
        every=10,
    ),
    Framework(
        name="deepspeed-chat",
        step=(
            "|E2E latency={m.s:.3f}s |Gather latency=0.00s (0.00%) |Generate time=2.52s (65.07%)",
            "epoch: 0|step: {m.step}|ppo_ep: 1|act_loss: {m.loss:.6f}|cri_loss: 0.124",
            "average reward score: 0.55",
            "-------------------------------------------------------------------------------------",
        ),
        first=0,
    ),
    Framework(
        name="torchtitan",
        head=(
            "[titan] {m.stamp} - root - INFO - Starting job: Llama 3 8B training",
            "[titan] {m.stamp} - root - INFO - Training starts at step 1.",
        ),
        step=(
            (
                "[titan] {m.stamp} - root - INFO - step: {m.step:2d}  loss: {m.loss:7.4f}"
                "  grad_norm: {m.norm:.4f}  memory: 45.67GiB(57.67%)  tps: 6,789  tflops: 345.67"
                "  mfu: 35.12%"
            ),
        ),
        tail=("[titan] {m.stamp} - root - INFO - Training completed",),
        every=10,
        finishes=True,
    ),
    Framework(
        name="hf-trainer",
        head=(
            "***** Running training *****",
            "  Num examples = 52,002",
            "  Total optimization steps = {m.total:,}",
            "  0%|          | 0/{m.total} [00:00<?, ?it/s]",
        ),
        step=(_BAR,),
        saved=("Saving model checkpoint to out/checkpoint-{m.step}",),
        evaluated=(
            (
                "{{'loss': {m.loss:.4f}, 'grad_norm': {m.norm:.3f}, 'learning_rate': 5e-05,"
                " 'epoch': 0.1}}"
            ),
            "***** Running Evaluation *****",
            "100%|##########| 25/25 [00:05<00:00,  5.00it/s]",
            "{{'eval_loss': 1.25, 'eval_runtime': 5.1, 'epoch': 0.1}}",
        ),
        tail=(
            (
                "{{'train_runtime': 100.1, 'train_samples_per_second': 1.0, 'train_loss': 1.2,"
                " 'epoch': 3.0}}"
            ),
        ),
        is_bar=True,
        stands_at_nought=True,
        finishes=True,
    ),
    Framework(
        name="trl",
        step=("Training: " + _BAR,),
        evaluated=("{{'loss': '{m.loss:.3f}', 'grad_norm': '{m.norm:.3f}', 'epoch': '0.1'}}",),
        is_bar=True,
    ),
    Framework(
        name="swift",
        step=(
            (
                "{{'loss': {m.loss:.4f}, 'grad_norm': {m.norm:.3f}, 'token_acc': 0.5, 'epoch': 0.1,"
                " 'global_step/max_steps': '{m.step}/{m.total}', 'percentage': '{m.part}.00%',"
                " 'memory(GiB)': 45.6, 'train_speed(iter/s)': {m.rate:.6f}}}"
            ),
        ),
        every=5,
    ),
    Framework(
        name="megatron-swift",
        step=(
            (
                "{{'loss': {m.loss:.4f}, 'grad_norm': {m.norm:.3f}, 'iteration':"
                " '{m.step}/{m.total}',"
                " 'elapsed_time': '1m 40s', 'train_speed(s/it)': {m.s:.6f}}}"
            ),
        ),
        every=5,
    ),
    Framework(
        name="composer",
        step=(
            "[epoch=1][batch={m.step}/{m.total}]:",
            "\t Train time/batch: {m.before}",
            "\t Train throughput/batches_per_sec: {m.rate:.6f}",
            "\t Train loss/train/total: {m.loss:.4f}",
        ),
        unit=StepUnit.BATCH,
        every=10,
    ),
    Framework(
        name="maxtext",
        step=(
            (
                "completed step: {m.step}, seconds: {m.s:.3f}, TFLOP/s/device: 345.678,"
                " Tokens/s/device: 6789.012, total_weights: 2097152, loss: {m.loss:.3f}"
            ),
        ),
        first=0,
    ),
    Framework(
        name="nanogpt",
        step=("iter {m.step}: loss {m.loss:.4f}, time {m.ms:.2f}ms, mfu 35.12%",),
        evaluated=(
            "step {m.step}: train loss 3.1234, val loss 3.2345",
            "saving checkpoint to out",
        ),
        unit=StepUnit.ITERATION,
        first=0,
    ),
    Framework(
        name="build-nanogpt",
        step=(
            (
                "step {m.step:5d} | loss: {m.loss:.6f} | lr 6.0000e-04 | norm: {m.norm:.4f} |"
                " dt: {m.ms:.2f}ms | tok/sec: 123456.78"
            ),
        ),
        evaluated=("validation loss: 3.2811",),
        first=0,
    ),
    Framework(
        name="llm.c",
        step=(
            (
                "step {m.step:4d}/{m.total} | loss {m.loss:.6f} (+nanz)| norm {m.norm:.4f} (+nanz)|"
                " lr 8.57e-07 | {m.ms:.2f} ms | 42.6% bf16 MFU | 171544 tok/s"
            ),
        ),
        evaluated=("val loss 3.297900",),
    ),
    Framework(
        name="modded-nanogpt",
        step=("step:{m.step}/{m.total} train_time:{m.elapsed_ms:.0f}ms step_avg:{m.ms:.2f}ms",),
        evaluated=(
            (
                "step:{m.step}/{m.total} val_loss:3.87 train_time:{m.elapsed_ms:.0f}ms"
                " step_avg:{m.ms:.2f}ms"
            ),
        ),
    ),
    Framework(
        name="olmo",
        step=(
            (
                "[{m.at:%Y-%m-%d %H:%M:%S}] INFO     [olmo.train:816, rank=0]"
                " [step={m.step}/{m.total}]"
            ),
            "    train/CrossEntropyLoss={m.loss:.2f}",
            "    throughput/total_tokens=8,388,608",
            "    throughput/device/batches_per_second={m.rate:.6f}",
        ),
        every=10,
    ),
    Framework(
        name="olmo-core",
        step=(
            (
                "{m.at:%Y-%m-%d"
                " %H:%M:%S.%f}\tnode-001:0\tolmo_core.train.callbacks.console_logger:110"
                "\tINFO\t[step={m.step}/{m.total},epoch=1,eta=1:23:45]"
            ),
            "    train/CE loss={m.loss:.3f}",
            "    optim/total grad norm={m.norm:.3f}",
            "    throughput/device/TPS=6,789",
            "    throughput/device/BPS={m.rate:.6f}",
        ),
        saved=("Checkpoint for step {m.step} saved successfully",),
        tail=("Training complete",),
        every=5,
        finishes=True,
    ),
    Framework(
        name="verl",
        step=(
            (
                "step:{m.step} - global_seqlen/mean:1024.0 - actor/pg_loss:-0.012 -"
                " actor/grad_norm:{m.norm:.3f} - critic/rewards/mean:0.5 - timing_s/gen:30.1 -"
                " timing_s/step:{m.s:.3f} - training/global_step:{m.step}"
            ),
        ),
        head=("Training from scratch",),
    ),
    Framework(
        name="verl-2024",
        step=(
            (
                "step:{m.step} - timing/gen:{m.s:.3f} - timing/adv:0.001 - critic/kl:0.000 -"
                " actor/grad_norm:{m.norm:.3f}"
            ),
        ),
        evaluated=("step:{m.step} - val/test_score/gsm8k:0.41", "The answer is step 7: 4 + 3 = 7"),
        first=0,
    ),
    Framework(
        name="openrlhf",
        step=("Train epoch [1/1]: " + _BAR[:-1] + ", loss={m.loss:.2f}]",),
        is_bar=True,
    ),
    Framework(
        name="litgpt",
        step=(
            (
                "Epoch 1 | iter {m.step} step {m.step} | loss train: {m.loss:.3f}, val: n/a |"
                " iter time: {m.ms:.2f} ms (step) remaining time: 0:10:00"
            ),
        ),
    ),
    Framework(
        name="torchtune",
        step=("1|{m.step}|Loss: {m.loss:.4f}: " + _BAR,),
        is_bar=True,
    ),
    Framework(
        name="levanter",
        step=(
            (
                "{m.stamp} - 0 - absl - Progress on:train {m.step}it/{m.total}it"
                " rate:{m.rate:.5f}it/s remaining:07:30 elapsed:00:50 postfix:loss={m.loss:.3f}"
            ),
        ),
    ),
    Framework(
        name="fairseq2",
        step=(
            (
                "{m.at:%Y-%m-%d %H:%M:%S.%f} [Rank 0] INFO fairseq2: Train Metrics (step"
                " {m.step}) -"
                " CTC Loss: {m.loss:.3f} - Elapsed Time: 10s"
            ),
        ),
        every=10,
    ),
)
