"""Plans of the event algebra."""
