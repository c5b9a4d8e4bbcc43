"""relight: bring distributed training back to life after a failure."""

__version__ = "0.1.0"
