"""The operators of the event algebra as arrays."""
