"""Matchers of interval patterns."""
