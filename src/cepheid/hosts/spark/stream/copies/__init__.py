"""Copies of hot keys: standby shards that own some of the partial matches of a key, by their start."""
