"""The automaton of a pattern of stages, and its arrays."""
