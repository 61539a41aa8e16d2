"""Opening a store: SQLite or PostgreSQL by its URL, at the current version of the schema."""

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

VERSIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
"""Versions of the schema, oldest first; each is a file of ``migrations/versions``."""
VERSION_TABLE = "karat_version"
BUSY_MS = 30_000  # how long a writer waits for other writers
_DAMAGED = ("malformed", "not a database", "corrupt")
"""Messages of SQLite for damaged files, and files that are not databases."""
_BACKUP = "restore it from a backup; without one, sqlite3's .recover may still read a part of it"
_NO_ROOM = 1 << 17  # free bytes below which SQLite may fail to create its 32 KiB of shared memory
_MAKING = 0x6B61726174  # "karat": advisory lock for creating tables


class Store:
    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.shared = engine.dialect.name != "sqlite"
        path = engine.url.database if engine.dialect.name == "sqlite" else None
        # The options of PostgreSQL may contain a password too.
        shown = engine.url.set(query={}).render_as_string(hide_password=True)
        self.url = shown if path is None else f"sqlite:///{path}"

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A write transaction: commits when the block ends, rolls back if it raises.

        On SQLite it waits for other writers when it begins (``BEGIN IMMEDIATE``), and so never
        fails later because of a lock.

        Raises:
            KaratError: no lock within 30 seconds, the connection was lost, or the database
                rejected a change.
        """
        with self._errors(), self.engine.connect() as connection:
            connection.execution_options(karat_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection for reading: the block sees one consistent snapshot."""
        with self._errors(), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            yield connection

    def dispose(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.OperationalError as error:
            if not self.shared and _is_full(error, self.url):
                raise _full(self.url) from error
            raise KaratError(f"the store {self.url} did not answer: {_reason(error)}") from error
        except sa.exc.DBAPIError as error:
            if not self.shared and _is_damage(error):
                raise _damage(self.url, error) from error
            # Only its first line: the others may quote user data.
            raise KaratError(
                f"the store {self.url} rejected a change, and nothing was stored: "
                f"{str(error.orig).partition(chr(10))[0]}",
                fix="try again, because another process may have written at the same time; if it "
                "is rejected again, report a bug in karat",
            ) from error

    def __repr__(self) -> str:
        return f"<Store {self.url}>"


def open_store(url: str, *, make: bool = False, folder: Path | None = None) -> Store:
    """Open a store.

    Args:
        url: ``sqlite:///karat.db`` or ``postgresql://user:password@host/database``. A SQLite path
            is literal, without %-escapes.
        make: Create the file and the tables if missing, and migrate older versions.
        folder: Base of a relative SQLite path; the current folder if None.
    """
    parsed = _parsed(url, folder)
    if parsed.get_backend_name() == "sqlite":
        _check_file(parsed, make=make)
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
            fix="check that it is karat's own database and can be reached",
        ) from error
    except BaseException:
        store.dispose()
        raise
    return store


def _parsed(url: str, folder: Path | None) -> sa.URL:
    fix = "sqlite:///karat.db, or postgresql://user:password@host/database"
    if url.startswith("sqlite:"):  # not by SQLAlchemy: %, ? and # in a path are literal
        rest = url.removeprefix("sqlite:")
        if rest.startswith("//") and rest[2:3] not in {"", "/"}:
            raise UsageError("sqlite: needs three slashes, not two", fix="sqlite:///karat.db")
        path = rest.removeprefix("///")
        if path in {"", "//", ":memory:"}:
            raise UsageError("a store in memory would be lost when the command ends", fix=fix)
        return sa.URL.create("sqlite", database=str((folder or Path()) / path))
    if url.count("@") > 1:  # the rest of the password would be printed as the host
        raise UsageError("the URL of the store has more than one @", fix="write %40 for an @ in it")
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
    except (sa.exc.ArgumentError, ValueError):
        raise UsageError("the store is not a URL", fix=fix) from None
    if backend not in {"postgresql", "postgres"}:
        raise UsageError(f"a store in {backend} is not supported", fix=fix)
    return parsed.set(drivername="postgresql+psycopg")


