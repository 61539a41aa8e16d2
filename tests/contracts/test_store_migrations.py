"""How a store comes to be, and how one of an older karat is brought up to date."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from tests.choosing import deep_but
from tests.contracts.conftest import EMPTY_ON_BOTH, ON_BOTH

from karat.errors import InputError, KaratError, UsageError
from karat.store.sql import golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import VERSION_TABLE, VERSIONS, Store, migrate, open_store
from karat.store.sql.schema import METADATA

NOW = 1_700_000_000_000_000
OLD_ROWS = """
INSERT INTO golden_set (name, scale_low, scale_high, grades, raters, repeats, salt, created_us)
    VALUES ('old', 0, 3, '[]', 2, 0, 's', 1);
INSERT INTO guideline VALUES (1, 1, 'Judge.', '0', 1);
INSERT INTO query
    (golden_set_id, query_id, text, no_answer, attributes, shuffle, added_us)
    VALUES (1, 'q', 'shoes', '0', '{}', 5, 1);
INSERT INTO pair (golden_set_id, query_id, doc_id, priority, shuffle, added_us)
    VALUES (1, 'q', 'd', 1, 7, 1);
INSERT INTO judgment
    (golden_set_id, query_id, doc_id, grade, state, rater, source, kind, time_us)
    VALUES (1, 'q', 'd', 1, 'graded', 'ann', 'human', 'rating', 2);
INSERT INTO judgment
    (golden_set_id, query_id, doc_id, grade, state, rater, source, kind, time_us, supersedes)
    VALUES (1, 'q', 'd', 3, 'graded', 'ann', 'human', 'rating', 3, 1);
INSERT INTO slot (pair_id, kind, place, rater, leased_until_us, judgment_id)
    VALUES (1, 'rating', 1, 'ann', 9, 2);
