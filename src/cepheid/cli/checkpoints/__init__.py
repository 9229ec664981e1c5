"""Commands on the checkpoints of streams."""
