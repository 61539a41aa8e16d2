"""Engines: one plan of Narwhals, on Polars, DuckDB or PySpark; one file and package each."""
