"""The index by which an event finds the partial matches that it can change."""
