"""One typed record for all configuration: load, refuse with every error at once, explain."""
