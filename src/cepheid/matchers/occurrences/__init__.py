"""Matchers of patterns of occurrences."""
