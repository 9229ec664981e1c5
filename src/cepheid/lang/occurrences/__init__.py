"""Patterns of the event algebra as the user writes them."""
