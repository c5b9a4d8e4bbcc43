"""What else a log tells of progress: checkpoints, evaluation, beginnings and ends."""

from __future__ import annotations

from relight.perception.shapes.entries import Says, Shape

_WORDS = "step|iteration|iter|checkpoint|ckpt|batches|update|ba"
_NAMED_STEP = (
    rf"^.*(?:{_WORDS})[-_=: @]{{0,12}}(?:to )?(?P<step>\d{{1,12}})\b",
    rf"^.*(?:{_WORDS})[-_=: @]{{0,12}}(?:to )?(?P<step>\d{{1,12}})",
)

CHECKPOINTS: tuple[Shape, ...] = (
    Shape(
        name="saved",
        says=Says.SAVED,
        patterns=(
            r"successfully saved checkpoint from iteration +\d",
            r"Checkpoint for step \d{1,12} saved successfully",
            r"Checkpoint global_step\d{1,12} is ready now",
            r"(?i)\bsaved (?:a |the |model )?checkpoint\b",
            r"(?i)\bcheckpoint [^\n]*\b(?:was |successfully )?(?:saved|uploaded)\b",
        ),
        reads=(r"epoch \d+ @ (?P<step>\d+) updates", *_NAMED_STEP),
    ),
    Shape(
        name="saving",
        says=Says.SAVING,
        patterns=(
            r"Saving model checkpoint to \S*checkpoint-\d",
            r"Saving JIT checkpoint at step \d",
            r"\bEpoch \d{1,6}, global step \d{1,12}: [^\n]* saving model to",
            r"Saving checkpoints for \d{1,12} into ",
            r"\[Torch\] Saving \S*global_step\d",
        ),
        reads=(r"checkpoints for (?P<step>\d+) into", r"global step (?P<step>\d+): ", *_NAMED_STEP),
    ),
    Shape(
        name="begun",
        says=Says.BEGUN,
        patterns=(r"saving checkpoint at iteration +\d", r"Saving checkpoint for step \d"),
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

PAUSES: tuple[Shape, ...] = (
    Shape(
        name="saves",
        says=Says.SAVES,
        patterns=(
            r"\bSaving the checkpoint \(or staging",
            r"(?i)\bsaving (?:(?:the|a|model|training|full) ){0,3}(?:checkpoint|model|state)\b",
            r"\bBegin saving checkpoint\b",
        ),
    ),
    Shape(
        name="evaluating",
        says=Says.EVALUATING,
        patterns=(
            r"(?i)\b(?:start(?:ing|ed)?|begin(?:ning)?|running) (?:evaluat|validation\b)",
            r"\bEvaluating (?:on \d|iter \d)",
            r'"key": "eval_start"',
            r"\bStart inference on \d",
            r"\bInference done \d{1,9}/\d",
            r"\[eval_step=\d",
            r"\[Eval batch=\d",
            r"\b(?:Epoch|Iter)\(val\) +\[",
            r"\bTest: +\[ *\d",
            r"\bEval iter: \d",
        ),
    ),
    Shape(
        name="milestone",
        says=Says.MILESTONE,
        patterns=(
            r"\[after [a-z, ]{3,60} (?:is|are) (?:built|initialized|setup)\]",
            r"\[before the start of training step\]",
            r"(?i)\bcompil(?:ation|ing) (?:finished|done|completed|took)\b",
            r"(?i)\bgraph captur(?:e|ing) (?:finished|done|completed|took)\b",
        ),
    ),
)

LOSSES: tuple[Shape, ...] = (
    Shape(
        name="nan",
        says=Says.NAN,
        patterns=(
            (
                r"(?i)(?:loss|\bg?norm|grad_norm|\bcost|\btrl)(?:/tok|/mean|/train/total| value)?"
                r"[\"']?[:=]?"
                r" {0,4}[\"'(\[]?"
                r"-?(?:nan|inf)(?:inity)?(?:[\s,\"'|)\];]|$)"
            ),
        ),
    ),
    Shape(
        name="skipped",
        says=Says.SKIPPED,
        patterns=(
            r"OVERFLOW! Rank \d{1,7} Skipping step",
            r"Gradient overflow\. +Skipping step",
            r"overflow detected, (?:setting loss scale|ignoring gradient)",
            r"number of (?:skipped|nan) iterations: +[1-9]",
        ),
    ),
    Shape(
        name="evaluated",
        says=Says.EVALUATED,
        patterns=(
            r"\bvalidation loss at iteration +\d",
            r'"eval_accuracy", "value": \d',
            r"'eval_loss': ",
            r"(?i)\bval(?:idation)?[ _]loss:? ?[=:]? ?\d",
            r"\bs:\d{1,12} tel:",
            r"\| valid \| ",
        ),
    ),
)

LIVES: tuple[Shape, ...] = (
    Shape(
        name="finished",
        says=Says.FINISHED,
        patterns=(
            r"\[after training is done\]",
            r"\bexiting program at iteration +\d",
            r"\bTraining complete(?:d)?\b",
            r"`?Trainer\.fit`? stopped: `?max_",
            r"'train_runtime': ",
            r'"run_stop"[^\n]*"status": "success"',
            r"\bdone training in \d",
            r"\bTraining finished\b",
            r"\bTraining (?:is )?done\b",
        ),
    ),
    Shape(
        name="launched",
        says=Says.LAUNCHED,
        patterns=(
            r"\[runner\.py:\d{1,5}:main\] (?:cmd = |deepspeed_env|Using IP address)",
            r"Starting elastic_operator with launch configs",
            r"Setting OMP_NUM_THREADS environment variable for each process",
            r"\bSLURM_RESTART_COUNT ?[=:] ?[1-9]",
            r"\brestart_count=[1-9]",
            r"\bsubmitit INFO \([^)\n]*\) - Starting with JobEnvironment",
            r"\]\[submitit\]\[INFO\] - Starting with JobEnvironment",
            (
                r"(?i)[=*#>~-]{2,20} ?\[?(?:attempt|restart|retry|relaunch|requeue|run)(?:ing)?"
                r"(?: number| no\.?)?[ #:]{1,3}\d{1,4}\b"
            ),
            r"\bStarted distributed worker processes:",
        ),
    ),
    Shape(
        name="set-up",
        says=Says.SET_UP,
        patterns=(
            r"\[after megatron is initialized\]",
            r"\busing world size: ?\d",
            r"\bSTARTING TIMING RUN AT ",
            r"\bRUNANDTIME_START ",
            r"\*{5} Running training \*{5}",
            r"\bTraining starts at step \d",
            r"\bStarting job: ",
            r"Initializing distributed: GLOBAL_RANK: \d{1,7}, MEMBER: ",
            r'"key": "init_start"',
            r"\bWORLD INFO DICT: \{",
        ),
    ),
    Shape(
        name="ended",
        says=Says.ENDED,
        patterns=(
            r"\blaunch\.py:\d{1,5}:\w*\] Process \d{1,9} exits successfully",
            r"\bexits with return code = ",
            r"errors\.ChildFailedError",
            r"\bWorker group FAILED\. ",
            r"\bsrun: error: [^\n]*: (?:Exited with|Terminated|Killed|Aborted|Segmentation)",
            r"\bslurmstepd: error: \*\*\* (?:JOB|STEP) [^\n]* CANCELLED AT ",
            r"\bENDING TIMING RUN AT ",
            r"\bRUNANDTIME_STOP ",
            r"\bPrimary job  ?terminated normally, but",
            r"\bmpirun(?:\.real)? (?:noticed|detected) that",
            r"\bRequeued job \d",
        ),
    ),
)
