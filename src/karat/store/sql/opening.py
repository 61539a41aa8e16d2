"""Opening a store: SQLite or PostgreSQL by its URL, at the schema's version that we read."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from karat.errors import InputError, KaratError, MissingExtra, UsageError
from karat.store.sql.schema import METADATA

VERSIONS = ("0001", "0002", "0003", "0004", "0005")
"""Versions of the schema, oldest first; each is a file of ``migrations/versions``."""
VERSION_TABLE = "karat_version"
BUSY_MS = 30_000
"""How long a writer waits for the others before it gives up."""
_DAMAGED = ("malformed", "not a database", "corrupt")
"""What SQLite says of a file that was cut off or written over, or never was its own."""
_BACKUP = "take it from a backup; without one, sqlite3's .recover may still read a part of it"
_NO_ROOM = 1 << 17
"""Bytes that are free where SQLite has no room for the 32 KiB that its readers share."""
_MAKING = 0x6B61726174  # "karat": the advisory lock that lets one process at a time make tables


class Store:
    """An open store.

    Attributes:
        engine: The SQLAlchemy engine.
        url: Where it is, without the password and the options.
        shared: Whether it is a server, which several checkouts of a workspace may share.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.shared = engine.dialect.name != "sqlite"
        path = engine.url.database if engine.dialect.name == "sqlite" else None
        # The options of PostgreSQL may hold a password too.
        shown = engine.url.set(query={}).render_as_string(hide_password=True)
        self.url = shown if path is None else f"sqlite:///{path}"

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A write transaction: all of it is kept when the block ends, or nothing if it raises.

        On SQLite it waits for other writers when it begins (``BEGIN IMMEDIATE``), so that it never
        fails half-way for want of a lock.

        Raises:
            KaratError: others wrote for 30 seconds without a pause, the server went away, or the
                database refused what was written.
            InputError: the file is damaged.
        """
        with self._said(), self.engine.connect() as connection:
            connection.execution_options(karat_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection to read from: everything read in the block is of one moment.

        Raises:
            KaratError: the server went away.
            InputError: the file is damaged.
        """
        with self._said(), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            yield connection

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.OperationalError as error:
            if not self.shared and _is_full(error, self.url):
                raise _full(self.url) from error
            raise KaratError(f"the store {self.url} did not answer: {_reason(error)}") from error
        except sa.exc.DBAPIError as error:
            if not self.shared and _is_damage(error):
                raise _damage(self.url, error) from error
            # Its first line: what follows may quote the row, with what somebody wrote.
            raise KaratError(
                f"the store {self.url} refused a change, and nothing of it was kept: "
                f"{str(error.orig).partition(chr(10))[0]}\n"
                "  fix: try again, as another may have written at the same instant; if it is "
                "refused again, karat is at fault"
            ) from error

    def __repr__(self) -> str:
        return f"<Store {self.url}>"


def open_store(url: str, *, make: bool = False, folder: Path | None = None) -> Store:
    """Open a store.

    Args:
        url: ``sqlite:///karat.db`` or ``postgresql://user:password@host/database``. The path of
            SQLite is taken as it is written, without %-escapes.
        make: Make what is lacking: the file, the tables, or the migration from an older version.
        folder: What a relative SQLite path is relative to; the current folder if None.

    Raises:
        UsageError: not such a URL, there is no store, or its version is older or newer than this
            karat reads.
        InputError: what is there is damaged, no database or another program's, cannot be reached,
            or is an empty file where a workspace was at work.
        MissingExtra: the driver of PostgreSQL is not installed.
    """
    parsed = _parsed(url, folder)
    if parsed.get_backend_name() == "sqlite":
        _look(parsed, make=make)
    store = Store(_engine(parsed))
    try:
        if make:
            with store.engine.connect() as connection:
                connection.execution_options(karat_write=True)
                with connection.begin():
                    _make(connection, store.url)
        else:
            with store.engine.connect() as connection:
                _check(_version(connection), store.url)
    except sa.exc.DatabaseError as error:
        store.dispose()
        if not store.shared and _is_damage(error):
            raise _damage(store.url, error) from error
        if not store.shared and _is_full(error, store.url):
            raise _full(store.url) from error
        raise InputError(
            f"{store.url} cannot be opened: {_reason(error)}",
            fix="see that it is karat's own database and can be reached",
        ) from error
    except BaseException:
        store.dispose()
        raise
    return store


