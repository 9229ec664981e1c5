"""Finds the partial matches that an event can change, and those that run out of time first, without visiting all."""
