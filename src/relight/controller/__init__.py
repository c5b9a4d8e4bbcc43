"""Observe, reconcile, act: beside the scheduler, never deciding."""
