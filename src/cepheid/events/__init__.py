"""Batches of events, the order of events and their identity."""
