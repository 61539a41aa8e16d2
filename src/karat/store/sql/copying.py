"""Copying a store: all rows of all tables, between SQLite and PostgreSQL or through a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from karat.errors import InputError, KaratError, UsageError
from karat.store.sql.opening import VERSIONS, Store, migrate
from karat.store.sql.schema import METADATA, invitation

LEFT_OUT = ("sign_in_attempt", "web_session", "release_lease")
"""Tables that are not copied: sessions, failed sign-ins and leases."""
TABLES = tuple(table.name for table in METADATA.sorted_tables if table.name not in LEFT_OUT)
"""Tables that are copied, each after those it references."""
_AT_ONCE = 1000

Row = Mapping[str, Any]


def rows(c: sa.Connection, name: str) -> Iterator[dict[str, Any]]:
    """The rows of one of ``TABLES`` by primary key, as JSON-compatible dictionaries.

    One-time sign-in links, which are valid on one server only, are left out.
    """
    table = METADATA.tables[name]
    chosen = sa.select(table).order_by(*table.primary_key)
    if table is invitation:
        chosen = chosen.where(invitation.c.kind == "account")
    for row in c.execute(chosen, execution_options={"yield_per": _AT_ONCE}).mappings():
        yield dict(row)


def need_empty(store: Store) -> None:
    with store.read() as c:
        filled = [
            table.name
            for table in METADATA.sorted_tables
            if c.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first() is not None
        ]
    if filled:
        raise UsageError(
            f"the store {store.url} is not empty: there are rows in {', '.join(filled)}",
            fix="use an empty database; judgments are never overwritten",
        )


def put(c: sa.Connection, name: str, given: Iterable[Row], metadata: sa.MetaData = METADATA) -> int:
    """Insert rows into one of ``TABLES``; returns their number."""
    table, count, waiting = metadata.tables[name], 0, iter(given)
    columns = set(table.columns.keys())
    while batch := [dict(row) for row in islice(waiting, _AT_ONCE)]:
        if any(set(row) != columns for row in batch):
            raise InputError(f"rows of {name} have other columns than the table")
        c.execute(sa.insert(table), batch)
        count += len(batch)
    return count


def go_on_numbering(c: sa.Connection) -> None:
    """Continue ids after the inserted ones; PostgreSQL only, SQLite does so by itself."""
    if c.dialect.name != "postgresql":
        return
    for table in METADATA.sorted_tables:
        if list(table.primary_key.columns.keys()) != ["id"]:
            continue
        last = c.execute(sa.select(sa.func.max(table.c.id))).scalar_one()
        if last is not None:
            sequence = sa.func.pg_get_serial_sequence(table.name, "id")
            c.execute(sa.select(sa.func.setval(sequence, last)))


class Older:
    """A temporary SQLite store that migrates rows from an older version of the schema."""

    def __init__(self, path: Path, version: str) -> None:
        self._engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)))
        with self._engine.begin() as c:
            migrate(c, version)
        self._metadata = sa.MetaData()
        with self._engine.connect() as c:
            self._metadata.reflect(c)

    def put(self, name: str, given: Iterable[Row]) -> None:
        if name not in self._metadata.tables:
            raise InputError(f"that version has no table {name}")
        try:
            with self._engine.begin() as c:
                put(c, name, given, self._metadata)
        except sa.exc.DBAPIError as error:
            raise KaratError(f"a row of {name} cannot be inserted: {error.orig}") from error

    def upgraded(self) -> None:
        with self._engine.begin() as c:
            migrate(c, VERSIONS[-1])

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        with self._engine.connect() as c:
            yield from rows(c, name)

    def close(self) -> None:
        self._engine.dispose()
