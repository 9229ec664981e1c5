"""What the events of each key say, and what follows from it: compiled."""
