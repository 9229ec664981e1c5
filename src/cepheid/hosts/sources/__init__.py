"""Sources from which a running host reads events: one module each. Each can be read again from a position."""
