"""A running host answers other processes on a Unix socket; `frames` describes the protocol."""
