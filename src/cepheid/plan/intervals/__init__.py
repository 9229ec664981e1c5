"""Plans of interval patterns."""
