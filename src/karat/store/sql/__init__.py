"""The store of a workspace, in SQLite or PostgreSQL."""
