"""Matchers of patterns of stages."""