def _check_file(url: sa.URL, *, make: bool) -> None:
    path = Path(str(url.database))
    if path.is_dir() or not path.parent.is_dir():
        wrong = f"{path} is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise UsageError(f"{path} cannot be a store: {wrong}")
    if not make and not path.is_file():
        raise UsageError(
            f"there is no store at {path}",
            fix="create one with karat init; in an existing workspace, with karat init --upgrade",
        )
    log = path.with_name(f"{path.name}-wal")  # may have content that is not in the file yet
    if make or path.stat().st_size or (log.is_file() and log.stat().st_size):
        return
    if path.with_name("karat.toml").is_file() and path.with_name("runs").is_dir():
        raise InputError(
            f"{path} is empty: its content is lost unless there is a backup",
            fix="restore a backup; karat init --upgrade creates a new one, without judgments",
        )
    _check(None, f"sqlite:///{path}")  # before SQLite writes to the empty file


def _engine(url: sa.URL) -> sa.Engine:
    # Cached plans of prepared statements, made when tables were empty, are slow when they are full.
    options = {} if url.get_backend_name() == "sqlite" else {"prepare_threshold": None}
    try:
        engine = sa.create_engine(url, connect_args=options)
    except ModuleNotFoundError:
        raise MissingExtra("psycopg", "postgres", "a store in PostgreSQL") from None
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _prepare)
        sa.event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # _begin sends BEGIN
    for pragma in (
        f"busy_timeout = {BUSY_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",  # commits survive a power failure
        "foreign_keys = ON",
        "recursive_triggers = ON",  # deletes of INSERT OR REPLACE fire triggers too
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("karat_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _version(connection: sa.Connection) -> str | None:
    """The version of the schema; None if there is none yet."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    versions = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalars()  # noqa: S608 - a constant
    version = versions.first()
    return None if version is None else str(version)


def _check(version: str | None, url: str) -> None:
    if version is None:
        raise UsageError(
            f"{url} has no store yet",
            fix="create one with karat init; in an existing workspace, with karat init --upgrade",
        )
    if version not in VERSIONS:
        raise UsageError(
            f"{url} is at version {version}, of a newer karat",
            fix="pip install --upgrade karat",
        )
    if version != VERSIONS[-1]:
        raise UsageError(
            f"{url} is at version {version}; this karat needs {VERSIONS[-1]}",
            fix="make a copy of it, then upgrade it with karat init --upgrade",
        )


def _make(connection: sa.Connection, url: str) -> None:
    if connection.dialect.name == "postgresql":  # on SQLite, BEGIN IMMEDIATE suffices
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
    version = _version(connection)
    if version == VERSIONS[-1]:
        return
    if version is not None and version not in VERSIONS:
        _check(version, url)
    if version is None:
        foreign = set(sa.inspect(connection).get_table_names()) & set(METADATA.tables)
        if foreign:
            raise InputError(
                f"{url} has tables of another program: {', '.join(sorted(foreign))}",
                fix="give karat a database of its own",
            )
    migrate(connection, VERSIONS[-1])


def migrate(connection: sa.Connection, version: str) -> None:
    """Migrate the schema to a version, in the open transaction of the connection."""
    from alembic import command  # 0.2 s, and only migrations need it
    from alembic.config import Config

    config = Config()
    place = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(place).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def _reason(error: sa.exc.DBAPIError) -> str:
    """The message of the driver in one line, without the statement and its values."""
    return " ".join(str(error.orig).split())


def _is_damage(error: sa.exc.DBAPIError) -> bool:
    message = str(error.orig).casefold()
    return any(sign in message for sign in _DAMAGED)


def _is_full(error: sa.exc.DBAPIError, url: str) -> bool:
    """Whether the disk is full; for its shared memory, SQLite reports an I/O error instead."""
    message = str(error.orig).casefold()
    if "disk is full" in message:
        return True
    free = shutil.disk_usage(Path(url.removeprefix("sqlite:///")).parent).free
    return "disk i/o error" in message and free < _NO_ROOM


def _full(url: str) -> KaratError:
    return KaratError(
        f"the disk of {url} is full, and SQLite needs space even to read",
        fix="free some space; no stored data is lost",
    )


def _damage(url: str, error: sa.exc.DBAPIError) -> InputError:
    return InputError(
        f"{url} is damaged, or not a database of karat: {_reason(error)}", fix=_BACKUP
    )
