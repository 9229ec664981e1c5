"""How the events of one key are divided among several workers, where the meaning of a pattern allows it."""
