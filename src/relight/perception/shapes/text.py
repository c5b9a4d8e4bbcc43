"""Counters of what trains on translation and speech."""

from __future__ import annotations

from relight.model.progress import StepUnit
from relight.perception.shapes.entries import SUMMARY, N, Shape, counter

TEXT: tuple[Shape, ...] = (
    counter(
        "fairseq",
        "fairseq",
        r"\bnum_updates=\d",
        r"\bepoch \d+: +\d+ / \d+ .*\bnum_updates=(?P<step>\d+)",
        r"\bwall=(?P<clock_s>[\d.]+)",
        unit=StepUnit.UPDATE,
        example=(
            (
                "2020-03-23 11:39:44 | INFO | train_inner | epoch 003:      5 / 356 loss=9.441,"
                " ppl=347.81, wps=30688.2, ups=0.07, num_updates=700, lr=0.000175, wall=1281"
            ),
            700,
            None,
        ),
    ),
    counter(
        "fairseq-json",
        "fairseq",
        rf'"num_updates": "{N}"',
        r'"num_updates": "(?P<step>\d+)"',
        r'"wall": "(?P<clock_s>[\d.]+)"',
        unit=StepUnit.UPDATE,
        example=(
            (
                '2020-03-23 11:39:44 | INFO | train_inner | {"epoch": 1, "update": 0.1,'
                ' "loss": "9.4",'
                ' "num_updates": "100", "lr": "1e-05", "wall": "41"}'
            ),
            100,
            None,
        ),
    ),
    counter(
        "fairseq-epoch",
        "fairseq",
        rf"\| num_updates {N} ",
        r"\bepoch \d+ \| .*\bnum_updates (?P<step>\d+) ",
        r"\bwall (?P<clock_s>[\d.]+)",
        unit=StepUnit.UPDATE,
        tier=SUMMARY,
        example=(
            (
                "| epoch 001 | loss 42731.295 | nll_loss 0.000 | wps 348374 | num_updates 1631 |"
                " lr 0.00128842 | gnorm 35383.706 | wall 361"
            ),
            1631,
            None,
        ),
    ),
    counter(
        "marian",
        "Marian",
        rf"\bEp\. \d{{1,6}} : Up\. {N} : ",
        r"\bUp\. (?P<step>\d+) :",
        r": Time (?P<since_s>[\d.]+)s :",
        unit=StepUnit.UPDATE,
        example=(
            (
                "[2024-12-17 16:03:41] Ep. 3 : Up. 41200 : Sen. 12,110,202 : Cost 0.41120 *"
                " 1,210,022 :"
                " Time 61.10s : 41120.12 words/s : gNorm 0.2012"
            ),
            41200,
            None,
        ),
    ),
    counter(
        "opennmt",
        "OpenNMT-py",
        rf"\bStep {N}/ ?{N}; ",
        r"\bStep (?P<step>\d+)/ ?(?P<total>\d+);",
        r"; +(?P<clock_s>\d+) sec;?",
        example=(
            (
                "[2019-04-05 10:02:38,007 INFO] Step 8200/200000; acc:  61.31; ppl:  6.83;"
                " lr: 0.00098;"
                " 20988/24077 tok/s;   3528 sec"
            ),
            8200,
            None,
        ),
    ),
    counter(
        "updates",
        "OpenNMT and its kin",
        rf"; updates: +{N};",
        r"; updates: +(?P<step>\d+);",
        unit=StepUnit.UPDATE,
        example=(
            (
                "Epoch  1,   800/15756; ; ppl: 570.44 ; lr: 0.0000675 ; updates:     200;"
                " 26311 src tok/s; 0:02:25 elapsed"
            ),
            200,
            None,
        ),
    ),
    counter(
        "gnmt",
        "GNMT of NVIDIA",
        rf"\bTRAIN \[\d{{1,6}}\]\[{N}/{N}\]",
        r"TRAIN \[(?P<epoch>\d+)\]\[(?P<step>\d+)/(?P<total>\d+)\]",
        r"\tTime (?P<s>[\d.]+) ",
        unit=StepUnit.BATCH,
        epoch_from=0,
        example=(
            (
                "0: TRAIN [1][10/484]\tTime 0.029 (0.095)\tData 7.20e-05 (2.53e-02)\tTok/s 42607"
                " (34088)\tLoss/tok 9.5806 (10.1864)\tLR 4.700e-05"
            ),
            494,
            0.029,
        ),
    ),
    counter(
        "espnet",
        "ESPnet",
        rf"\d{{1,5}}epoch:train:{N}-{N}batch: ",
        r"(?P<epoch>\d+)epoch:train:\d+-(?P<step>\d+)batch",
        r"\btrain_time=(?P<s>[\d.]+)",
        unit=StepUnit.BATCH,
        epoch_from=1,
        example=(
            (
                "[node-1] 2021-05-01 10:00:00,000 (trainer:655) INFO: 1epoch:train:101-200batch:"
                " iter_time=1.5e-04, forward_time=0.2, loss=61.2, train_time=0.553"
            ),
            200,
            0.553,
        ),
    ),
    counter(
        "kaldi",
        "Kaldi",
        rf"\bIter: {N}/{N} +(?:Epoch|Jobs): ",
        r"\bIter: (?P<step>\d+)/(?P<total>\d+) ",
        unit=StepUnit.ITERATION,
        example=(
            (
                "2020-01-01 10:00:00,101 [steps/nnet3/train_dnn.py:326 - train - INFO ] Iter:"
                " 10/135"
                "   Epoch: 1.2/20.0 (6.0% complete)   lr: 0.001"
            ),
            10,
            None,
        ),
    ),
)
