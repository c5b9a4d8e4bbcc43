"""Findings to a verdict: who is to blame. Knows not what will be done about it."""
