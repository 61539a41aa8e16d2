"""The event store: Parquet files and a manifest."""
