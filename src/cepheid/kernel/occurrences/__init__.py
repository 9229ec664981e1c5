"""The kernel of the event algebra."""
