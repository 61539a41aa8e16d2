"""Online metrics: one entry each, and their registry."""
