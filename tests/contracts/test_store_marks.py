"""Marks in the store: in the order of what happened, each once, gone when taken away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.errors import KaratError
from karat.store.sql import annotations as marks
from karat.store.sql.opening import Store

NOW = 1_700_000_000_000_000


@pytest.fixture
def c(store: Store) -> Iterator[sa.Connection]:
    with store.begin() as connection:
        yield connection


def added(c: sa.Connection, text: str, time_us: int = NOW, by: str = "ann") -> int:
    return marks.add(c, time_us=time_us, kind="release", text=text, made_by=by, now=NOW)


@ON_BOTH
def test_marks_stand_in_the_order_of_what_happened(c: sa.Connection) -> None:
    assert marks.frame(c).height == 0
    late, early = added(c, "late", NOW + 1), added(c, "early", 0)
    found = marks.frame(c)
    assert found["id"].to_list() == [early, late]
    assert dict(found.schema) == marks.SCHEMA
    assert found.row(1) == (late, NOW + 1, "release", "late", "ann", NOW)


def test_the_same_of_the_same_person_is_there_once(c: sa.Connection) -> None:
    first = added(c, "out")
    assert added(c, "out") == first
    assert len({first, added(c, "out", by="ben"), added(c, "out", NOW + 1), added(c, "in")}) == 4


def test_a_mark_goes_once(c: sa.Connection) -> None:
    made, other = added(c, "out"), added(c, "in")
    assert marks.remove(c, made)
    assert not marks.remove(c, made)
    assert marks.frame(c)["id"].to_list() == [other]


def test_an_unknown_kind_is_refused(store: Store) -> None:
    with pytest.raises(KaratError, match="rejected a change"), store.begin() as c:
        marks.add(c, time_us=NOW, kind="party", text="x", made_by="ann", now=NOW)
    with store.read() as c:
        assert marks.frame(c).height == 0
