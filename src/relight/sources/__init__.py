"""Shells that listen to log files and turn what they hold into signals."""
