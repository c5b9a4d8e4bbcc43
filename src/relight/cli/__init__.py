"""Words to requests, answers to tables."""
