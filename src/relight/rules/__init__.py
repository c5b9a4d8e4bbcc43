"""Failure signatures as data, with their own evidence. Knows not where lines come from."""
