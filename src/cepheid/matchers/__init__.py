"""Matchers: they feed events to the kernels, hold the state, and return rows."""
