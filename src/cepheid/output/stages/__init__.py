"""The rows of patterns of stages."""
