"""Event logs."""
