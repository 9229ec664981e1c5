"""Requests: the checked arguments of `detect` and the other public calls, and their reports."""
