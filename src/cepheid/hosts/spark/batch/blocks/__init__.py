"""Batches whose events go through Spark's shuffle in blocks, and are sorted by Cepheid's workers."""
