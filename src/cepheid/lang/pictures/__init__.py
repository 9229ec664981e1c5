"""Pictures of patterns, for notebooks."""
