"""Live search: reports."""
