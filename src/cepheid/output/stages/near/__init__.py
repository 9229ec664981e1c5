"""Near misses of a pattern of stages: why a start does not match, and by how much."""
