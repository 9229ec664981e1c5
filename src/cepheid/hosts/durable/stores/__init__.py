"""The places where a durable host stores its state: one module each."""
