"""What a pattern means: names, types and clauses are checked here, and all problems reported at once."""
