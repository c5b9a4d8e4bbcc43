"""The composition root: the real clock, supervision, the one process that runs it all."""
