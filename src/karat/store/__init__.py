"""Stores: golden sets in SQLite or PostgreSQL; events in Parquet files."""

from karat.errors import MissingExtra

try:
    import sqlalchemy as _sqlalchemy  # noqa: F401 - one check for all modules of the folder
except ModuleNotFoundError:  # pragma: no cover - the tests have it
    raise MissingExtra("sqlalchemy", "store", "a store of golden sets or of events") from None
