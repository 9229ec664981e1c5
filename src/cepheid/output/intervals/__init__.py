"""The rows of patterns of intervals."""
