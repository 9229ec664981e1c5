"""Rows from what the kernels emit."""
