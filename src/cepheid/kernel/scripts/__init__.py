"""Conditions across events: the interpreter, its definition, and the user's functions."""
