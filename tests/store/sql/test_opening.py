"""Opening a store: what is refused, and what SQLite is told."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from karat.errors import InputError, KaratError, UsageError
from karat.store.sql import opening
from karat.store.sql.opening import Store, open_store


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("karat.db", "not a URL"),
        ("", "not a URL"),
        ("mysql://host/database", "mysql is not supported"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:///", "in memory"),
        ("sqlite://karat.db", "three slashes, not two"),
        ("sqlite://folder/karat.db", "three slashes, not two"),
        ("sqlite:///no/such/folder/karat.db", "no folder"),
        ("sqlite:///none.db", "no store at"),
    ],
)
def test_what_is_no_store_is_refused(tmp_path: Path, url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        open_store(url, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_path_is_relative_to_the_workspace(tmp_path: Path) -> None:
    store = open_store("sqlite:///a b%20#é?.db", make=True, folder=tmp_path)
    store.dispose()
    assert (tmp_path / "a b%20#é?.db").is_file()
    open_store("sqlite:///a b%20#é?.db", folder=tmp_path).dispose()
    open_store(store.url).dispose()


@pytest.mark.parametrize("make", [False, True])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, *, make: bool) -> None:
    path = tmp_path / "karat.db"
    path.write_bytes(b"query,doc\n" * 100)
    with pytest.raises(InputError, match=r"is damaged, or not .*: file is not a database"):
        open_store(f"sqlite:///{path}", make=make)
    assert path.read_bytes() == b"query,doc\n" * 100


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@127.0.0.1:1/karat",
        "postgresql://ann@127.0.0.1:1/karat?password=secret",
        "postgresql:///karat?host=127.0.0.1&port=1&user=ann&password=secret",
    ],
)
def test_a_server_that_is_not_there_is_said_without_the_password(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match="/karat cannot be opened") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:p@secret@127.0.0.1:1/karat",
        "postgresql://ann:p@s/secret@127.0.0.1:1/karat",
        "postgresql://ann:p@s?secret@127.0.0.1:1/karat",
        "postgresql://ann@corp:secret@127.0.0.1:1/karat",
    ],
)
def test_a_password_with_an_at_is_not_taken_for_the_host(url: str) -> None:
    with pytest.raises(UsageError, match="more than one @") as refused:
        open_store(url)
    assert "%40" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_sqlite_keeps_what_was_acknowledged(
    tmp_path: Path, quick_sqlite: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_prepare", quick_sqlite)  # as it is outside of tests
    store = open_store("sqlite:///karat.db", make=True, folder=tmp_path)
    with store.read() as c:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        said = [c.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names]
    assert said == ["wal", 2, 1, opening.BUSY_MS]  # 2 is FULL
    store.dispose()


def test_a_writer_waits_for_another(tmp_path: Path) -> None:
    store = open_store("sqlite:///karat.db", make=True, folder=tmp_path)
    insert = sa.text("INSERT INTO golden_set VALUES (:id, :id, 0, 1, '[]', 1, 0, '', 0)")
    begun = threading.Event()

    def write() -> None:
        begun.set()
        with store.begin() as c:
            c.execute(insert, {"id": 2})

    other = threading.Thread(target=write)
    with store.begin() as c:
        other.start()
        begun.wait()
        c.execute(insert, {"id": 1})
    other.join()
    with store.read() as c:
        assert c.exec_driver_sql("SELECT count(*) FROM golden_set").scalar_one() == 2
    store.dispose()


def test_a_writer_who_waited_too_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_MS", 20)
    store = open_store("sqlite:///karat.db", make=True, folder=tmp_path)
    with store.begin(), pytest.raises(KaratError, match="database is locked"), store.begin():
        pass
    store.dispose()


@contextmanager
def disposed(store: Store) -> Iterator[Store]:
    """The store, its connections closed when the block ends."""
    try:
        yield store
    finally:
        store.dispose()


@pytest.mark.parametrize("left", [1000, 5000, 20_000])
def test_a_store_that_was_cut_off_is_damaged(tmp_path: Path, left: int) -> None:
    path = tmp_path / "karat.db"
    open_store(f"sqlite:///{path}", make=True).dispose()
    path.write_bytes(path.read_bytes()[:left])

    def read_all() -> None:
        with disposed(open_store(f"sqlite:///{path}")) as store, store.read() as c:
            for table in sa.inspect(c).get_table_names():
                c.execute(sa.select(sa.table(table, sa.column("*", is_literal=True)))).all()

    with pytest.raises(InputError, match="damaged") as told:
        read_all()
    assert "backup" in str(told.value)
    assert "report a bug" not in str(told.value)


def test_an_empty_file_is_told_from_one_that_was_never_filled(tmp_path: Path) -> None:
    path = tmp_path / "karat.db"
    path.touch()
    for _ in range(2):  # the same again: opening it writes nothing
        with pytest.raises(UsageError, match="has no store yet"):
            open_store(f"sqlite:///{path}")
    (tmp_path / "karat.toml").touch()
    (tmp_path / "runs").mkdir()
    for _ in range(2):
        with pytest.raises(
            InputError, match=r"is empty: .* is lost unless there is a backup"
        ) as told:
            open_store(f"sqlite:///{path}")
        assert "karat init --upgrade creates a new one" in str(told.value.fix)
    open_store(f"sqlite:///{path}", make=True).dispose()
    open_store(f"sqlite:///{path}").dispose()


def test_a_full_disk_is_called_one(tmp_path: Path) -> None:
    store = open_store("sqlite:///karat.db", make=True, folder=tmp_path)

    def fill() -> None:
        with store.begin() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1")  # what SQLite does at ENOSPC
            connection.exec_driver_sql("CREATE TABLE large (text)")
            connection.exec_driver_sql("INSERT INTO large VALUES (zeroblob(10000000))")

    with pytest.raises(KaratError, match=r"the disk of .*karat\.db is full") as error:
        fill()
    assert "fix: free some space" in str(error.value)
    store.dispose()


def test_a_full_disk_is_called_one_by_who_only_reads(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if (
        sys.platform != "linux"
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("may mount no file system")
    try:
        open_store("sqlite:///karat.db", make=True, folder=place).dispose()
        with contextlib.suppress(OSError), (place / "rest").open("wb", buffering=0) as rest:
            while True:
                rest.write(bytes(1024))
        with pytest.raises(KaratError, match="is full") as error:
            open_store("sqlite:///karat.db", folder=place)
        assert error.value.exit_code == 4
        (place / "rest").unlink()
        open_store("sqlite:///karat.db", folder=place).dispose()
    finally:
        subprocess.run(["umount", str(place)], check=True)
