"""Samples of metrics to findings: hangs by their pattern, node health, and who is slower."""
