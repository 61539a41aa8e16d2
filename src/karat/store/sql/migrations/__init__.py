"""How the schema came to be, one file a version; Alembic runs them, called by ``opening``."""
