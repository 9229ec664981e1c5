"""Gives a stopped streaming query other numbers of shards and partitions."""
