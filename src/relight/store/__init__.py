"""Journal, state, advice and audit in one database, committed together."""
