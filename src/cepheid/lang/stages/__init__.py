"""Patterns of stages as the user writes them."""
