"""Conditions and measures: resolved, typed, and split into lifted columns and scripts."""
