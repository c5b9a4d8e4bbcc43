"""HTTP for people and machines."""
