"""Events: batches of them, their order and their identity."""
