"""Times of events: from texts, and as instants."""
