"""Live search: commands."""
