"""CSV and JSON lines files."""
