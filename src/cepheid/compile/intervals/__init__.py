"""Interval patterns as arrays."""
