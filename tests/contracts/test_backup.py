"""Backup and restore between engines: the same content, numbers that go on, rows that stay."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_POSTGRESQL

from karat.errors import KaratError, UsageError
from karat.store.sql import copying, people
from karat.store.sql.opening import Store, open_store
from karat.tables import Pairs
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.golden.pooling import enqueue
from karat.workflows.golden.sampling import put_queries
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.backup import back_up, restore
from karat.workflows.workspace.workspace import make_workspace, open_workspace

NOW = 1_800_000_000_000_000


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[object]:
    """Makes empty databases of either engine."""
    admin: sa.Engine | None = None
    made: list[str] = []

    def make(engine: str) -> str:
        nonlocal admin
        name = f"karat_test_{uuid.uuid4().hex}"
        if engine == "sqlite":
            return f"sqlite:///{tmp_path / name}.db"
        server: sa.URL = request.getfixturevalue("postgres")
        admin = admin or sa.create_engine(server, isolation_level="AUTOCOMMIT")
        with admin.connect() as c:
            c.exec_driver_sql(f"CREATE DATABASE {name}")
        made.append(name)
        return server.set(database=name).render_as_string(hide_password=False)

    yield make
    if admin is not None:
        with admin.connect() as c:
            for name in made:
                c.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        admin.dispose()


def content(store: Store) -> dict[str, list[dict[str, object]]]:
    with store.read() as c:
        return {name: list(copying.rows(c, name)) for name in copying.TABLES}


def lived_in(root: Path, url: str) -> None:
    """A workspace with a queue, judgments, an account with a password and a token."""
    variables = {"KARAT_STORE": url}
    make_workspace(root, now=NOW, name="shop", environment=variables)
    frame = pl.DataFrame({"query_id": ["q1"] * 4, "doc_id": ["a", "b", "é “c”", "d\u2028"]})
    asked = {"query_id": ["q1"], "text": ["red shoes"], "lang": ["de"], "price": [0.1]}
    with open_workspace(root, now=NOW, environment=variables) as opened:
        with opened.store.begin() as c:
            put_queries(c, opened.golden.id, pl.DataFrame(asked), NOW)
        enqueue(opened, Pairs(frame, "pool"), now=NOW)
        accounts = Accounts(opened.store, lambda: NOW)
        anna = accounts.accept(accounts.invite("anna", "owner").text, "a long password, truly")
        accounts.make_token(anna, "ci", ["read"])
        accounts.start_session(anna, "a browser")
        accounts.link(anna)
        accounts.invite("ben", "rater")
        judge(Judging(opened, "anna", lambda: NOW), 1.0)


def judge(judging: Judging, grade: float) -> None:
    card = judging.card()
    assert card is not None
    judging.record(card.claim.slot_id, card.token, grade, "as I see it")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("sqlite", "postgresql"),
        pytest.param("postgresql", "sqlite", marks=pytest.mark.deep),
        pytest.param("sqlite", "sqlite", marks=pytest.mark.deep),
        pytest.param("postgresql", "postgresql", marks=pytest.mark.deep),
    ],
)
def test_a_store_moves_whole_and_a_judge_goes_on(
    tmp_path: Path, database: object, before: str, after: str
) -> None:
    old, new = database(before), database(after)  # type: ignore[operator]
    lived_in(tmp_path / "shop", old)
    with open_workspace(tmp_path / "shop", now=NOW, environment={"KARAT_STORE": old}) as opened:
        back_up(opened, tmp_path / "shop.zip", now=NOW)
        was = content(opened.store)
    restore(tmp_path / "shop.zip", tmp_path / "new", store=new, environment={})
    written = (tmp_path / "new/karat.toml").read_text(encoding="utf-8")
    assert after in written
    with open_workspace(tmp_path / "new", now=NOW, environment={"KARAT_STORE": new}) as opened:
        assert content(opened.store) == was
        assert [len(was[name]) for name in ("judgment", "person", "api_token")] == [1, 1, 1]
        assert [row["name"] for row in was["invitation"]] == ["anna", "ben"]  # no one-time link
        with opened.store.read() as c:
            assert c.exec_driver_sql("SELECT count(*) FROM web_session").scalar_one() == 0
        # Numbering goes on, whoever made the numbers before.
        judge(Judging(opened, "anna", lambda: NOW), 2.0)
        judge(Judging(opened, "cleo", lambda: NOW), 3.0)
        accounts = Accounts(opened.store, lambda: NOW)
        assert accounts.sign_in("anna", "a long password, truly", "here").name == "anna"
        with opened.store.begin() as c:
            assert people.add(c, "dora", "rater", None, NOW).id == 2
        ids = [row["id"] for row in content(opened.store)["judgment"]]
        assert ids == [1, 2, 3]
        for verb in ("UPDATE judgment SET grade = 0", "DELETE FROM audit"):
            with pytest.raises(KaratError, match="append-only"), opened.store.begin() as c:
                c.exec_driver_sql(verb)


@pytest.mark.parametrize("engine", ["sqlite", ON_POSTGRESQL])
def test_a_store_that_is_not_empty_is_left_alone(
    tmp_path: Path, database: object, engine: str
) -> None:
    old, full = database("sqlite"), database(engine)  # type: ignore[operator]
    lived_in(tmp_path / "shop", old)
    lived_in(tmp_path / "other", full)
    with open_workspace(tmp_path / "shop", now=NOW, environment={"KARAT_STORE": old}) as opened:
        back_up(opened, tmp_path / "shop.tar.gz", now=NOW)
    kept = open_store(full)
    was = content(kept)
    with pytest.raises(UsageError, match=r"already|not empty"):
        restore(tmp_path / "shop.tar.gz", tmp_path / "new", store=full, environment={})
    assert content(kept) == was
    kept.dispose()
    assert not (tmp_path / "new").exists()
