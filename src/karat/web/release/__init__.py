"""Pages of trends."""
