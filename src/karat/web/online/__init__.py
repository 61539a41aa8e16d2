"""Pages of events and online metrics."""
