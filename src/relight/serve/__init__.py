"""HTTP for people and machines: what is known, and what they say. It decides nothing."""
