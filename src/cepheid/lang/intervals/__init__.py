"""Interval patterns as the user writes them."""