INSERT INTO slot (pair_id, kind, place) VALUES (1, 'rating', 2)
"""


def raw(url: str, *statements: str) -> list[Any]:
    """Run statements past karat; what the last returned."""
    engine = sa.create_engine(sa.make_url(url))
    with engine.begin() as c:
        done = [c.exec_driver_sql(each) for each in statements]
        rows = list(done[-1]) if done[-1].returns_rows else []
    engine.dispose()
    return rows


def old_store(url: str, version: str) -> None:
    """A store as an older karat left it, with two judgments, the second a correction."""
    engine = sa.create_engine(sa.make_url(url))
    with engine.begin() as c:
        migrate(c, version)
        for each in OLD_ROWS.split(";"):
            c.exec_driver_sql(each)
    engine.dispose()


def version(url: str) -> str:
    (row,) = raw(url, f"SELECT version_num FROM {VERSION_TABLE}")
    return str(row[0])


@ON_BOTH
def test_the_migrations_make_just_the_tables_of_the_schema(store: Store) -> None:
    with store.read() as c:
        context = MigrationContext.configure(c, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        inspected = sa.inspect(c)
        for table in METADATA.tables.values():
            checks = {str(each.name) for each in table.constraints if _checks(each)}
            made = {str(each["name"]) for each in inspected.get_check_constraints(table.name)}
            assert made == checks, table.name


def _checks(constraint: sa.Constraint) -> bool:
    return isinstance(constraint, sa.CheckConstraint)


@EMPTY_ON_BOTH
def test_an_empty_database_becomes_a_store(empty: Any) -> None:
    url = empty()
    with pytest.raises(UsageError, match="karat init"):
        open_store(url)
    open_store(url, make=True).dispose()
    assert version(url) == VERSIONS[-1]
    open_store(url, make=True).dispose()  # again, and nothing happens
    open_store(url).dispose()


@pytest.mark.parametrize("old", deep_but(["0001", VERSIONS[-2]], VERSIONS[:-1]))
def test_an_older_store_is_refused_and_then_brought_up_to_date(empty: Any, old: str) -> None:
    url = empty()
    old_store(url, old)
    with pytest.raises(UsageError, match=r"karat init --upgrade"):
        open_store(url)
    assert version(url) == old
    store = open_store(url, make=True)
    with store.read() as c:
        context = MigrationContext.configure(c, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
    with store.begin() as c:
        found = golden_sets.find(c)
        assert (found.name, found.scale) == ("old", (0, 3))
        judged = judgments.current(c, found.id)
        assert judged.frame["grade"].to_list() == [3]
        claim = queue.claim(c, found.id, "ben", now=NOW)
        assert claim is not None
        new = judgments.submit(c, found.id, claim.slot_id, "ben", grade=2, now=NOW, token="t")
        assert new == 3
    with pytest.raises(KaratError, match="append-only"), store.begin() as c:
        c.exec_driver_sql("DELETE FROM judgment")
    store.dispose()


def test_a_newer_store_is_refused_whatever_is_asked(empty: Any) -> None:
    url = empty()
    open_store(url, make=True).dispose()
    raw(url, f"UPDATE {VERSION_TABLE} SET version_num = '0999'")
    for make in (False, True):
        with pytest.raises(UsageError, match="pip install --upgrade"):
            open_store(url, make=make)


@EMPTY_ON_BOTH
def test_tables_of_another_program_are_left_alone(empty: Any) -> None:
    url = empty()
    raw(url, "CREATE TABLE query (id integer)", "INSERT INTO query VALUES (1)")
    with pytest.raises(InputError, match="another program: query"):
        open_store(url, make=True)
    assert raw(url, "SELECT id FROM query") == [(1,)]


def test_a_migration_that_fails_leaves_the_store_as_it_was(empty: Any) -> None:
    url = empty()
    old_store(url, "0001")
    raw(url, "CREATE INDEX ix_judgment_token ON judgment (rater)")  # 0002 stumbles over it
    with pytest.raises(InputError, match="cannot be opened"):
        open_store(url, make=True)
    assert version(url) == "0001"
    raw(url, "DROP INDEX ix_judgment_token")
    store = open_store(url, make=True)
    with store.read() as c:
        assert len(judgments.current(c, 1)) == 1
    store.dispose()


KILLED = """
import os, signal, sys
import sqlalchemy as sa
from karat.store.sql.opening import open_store
url, at = sys.argv[1], int(sys.argv[2])
seen = 0
@sa.event.listens_for(sa.Engine, "after_cursor_execute")
def after(connection, cursor, statement, *_):
    global seen
    if statement.lstrip().upper().startswith(("CREATE", "ALTER", "INSERT", "UPDATE", "DROP")):
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
open_store(url, make=True)
"""


@pytest.mark.deep  # one that fails: above
@pytest.mark.parametrize("at", [1, 12])
def test_an_upgrade_that_is_killed_midway_changes_nothing(empty: Any, at: int) -> None:
    url = empty()
    old_store(url, "0001")
    done = subprocess.run([sys.executable, "-c", KILLED, url, str(at)], check=False)
    assert done.returncode == -signal.SIGKILL, "there are fewer statements than that"
    assert version(url) == "0001"
    store = open_store(url, make=True)
    with store.read() as c:
        assert judgments.current(c, 1).frame["grade"].to_list() == [3]
        context = MigrationContext.configure(c, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
    store.dispose()


@EMPTY_ON_BOTH
def test_two_who_make_one_store_at_once_make_one(empty: Any) -> None:
    url = empty()
    failed: list[BaseException] = []

    def make() -> None:
        try:
            open_store(url, make=True).dispose()
        except BaseException as error:  # noqa: BLE001 - shown below
            failed.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert version(url) == VERSIONS[-1]


@EMPTY_ON_BOTH
def test_a_migrated_store_takes_a_pool(empty: Any) -> None:
    url = empty()
    old_store(url, "0001")
    store = open_store(url, make=True)
    with store.begin() as c:
        queries.put(c, 1, pl.DataFrame({"query_id": ["r"], "text": ["hat"]}), NOW)
        frame = pl.DataFrame({"query_id": ["q", "r"], "doc_id": ["d", "d"]})
        assert pairs.put(c, 1, frame, 2, NOW).added == 1
        assert pairs.frame(c, 1)["open"].to_list() == [1, 2]
    store.dispose()


@EMPTY_ON_BOTH
def test_what_older_stores_did_not_note_is_worked_out(empty: Any) -> None:
    url = empty()
    old_store(url, "0002")
    raw(
        url,
        "INSERT INTO pair (golden_set_id, query_id, doc_id, priority, shuffle, added_us) "
        "VALUES (1, 'q', 'e', 1, 8, 1)",
        "INSERT INTO slot (pair_id, kind, place) VALUES (1, 'adjudication', 1)",
        "INSERT INTO deferred VALUES (1, 'cat', 0), (2, 'cat', 0)",
    )
    open_store(url, make=True).dispose()
    saw = raw(url, "SELECT saw_votes FROM deferred ORDER BY pair_id")
    assert [bool(row[0]) for row in saw] == [True, False], "the second has nothing to settle"
    first = raw(url, "SELECT judgment_id, first_judgment FROM slot ORDER BY id")
    # Of its two judgments the second corrects the first; the other slots are empty.
    assert [tuple(row) for row in first] == [(2, 1), (None, None), (None, None)]


@pytest.mark.parametrize("old", [None, "0004"])
def test_the_number_of_what_was_removed_never_comes_back(empty: Any, old: str | None) -> None:
    url = empty()
    if old is not None:
        old_store(url, old)
    open_store(url, make=True).dispose()
    columns = "time_us, kind, text, made_by, created_us"
    for n in (1, 2, 3):
        raw(url, f"INSERT INTO mark ({columns}) VALUES (1, 'other', 't', 'a', 1)")
        assert raw(url, "SELECT id FROM mark") == [(n,)]
        raw(url, "DELETE FROM mark")
