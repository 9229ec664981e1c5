"""The host in this process: Arrow tables, pandas, polars, DuckDB."""
