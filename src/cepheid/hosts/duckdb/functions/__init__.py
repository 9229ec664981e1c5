"""The functions that are available in process, and how DuckDB computes each of them as Spark does."""
