"""Keep: golden sets in SQLite, or in PostgreSQL for teams; events in files beside them."""

from karat.errors import MissingExtra

try:
    import sqlalchemy as _sqlalchemy  # noqa: F401 - said here once, for every file of the folder
except ModuleNotFoundError:  # pragma: no cover - the tests have it
    raise MissingExtra("sqlalchemy", "store", "a store of golden sets or of events") from None
