"""Worker processes of a durable host."""
