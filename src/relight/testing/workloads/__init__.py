"""Workloads that train for real and break on command, for demos and tests."""

from __future__ import annotations

from pathlib import Path

TRAIN = Path(__file__).with_name("train.py")
"""The training program: one file of standard library, for any Python from 3.9 on."""
