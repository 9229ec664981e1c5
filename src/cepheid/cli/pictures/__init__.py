"""Pictures of what commands find."""
