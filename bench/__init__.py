"""Measurements of relight beside what a user would use instead: ``python -m bench``.

Every claim of speed is a ratio of two numbers taken in one run on one machine. A part never
leaves a file or a process behind, and none runs longer than its stated bound.
"""
