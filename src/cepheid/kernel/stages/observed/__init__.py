"""What becomes of each start: the reference step, observed. It is slow, and runs only where it is asked for."""
