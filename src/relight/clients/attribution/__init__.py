"""Outside services that are asked for a second opinion on a failure. None is needed."""
