"""Detection by several processes: events are divided by key, and a key that has too many of them by time."""
