"""Copying a store: all rows of all tables, from one engine to the other or through a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from karat.errors import InputError, KaratError, UsageError
from karat.store.sql.opening import VERSIONS, Store, migrate
from karat.store.sql.schema import METADATA, invitation

LEFT_OUT = ("sign_in_attempt", "web_session")
"""Tables that are not copied: who is signed in with which browser, and who failed to."""
TABLES = tuple(table.name for table in METADATA.sorted_tables if table.name not in LEFT_OUT)
"""Tables that are copied; each stands behind those that its rows name."""
_AT_ONCE = 1000

Row = Mapping[str, Any]


def rows(c: sa.Connection, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a table by its primary key, each as a dictionary that JSON can hold.

    One-time links of a server on one machine alone are left out.

    Args:
        c: A connection of ``Store.read``, so that all tables are of one moment.
        name: One of ``TABLES``.
    """
    table = METADATA.tables[name]
    chosen = sa.select(table).order_by(*table.primary_key)
    if table is invitation:
        chosen = chosen.where(invitation.c.kind == "account")
    found = c.execute(chosen, execution_options={"yield_per": _AT_ONCE})
    for row in found.mappings():
        yield dict(row)


def need_empty(store: Store) -> None:
    """See that a store holds nothing yet.

    Raises:
        UsageError: it holds something.
    """
    with store.read() as c:
        full = [
            table.name
            for table in METADATA.sorted_tables
            if c.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first() is not None
        ]
    if full:
        raise UsageError(
            f"the store {store.url} is not empty: there are rows in {', '.join(full)}",
            fix="give an empty database; what was judged is never overwritten",
        )


def put(c: sa.Connection, name: str, given: Iterable[Row], metadata: sa.MetaData = METADATA) -> int:
    """Put rows into a table.

    Args:
        c: A write transaction.
        name: One of ``TABLES``.
        given: As ``rows`` gives them.
        metadata: The tables, as they are there.

    Returns:
        How many.

    Raises:
        InputError: a row has other columns than the table.
    """
    table, count, waiting = metadata.tables[name], 0, iter(given)
    columns = set(table.columns.keys())
    while batch := [dict(row) for row in islice(waiting, _AT_ONCE)]:
        if any(set(row) != columns for row in batch):
            raise InputError(f"rows of {name} have other columns than its table has")
        c.execute(sa.insert(table), batch)
        count += len(batch)
    return count


def go_on_numbering(c: sa.Connection) -> None:
    """Let what is added next be numbered behind what was put (SQLite does so by itself)."""
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
    """Rows of an older version of the schema, brought up to date in a SQLite file of its own.

    Args:
        path: The file; it must not be there.
        version: One of ``opening.VERSIONS``.
    """

    def __init__(self, path: Path, version: str) -> None:
        self._engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)))
        with self._engine.begin() as c:
            migrate(c, version)
        self._metadata = sa.MetaData()
        with self._engine.connect() as c:
            self._metadata.reflect(c)

    def put(self, name: str, given: Iterable[Row]) -> None:
        """As ``copying.put``.

        Raises:
            InputError: there is no such table in this version, or its columns are others.
        """
        if name not in self._metadata.tables:
            raise InputError(f"there is no table {name} in that version")
        try:
            with self._engine.begin() as c:
                put(c, name, given, self._metadata)
        except sa.exc.DBAPIError as error:
            raise KaratError(f"a row of {name} cannot be put: {error.orig}") from error

    def brought_up(self) -> None:
        """Bring it to the newest version."""
        with self._engine.begin() as c:
            migrate(c, VERSIONS[-1])

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """As ``copying.rows``."""
        with self._engine.connect() as c:
            yield from rows(c, name)

    def close(self) -> None:
        """Close the file."""
        self._engine.dispose()
