"""Reads logs as they lie about: files, directories, compressed ones, standard input.

Nothing follows anything here: a file is read once, up to the size that it has when it is
opened, with the rights of the person who asks. What cannot be read is told, never skipped in
silence, and never read as healthy.
"""
