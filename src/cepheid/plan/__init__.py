"""What a pattern means: names, types and clauses are checked here, all problems reported at once."""
