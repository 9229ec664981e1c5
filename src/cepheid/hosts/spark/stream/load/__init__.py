"""The load of a streaming query: what each shard does, which keys are hottest, and what would help."""
