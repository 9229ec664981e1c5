"""Reads the rows of matches that are there already, and makes rows of events from them."""
