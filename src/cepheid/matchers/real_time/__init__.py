"""Matchers that emit at once and retract."""