def _parsed(url: str, folder: Path | None) -> sa.URL:
    fix = "sqlite:///karat.db, or postgresql://user:password@host/database"
    if url.startswith("sqlite:"):  # by hand, because a path may hold %, ? and # as they are
        rest = url.removeprefix("sqlite:")
        if rest.startswith("//") and rest[2:3] not in {
            "",
            "/",
        }:  # else it were the root's /karat.db
            raise UsageError("after sqlite: come three slashes, not two", fix="sqlite:///karat.db")
        path = rest.removeprefix("///")
        if path in {"", "//", ":memory:"}:
            raise UsageError("a store in memory would be lost when the command ends", fix=fix)
        return sa.URL.create("sqlite", database=str((folder or Path()) / path))
    if url.count("@") > 1:  # what follows the first would be taken for the host, and printed
        raise UsageError("the URL of the store has more than one @", fix="write %40 for an @ in it")
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        raise UsageError("the store is not given by a URL", fix=fix) from None
    if backend not in {"postgresql", "postgres"}:
        raise UsageError(f"a store in {backend} is not known", fix=fix)
    return parsed.set(drivername="postgresql+psycopg")


def _look(url: sa.URL, *, make: bool) -> None:
    path = Path(str(url.database))
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{path} cannot be a store: {path.parent} is no folder, or it is one")
    if not make and not path.is_file():
        raise UsageError(
            f"there is no store at {path}",
            fix="karat init makes one; in a workspace that is there, karat init --upgrade",
        )
    log = path.with_name(f"{path.name}-wal")  # what SQLite may fill the file from
    if make or path.stat().st_size or (log.is_file() and log.stat().st_size):
        return
    if path.with_name("karat.toml").is_file() and path.with_name("runs").is_dir():
        raise InputError(
            f"{path} is empty: what was in it is lost unless there is a backup",
            fix="take it from a backup; karat init --upgrade makes a new one, without judgments",
        )
    _check(None, f"sqlite:///{path}")  # before SQLite makes more than nothing of it


def _engine(url: sa.URL) -> sa.Engine:
    # A plan that the server kept from when the tables were empty is slow once they are full.
    how = {} if url.get_backend_name() == "sqlite" else {"prepare_threshold": None}
    try:
        engine = sa.create_engine(url, connect_args=how)
    except ModuleNotFoundError:
        raise MissingExtra("psycopg", "postgres", "a store in PostgreSQL") from None
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _prepare)
        sa.event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # BEGIN is ours to send: see _begin
    for pragma in (
        f"busy_timeout = {BUSY_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",  # what was acknowledged survives a power cut
        "foreign_keys = ON",
        "recursive_triggers = ON",  # INSERT OR REPLACE must not delete past the triggers
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("karat_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _version(connection: sa.Connection) -> str | None:
    """The version of the schema; None if there is none yet."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars().all()  # noqa: S608 - a constant
    return str(found[0]) if found else None


def _check(version: str | None, url: str) -> None:
    if version is None:
        raise UsageError(
            f"{url} holds no store yet",
            fix="karat init makes one; in a workspace that is there, karat init --upgrade",
        )
    if version not in VERSIONS:
        raise UsageError(
            f"{url} is at version {version}, made by a newer karat than this one",
            fix="pip install --upgrade karat",
        )
    if version != VERSIONS[-1]:
        raise UsageError(
            f"{url} is at version {version}, and this karat needs {VERSIONS[-1]}",
            fix="karat init --upgrade brings it up to date; keep a copy of it first",
        )


def _make(connection: sa.Connection, url: str) -> None:
    if connection.dialect.name == "postgresql":  # SQLite's BEGIN IMMEDIATE does as much
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
    version = _version(connection)
    if version == VERSIONS[-1]:
        return
    if version is not None and version not in VERSIONS:
        _check(version, url)
    if version is None:
        there = set(sa.inspect(connection).get_table_names()) & set(METADATA.tables)
        if there:
            raise InputError(
                f"{url} holds tables of another program, called {', '.join(sorted(there))}",
                fix="give karat a database of its own",
            )
    migrate(connection, VERSIONS[-1])


def migrate(connection: sa.Connection, version: str) -> None:
    """Bring the schema to a version, in the transaction that is open on the connection."""
    from alembic import command  # 0.2 s, and only migrations need it
    from alembic.config import Config

    config = Config()
    place = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(place).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def _reason(error: sa.exc.DBAPIError) -> str:
    """What the driver said, in one line; the statement and its values are left out."""
    return " ".join(str(error.orig).split())


def _is_damage(error: sa.exc.DBAPIError) -> bool:
    said = str(error.orig).casefold()
    return any(sign in said for sign in _DAMAGED)


def _is_full(error: sa.exc.DBAPIError, url: str) -> bool:
    """Whether there was no room: SQLite calls it an I/O error where it lays out what is shared."""
    said = str(error.orig).casefold()
    if "disk is full" in said:
        return True
    free = shutil.disk_usage(Path(url.removeprefix("sqlite:///")).parent).free
    return "disk i/o error" in said and free < _NO_ROOM


def _full(url: str) -> KaratError:
    return KaratError(
        f"no room is left on the disk of {url}, and SQLite needs some even to read\n"
        "  fix: make room; nothing that was stored is lost"
    )


def _damage(url: str, error: sa.exc.DBAPIError) -> InputError:
    return InputError(f"{url} is damaged, or no database of karat's: {_reason(error)}", fix=_BACKUP)
