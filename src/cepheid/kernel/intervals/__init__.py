"""The kernel of interval patterns."""
