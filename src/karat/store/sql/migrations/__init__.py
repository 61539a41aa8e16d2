"""Migrations of the schema, one file for each version; ``opening`` runs them with Alembic."""
