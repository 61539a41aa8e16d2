"""An import and a rater at the same instant: each waits for the other, and nothing counts twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import polars as pl
import pytest
import sqlalchemy as sa
from tests.choosing import deep_but
from tests.contracts.conftest import ON_BOTH

from karat.errors import KaratError
from karat.store.sql import golden_sets, judgments, pairs, queries, queue
from karat.store.sql.opening import Store

NOW = 1_700_000_000_000_000
POOL = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"]})
Step = Callable[[sa.Connection], object]

# SQLite has one writer at a time.
ON_POSTGRESQL = pytest.mark.parametrize(
    "url", [pytest.param("sqlite", marks=pytest.mark.deep), "postgresql"], indirect=True
)


class Shop:
    """A pair that Ann holds or has rated, and what she and an import do at once."""

    def __init__(self, store: Store, *, rated: bool) -> None:
        self.store = store
        with store.begin() as c:
            self.id = golden_sets.make(
                c, "shop", scale=(0, 3), grades={}, salt="s", guideline="Judge.", now=NOW
            )
            queries.put(c, self.id, POOL.select("query_id").with_columns(text=pl.lit("shoes")), NOW)
            pairs.put(c, self.id, POOL, 2, NOW)
            claim = queue.claim(c, self.id, "ann", now=NOW)
            assert claim is not None
            self.slot_id = claim.slot_id
        if rated:
            with store.begin() as c:
                self.submit(c, 1)

    def submit(self, c: sa.Connection, grade: float = 2) -> None:
        """Ann rates the pair."""
        judgments.submit(c, self.id, self.slot_id, "ann", grade=grade, now=NOW)

    def undo(self, c: sa.Connection) -> None:
        """Ann takes her rating back."""
        judgments.undo(c, self.id, "ann", NOW)

    def record(self, c: sa.Connection, raters: tuple[str, ...] = ("ann", "ben")) -> None:
        """A file says that Ann, and others, graded the pair 3."""
        said = POOL.join(pl.DataFrame({"rater": raters}), how="cross").with_columns(
            grade=pl.lit(3.0), source=pl.lit("human"), time_us=pl.lit(NOW)
        )
        judgments.record(c, self.id, said, None)

    def counts(self) -> dict[str, list[float | None]]:
        """What counts now, by rater."""
        with self.store.read() as c:
            facts = judgments.current(c, self.id).frame
        return {
            str(rater): facts.filter(pl.col("rater") == rater)["grade"].to_list()
            for rater in facts["rater"].unique()
        }


def waits(store: Store, thread: threading.Thread) -> bool:
    """Whether the thread waits for a lock, once it does or has ended."""
    if store.engine.dialect.name == "sqlite":
        thread.join(0.1)  # SQLite tells nobody who waits
        return thread.is_alive()
    asked = sa.text(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN "
        "(SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
    )
    until = time.monotonic() + 20
    while thread.is_alive() and time.monotonic() < until:
        with store.engine.connect() as c:
            if c.execute(asked).scalar_one():
                return True
        time.sleep(0.01)
    return False


def interleave(store: Store, first: Step, second: Step) -> bool:
    """Do the second while the first is done and not yet kept; whether the second waited."""
    failed: list[BaseException] = []

    def other() -> None:
        try:
            with store.begin() as c:
                second(c)
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    thread = threading.Thread(target=other)
    with ExitStack() as stack:
        c = stack.enter_context(store.begin())
        first(c)
        thread.start()
        waited = waits(store, thread)
    thread.join(20)
    assert not thread.is_alive()
    assert not failed, failed
    return waited


@ON_BOTH
@pytest.mark.parametrize("import_first", [True, False])
@pytest.mark.parametrize("rated", deep_but([True], [True, False]))
def test_an_import_and_a_submission_at_once(
    store: Store, *, rated: bool, import_first: bool
) -> None:
    shop = Shop(store, rated=rated)
    steps: list[Step] = [shop.record, shop.submit] if import_first else [shop.submit, shop.record]
    assert interleave(store, *steps)
    assert shop.counts() == {"ann": [2.0 if import_first else 3.0], "ben": [3.0]}
    with store.begin() as c:
        shop.undo(c)
    assert shop.counts() == {"ben": [3.0]}, "the slot holds what counts"


@ON_BOTH
@pytest.mark.parametrize("import_first", deep_but([True], [True, False]))
def test_an_import_and_an_undo_at_once(store: Store, *, import_first: bool) -> None:
    shop = Shop(store, rated=True)
    steps: list[Step] = [shop.record, shop.undo] if import_first else [shop.undo, shop.record]
    assert interleave(store, *steps)
    expected = {"ben": [3.0]} if import_first else {"ann": [3.0], "ben": [3.0]}
    assert shop.counts() == expected


@ON_POSTGRESQL
def test_an_import_lets_raters_go_on_that_it_does_not_name(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    shop = Shop(store, rated=False)

    def of_others(c: sa.Connection) -> None:
        shop.record(c, ("ben", "cy"))

    assert not interleave(store, of_others, shop.submit)


@ON_POSTGRESQL
def test_an_import_of_thousands_of_raters_takes_few_locks(store: Store) -> None:
    """PostgreSQL has room for some 6,400 locks of all its connections together."""
    shop = Shop(store, rated=True)
    with store.begin() as c:
        shop.record(c, tuple(f"rater {n}" for n in range(3000)))
        if store.engine.dialect.name == "postgresql":
            asked = sa.text(
                "SELECT count(*) FROM pg_locks "
                "WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            )
            assert 1 <= c.execute(asked).scalar_one() <= 256


def test_an_import_tells_what_was_new_and_what_it_corrected(store: Store) -> None:
    shop = Shop(store, rated=True)
    said = POOL.join(pl.DataFrame({"rater": ["ann", "ben"]}), how="cross").with_columns(
        grade=pl.lit(3.0), source=pl.lit("human"), time_us=pl.lit(NOW)
    )
    with store.begin() as c:
        assert judgments.record(c, shop.id, said, None) == judgments.Recorded(1, 1)
        assert judgments.record(c, shop.id, said, None) == judgments.Recorded(0, 0)


@ON_BOTH
@pytest.mark.parametrize("import_first", deep_but([True], [True, False]))
def test_an_import_and_a_first_claim_at_once(store: Store, *, import_first: bool) -> None:
    """Ben held nothing when the import looked: his rating supersedes what it said all the same."""
    shop = Shop(store, rated=False)

    def rate(c: sa.Connection) -> None:
        claim = queue.claim(c, shop.id, "ben", now=NOW)
        if claim is not None:
            judgments.submit(c, shop.id, claim.slot_id, "ben", grade=0, now=NOW)

    steps: list[Step] = [shop.record, rate] if import_first else [rate, shop.record]
    assert interleave(store, *steps)
    assert shop.counts()["ben"] == [3.0]


@ON_POSTGRESQL
def test_raters_do_not_wait_for_each_other(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    shop = Shop(store, rated=False)
    waited = [
        interleave(
            store, shop.submit, lambda c, n=n: queue.claim(c, shop.id, f"rater {n}", now=NOW)
        )
        for n in range(20)
    ]
    assert not any(waited)


@ON_POSTGRESQL
def test_imports_that_name_many_raters_wait_in_one_order(store: Store) -> None:
    """Files that name forty raters in any order, and raters who claim meanwhile: no deadlock."""
    shop = Shop(store, rated=True)
    names = tuple(f"rater {n}" for n in range(40))
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                with store.begin() as c:
                    if number % 2:
                        shop.record(c, names[:: (-1 if turn % 2 else 1)])
                    else:
                        queue.claim(c, shop.id, names[(number * 7 + turn) % 40], now=NOW)
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed, failed
    assert {len(grades) for grades in shop.counts().values()} == {1}


def test_what_the_database_refuses_is_a_sentence(store: Store) -> None:
    with store.begin() as c:
        golden_sets.make(c, "shop", scale=(0, 3), grades={}, salt="s", guideline="", now=NOW)
    same = sa.text("INSERT INTO guideline SELECT * FROM guideline")
    with pytest.raises(KaratError, match="rejected a change, and") as told, store.begin() as c:
        c.execute(same)
    assert "DETAIL" not in str(told.value)
    assert isinstance(told.value.__cause__, sa.exc.IntegrityError)
