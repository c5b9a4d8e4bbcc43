"""Counters of what trains language models, on PyTorch and beside it."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.perception.shapes.entries import BEGIN, ENGINE, Example, N, Says, Shape, counter

MEGATRON: tuple[Shape, ...] = (
    counter(
        "megatron",
        "Megatron-LM, GPT-NeoX, Megatron-DeepSpeed",
        rf"iteration +{N}/ *{N} \| (?:consumed|elapsed)",
        r"iteration +(?P<step>\d+)/ *(?P<total>\d+) \|"
        r"(?:.*elapsed time per iteration \(ms\): (?P<ms>[\d.]+))?",
        unit=StepUnit.ITERATION,
        example=(
            (
                " iteration      100/  500000 | consumed samples:        25600 |"
                " elapsed time per iteration (ms): 1234.5 | learning rate: 1.5E-04 | lm loss: 6.1 |"
            ),
            100,
            1.2345,
        ),
    ),
    counter(
        "nemo",
        "NeMo 2",
        rf"Training epoch \d{{1,6}}, iteration {N}/{N} \|",
        r"iteration (?P<step>\d+)/(?P<total>\d+)",
        r"global_step: (?P<global>\d+)",
        r"train_step_timing in s: (?P<s>[\d.]+)",
        example=(
            (
                "Training epoch 1, iteration 99/999 | lr: 1e-05 | global_step: 1098 |"
                " reduced_train_loss: 6.12 | train_step_timing in s: 1.23 | consumed_samples: 25600"
            ),
            1098,
            1.23,
        ),
    ),
    counter(
        "nemo-bar",
        "NeMo 1",
        rf"\| {N}/{N} \[[^\n]*, global_step=\d",
        r"global_step=(?P<step>\d+)",
        r"train_step_timing in s=(?P<s>[\d.]+)",
        example=(
            (
                "Epoch 0: :  10%|#         | 100/1000 [10:48<1:37:12, v_num=1,"
                " reduced_train_loss=6.12,"
                " global_step=99.00, train_step_timing in s=6.48]"
            ),
            99,
            6.48,
        ),
    ),
    Shape(
        name="megatron-data",
        framework="Megatron-LM",
        says=Says.MEASURED,
        patterns=(r"\bbatch-generator \.{1,60}: \(\d",),
        examples=(
            Example(line="    batch-generator ................................: (12.1, 31.4)"),
        ),
    ),
    counter(
        "deepspeed-pipe",
        "DeepSpeed",
        rf"\bsteps: {N} loss: \S{{1,40}} iter time",
        r"\bsteps: (?P<step>\d+) loss: ",
        r"iter time \(s\): (?P<s>[\d.]+)",
        tier=ENGINE,
        example=("steps: 101 loss: 7.7616 iter time (s): 18.650 samples/sec: 0.858", 101, 18.65),
    ),
    counter(
        "deepspeed",
        "DeepSpeed",
        rf"\bstep={N}, skipped=",
        r"\bstep=(?P<step>\d+), skipped=",
        tier=ENGINE,
        example=(
            (
                "[2023-04-18 01:47:21,493] [INFO] [logging.py:96:log_dist] [Rank 0] step=40,"
                " skipped=6,"
                " lr=[9.6e-06], mom=[(0.9, 0.95)]"
            ),
            40,
            None,
        ),
    ),
    counter(
        "deepspeed-timer",
        "DeepSpeed",
        rf"global_step={N}, RunningAvgSamplesPerSec",
        r"global_step=(?P<step>\d+), RunningAvg",
        tier=ENGINE,
        example=(
            (
                "[2023-04-18 01:47:21,522] [INFO] [timer.py:199:stop] epoch=0/micro_step=80/"
                "global_step=40, RunningAvgSamplesPerSec=172.2, CurrSamplesPerSec=172.3"
            ),
            40,
            None,
        ),
    ),
    counter(
        "deepspeed-chat",
        "DeepSpeed-Chat",
        rf"epoch: ?\d{{1,6}}\|step: ?{N}\|ppo_ep",
        r"\|step: ?(?P<step>\d+)\|",
        example=(
            "epoch: 0|step: 4|ppo_ep: 1|act_loss: 0.2177734375|cri_loss: 0.1246337890625",
            4,
            None,
        ),
    ),
    Shape(
        name="deepspeed-chat-latency",
        framework="DeepSpeed-Chat",
        says=Says.MEASURED,
        patterns=(r"\|E2E latency=\d",),
        reads=(r"\|E2E latency=(?P<s>[\d.]+)s",),
        examples=(Example(line="|E2E latency=3.87s |Gather latency=0.00s (0.00%)", seconds=3.87),),
    ),
    counter(
        "t5x",
        "T5X",
        rf"\btrainer\.py:\d{{1,5}}\] Training: step {N}\b",
        r"Training: step (?P<step>\d+)",
        example=(
            "I1115 11:58:01.110478 140641718562816 trainer.py:501] Training: step 204",
            204,
            None,
        ),
    ),
    counter(
        "pax",
        "Pax",
        rf"\bstep_i: {N}, ",
        r"\bstep_i: (?P<step>\d+), ",
        r"steps/sec:? (?P<rate>[\d.]+)",
        example=("[PAX STATUS]: step_i: 100, training loss: 3.21, steps/sec: 0.5", 100, 2.0),
    ),
)

LOOPS: tuple[Shape, ...] = (
    Shape(
        name="loss",
        framework="Hugging Face Trainer, OLMo, Composer",
        says=Says.MEASURED,
        patterns=(
            r"\{'loss': '?[\d.]",
            r"train/(?:CrossEntropyLoss|CE loss)=[\d.]",
            r"loss/train/total: [\d.]",
        ),
        reads=(r"(?:'loss': '?|Loss=|CE loss=|train/total: )(?P<loss>[\d.]+)",),
        examples=(
            Example(line="{'loss': 1.2561, 'learning_rate': 1.01e-05, 'epoch': 0.03}"),
            Example(line="    train/CE loss=6.123"),
        ),
    ),
    counter(
        "torchtitan",
        "torchtitan",
        rf"\bstep: {{1,8}}{N} {{1,8}}loss: ",
        r"\bstep: +(?P<step>\d+) +loss",
        example=(
            (
                "[rank0]:[titan] 2025-11-25 19:45:01,496 - root - INFO - step:  2  loss:  7.7082"
                "  grad_norm:  1.5585  memory:  1.34GiB(0.96%)  tps: 301,092  tflops: 21.55"
            ),
            2,
            None,
        ),
    ),
    counter(
        "maxtext",
        "MaxText",
        rf"completed step: {N}, seconds: ",
        r"completed step: (?P<step>\d+), seconds: (?P<s>[\d.]+)",
        example=(
            (
                "I0317 10:00:13.658792 125344476638336 metric_logger.py:181] completed step: 1,"
                " seconds: 0.277, TFLOP/s/device: 370.707, Tokens/s/device: 14774.896, loss: 12.939"
            ),
            1,
            0.277,
        ),
    ),
    counter(
        "nanogpt",
        "nanoGPT",
        rf"\biter {N}: loss \S{{1,40}}, time ",
        r"\biter (?P<step>\d+): loss [^ ]{1,40}, time (?P<ms>[\d.]+)ms",
        unit=StepUnit.ITERATION,
        example=("iter 100: loss 6.1234, time 1234.56ms, mfu 35.12%", 100, 1.23456),
    ),
    counter(
        "litgpt",
        "LitGPT",
        rf"\| iter {N} step {N} \| ",
        r"\| iter (?P<micro>\d+) step (?P<step>\d+) \|",
        r"iter time: (?P<micro_ms>[\d.]+) ms",
        example=(
            (
                "Epoch 1 | iter 100 step 25 | loss train: 6.123, val: n/a | iter time: 100.00"
                " ms (step)"
                " remaining time: 0:10:00"
            ),
            25,
            0.4,
        ),
    ),
    counter(
        "gpt2-loop",
        "build-nanogpt, llm.c",
        rf"\bstep {{1,8}}{N}(?:/{N})? \| [^\n]*loss",
        r"\bstep +(?P<step>\d+)(?:/(?P<total>\d+))? \|",
        r"(?:\bdt: ?|\| )(?P<ms>[\d.]+) ?ms",
        example=(
            (
                "step    1/18865 | loss 11.009 (+nanz)| norm 15.2 (+nanz)| lr 8.57e-07 |"
                " 3056.36 ms |"
                " 42.6% bf16 MFU | 171544 tok/s"
            ),
            1,
            3.05636,
        ),
    ),
    counter(
        "llm.c-main",
        "llm.c",
        rf"{BEGIN}s:{N} trl:",
        rf"{BEGIN}s:(?P<step>\d+) trl:",
        unit=StepUnit.ITERATION,
        example=("s:9780 trl:3.4378 lr:0.000317 norm:0.25", 9780, None),
    ),
    counter(
        "modded-nanogpt",
        "modded-nanogpt",
        rf"\bstep:{N}/{N} (?:train_loss:\S{{1,20}} )?train_time:",
        r"\bstep:(?P<step>\d+)/(?P<total>\d+)",
        r"train_time:(?:(?P<clock_ms>[\d.]+)ms|(?P<clock_s>[\d.]+)s)",
        r"step_avg:(?P<average_ms>[\d.]+)ms",
        example=("step:3084/6710 train_time:692622ms step_avg:224.59ms", 3084, 0.22459),
    ),
    counter(
        "composer",
        "Composer, llm-foundry",
        rf"\[batch={N}/{N}\]",
        r"\[batch=(?P<step>\d+)/(?P<total>\d+)\]",
        unit=StepUnit.BATCH,
        example=("[epoch=1][batch=100/4800]:", 100, None),
    ),
    Shape(
        name="composer-rate",
        framework="Composer, llm-foundry",
        says=Says.MEASURED,
        patterns=(r"throughput/batches_per_sec: \d",),
        reads=(r"throughput/batches_per_sec: (?P<rate>[\d.]+)",),
        examples=(Example(line="\t Train throughput/batches_per_sec: 0.5", seconds=2.0),),
    ),
    counter(
        "olmo",
        "OLMo, OLMo-core",
        rf"\[step={N}/{N}(?:,epoch=|\])",
        r"\[step=(?P<step>\d+)/(?P<total>\d+)[,\]]",
        example=(
            "[2024-04-17 09:42:38] INFO     [olmo.train:816, rank=0] [step=2/739328]",
            2,
            None,
        ),
    ),
    Shape(
        name="olmo-rate",
        framework="OLMo, OLMo-core",
        says=Says.MEASURED,
        patterns=(r"throughput/device/(?:BPS|batches_per_second)=\d",),
        reads=(r"throughput/device/(?:BPS|batches_per_second)=(?P<rate>[\d.]+)",),
        examples=(Example(line="    throughput/device/BPS=0.8", seconds=1.25),),
    ),
    Shape(
        name="olmo-data",
        framework="OLMo, OLMo-core",
        says=Says.MEASURED,
        patterns=(r"throughput/device/data loading \(s\)=\d",),
        examples=(Example(line="    throughput/device/data loading (s)=0.001"),),
    ),
    Shape(
        name="verl",
        framework="veRL",
        says=Says.STEP,
        patterns=(
            rf"\bstep:{N} - (?:[a-uw-z]|v[b-z])",
            rf"\bstep:{N} - val[^\n]* - (?:timing|training/)",
        ),
        reads=(
            r"\bstep:(?P<step>\d+) - ",
            r"(?:timing_s/step|perf/time_per_step):(?P<s>[\d.]+)",
        ),
        sums=r" timing/[a-z_]{1,40}:([\d.]{1,16})",
        examples=(
            Example(
                line="(TaskRunner pid=7) step:10 - actor/pg_loss:-0.1 - timing_s/step:95.2",
                step=10,
                seconds=95.2,
            ),
            Example(
                line="(main_task pid=1) step:1 - timing/gen:20.5 - timing/adv:0.5 - critic/kl:0.0",
                step=1,
                seconds=21.0,
            ),
        ),
    ),
    counter(
        "torchtune",
        "torchtune",
        rf"{BEGIN}\d{{1,6}}\|{N}\|Loss: ",
        r"\d+\|(?P<step>\d+)\|Loss: ",
        r"[ ,](?P<rate>[\d.]+)it/s",
        r"[ ,](?P<s>[\d.]+)s/it",
        example=("1|100|Loss: 6.12:  10%|#   | 100/1000 [01:40<15:00,  1.25s/it]", 100, 1.25),
    ),
    counter(
        "levanter",
        "Levanter",
        rf"Progress on: ?train {N}(?:\.\d)?it/",
        r"Progress on: ?train (?P<step>\d+)(?:\.\d)?it/(?:(?P<total>\d+)(?:\.\d)?it)?",
        r"rate: ?(?P<rate>[\d.]+) ?it/s",
        r"rate: ?(?P<s>[\d.]+) ?s/it",
        example=(
            (
                "Progress on:train 100it/1000it rate:2.0it/s remaining:07:30 elapsed:00:50"
                " postfix:loss=3.1"
            ),
            100,
            0.5,
        ),
    ),
    counter(
        "fairseq2",
        "fairseq2",
        rf"\bMetrics \([^\n]*step:? {N}\)",
        r"\bMetrics \([^\n]{0,40}step:? (?P<step>\d+)\)",
        example=("[Rank 0] INFO fairseq2: Train Metrics (step 100) - CTC Loss: 3.2", 100, None),
    ),
    counter(
        "swift",
        "ms-swift, Megatron-SWIFT",
        rf"'(?:global_step/max_steps|iteration)': '{N}/{N}'",
        r"'(?:global_step/max_steps|iteration)': '(?P<step>\d+)/(?P<total>\d+)'",
        r"'train_speed\(s/it\)': '?(?P<s>[\d.]+)",
        r"'train_speed\(iter/s\)': '?(?P<rate>[\d.]+)",
        example=(
            (
                "{'loss': 6.1, 'epoch': 0.1, 'global_step/max_steps': '100/1000',"
                " 'train_speed(iter/s)': 0.5}"
            ),
            100,
            2.0,
        ),
    ),
    counter(
        "prime-rl",
        "prime-rl",
        rf"\bStep {N} \| (?:Time|Loss)",
        r"\bStep (?P<step>\d+) \|",
        r"\| Time: (?P<s>[\d.]+)s",
        example=("10:02:11 [ SUCCESS] Step 7 | Time: 31.50s | Loss: 0.0211", 7, 31.5),
    ),
)
