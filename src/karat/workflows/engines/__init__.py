"""Live search."""
