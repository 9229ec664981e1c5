"""Mutated documents, texts, conditions, snapshots, stores and checkpoints: whatever is in them, Cepheid accepts or
refuses it.

`make fuzz` tries thousands; a small sample is among the tests. Each case follows from a seed and a number alone.
"""
