"""The SQL engine in process."""
