"""Finite DataFrames."""
