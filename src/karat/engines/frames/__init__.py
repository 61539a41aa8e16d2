"""Frame engines: the same Narwhals plans on Polars, DuckDB or PySpark."""
