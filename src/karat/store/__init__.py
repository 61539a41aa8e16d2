"""Keep: golden sets in one schema, in SQLite by default and in PostgreSQL for teams."""

from karat.errors import MissingExtra

try:
    import sqlalchemy as _sqlalchemy  # noqa: F401 - said here once, for every file of the folder
except ModuleNotFoundError:  # pragma: no cover - the tests have it
    raise MissingExtra("sqlalchemy", "store", "keeping golden sets") from None
