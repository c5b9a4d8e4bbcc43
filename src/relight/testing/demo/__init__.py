"""The demo: a real training fails on pretend or real Slurm nodes, and relight deals with it.

Nothing that it shows is made up: jobs and nodes are what the scheduler says, steps are what
the job's own log says, and everything else is read from relight's store.
"""
