"""The stores that every contract of the store is held to: SQLite, and a PostgreSQL of our own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from karat.store.opening import Store, open_store

Empty = Callable[[], str]
"""Makes an empty database and returns its URL."""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Empty]:
    """Makes databases without a table in them, and takes them away afterwards."""
    if request.param == "sqlite":
        yield lambda: f"sqlite:///{tmp_path / uuid.uuid4().hex}.db"
        return
    yield request.getfixturevalue("database")


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
