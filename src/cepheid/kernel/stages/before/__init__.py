"""Partial matches that begin only without certain events before them."""
