"""What contracts are held to: stores (SQLite, and a PostgreSQL of our own), and engines."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.store.sql.opening import Store, open_store

Empty = Callable[[], str]
"""Makes an empty database and returns its URL."""


ON_POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.deep)
"""A database takes a while to make: a build asks PostgreSQL what ON_BOTH marks."""
ON_BOTH = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
EMPTY_ON_BOTH = pytest.mark.parametrize("empty", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", ON_POSTGRESQL])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Empty]:
    """Makes databases without a table in them, and takes them away afterwards."""
    if request.param == "sqlite":
        yield lambda: f"sqlite:///{tmp_path / uuid.uuid4().hex}.db"
        return
    yield request.getfixturevalue("database")


@pytest.fixture(params=["sqlite", ON_POSTGRESQL])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new store."""
    if request.param == "sqlite":
        copy: Callable[[Path], str] = request.getfixturevalue("new_sqlite")
        return copy(tmp_path / f"{uuid.uuid4().hex}.db")
    copied: str = request.getfixturevalue("database")(request.getfixturevalue("new_store"))
    return copied


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A new store."""
    opened = open_store(url)
    yield opened
    opened.dispose()


@pytest.fixture(scope="module")
def stored() -> ModuleType:
    """The module that makes event stores by hand."""
    path = Path(__file__).parents[1] / "online" / "golden_log" / "stored.py"
    spec = importlib.util.spec_from_file_location("golden_log_stored", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def spark() -> Iterator[None]:
    """A Spark of two cores with real shuffles, once for all tests; without Java there is none."""
    if shutil.which("java") is None:
        pytest.skip("needs Java, for Spark")
    sql = pytest.importorskip("pyspark.sql", reason="needs the package pyspark")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")  # it would fold both partitions into one
        # Compiling takes longer than running.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        # Compiled but lightly: each plan runs once.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.warehouse.dir", "/nowhere")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.sparkContext.pythonExec = sys.executable  # of the executors: any python3, otherwise
    yield
    session.stop()


ON_SPARK = pytest.param("spark", marks=pytest.mark.deep)
"""Java takes seconds to start, and Spark as many for each plan."""


MOSTLY_ON_POLARS = pytest.mark.parametrize(
    "engine", ["polars", pytest.param("duckdb", marks=pytest.mark.deep), ON_SPARK], indirect=True
)
"""DuckDB takes a second or more for each plan: a build asks it what others do not show."""


@pytest.fixture(params=["polars", "duckdb", ON_SPARK])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine, opened."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    elif request.param == "duckdb":
        pytest.importorskip("duckdb", reason="needs the package duckdb")
    with open_engine(request.param) as opened:
        yield opened
