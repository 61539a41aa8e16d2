"""The store of events, in Parquet files."""
