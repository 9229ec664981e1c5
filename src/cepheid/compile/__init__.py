"""How a plan runs: the automaton, its tables, its scripts."""
