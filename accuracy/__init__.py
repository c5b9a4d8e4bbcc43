"""How often a diagnosis is right, on labelled logs: ``python -m accuracy``.

A corpus is a folder with ``labels.jsonl``, one label a line, and ``cases/<id>.log`` beside it;
it may hold ``timelines/index.jsonl`` with the logs of whole runs. Two baselines stand in the
same table, because a number without one says little.
"""
