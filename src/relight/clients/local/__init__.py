"""A scheduler of real processes on this one machine, behaving as Slurm was measured to behave.

It serves the demo, ``relight run`` and the tests: the same eyes and hands as on a cluster,
with pretend nodes that are all this machine. It knows nothing of why a job should restart.
"""
