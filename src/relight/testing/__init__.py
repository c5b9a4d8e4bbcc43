"""Shipped fakes and the fault kit: a real local Slurm cluster, workloads that fail on purpose."""
