"""What a step of a durable host does for all of its patterns at once, or leaves out."""
