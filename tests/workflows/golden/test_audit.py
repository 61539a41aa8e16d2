"""Noted: what people do from the browser is done as the command line does it, with their name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import InputError, KaratError, UsageError
from karat.store.sql import audit, judgments
from karat.tables import Pairs
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.golden.agreement import put_before_adjudicator
from karat.workflows.golden.editions import freeze, list_editions
from karat.workflows.golden.import_ import file_name, import_exchange, import_from, import_upload
from karat.workflows.golden.pooling import enqueue
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]


def noted(opened: Workspace) -> list[tuple[str, str]]:
    """Who did what, the first first."""
    with opened.store.read() as connection:
        return audit.frame(connection).select("person", "action").rows()[::-1]


@pytest.fixture
def judged(shop: Workspace, tick: Tick) -> Workspace:
    """Two pairs that ann and ben see differently."""
    rows = [("q1", d, r, g, None) for d in "ab" for r, g in (("ann", 0.0), ("ben", 3.0))]
    names = ["query_id", "doc_id", "rater", "grade", "reason"]
    facts = pl.DataFrame(rows, schema=names, orient="row", schema_overrides={"reason": pl.String})
    found = Exchange("csv", queries=pl.DataFrame({"query_id": ["q1"]}), judgments=facts)
    import_exchange(shop, found, file="f", sha256="", now=tick())
    return shop


def test_only_disagreements_go_before_an_adjudicator(judged: Workspace, tick: Tick) -> None:
    def put(*chosen: tuple[str, str]) -> int:
        return put_before_adjudicator(judged, chosen, person="eve", now=tick())

    assert put(("q1", "none"), ("q2", "a")) == 0
    assert noted(judged) == []
    assert put(("q1", "a"), ("q1", "a")) == 1
    assert put(("q1", "a")) == 0
    assert put_before_adjudicator(judged, None, person="egon", now=tick()) == 1
    assert noted(judged) == [("eve", "ask adjudicator"), ("egon", "ask adjudicator")]
    with pytest.raises(UsageError, match="no pair is selected"):
        put()
    with pytest.raises(UsageError, match="disagreement 'people'"):
        put_before_adjudicator(judged, None, person="eve", now=tick(), between="people")


def test_editions_are_noted_when_they_are_made(judged: Workspace, tick: Tick) -> None:
    with pytest.raises(UsageError):
        freeze(judged, "now", person="eve", now=tick())
    assert noted(judged) == []
    assert freeze(judged, "first", person="eve", now=tick()).name == "first"
    assert noted(judged) == [("eve", "freeze edition")]


def test_an_edition_that_cannot_be_noted_is_not_made(
    judged: Workspace, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise KaratError("the store did not answer")

    with monkeypatch.context() as late:
        late.setattr(audit, "note", refused)
        with pytest.raises(KaratError, match="did not answer"):
            freeze(judged, "first", person="eve", now=tick())
    assert list_editions(judged) == []
    assert freeze(judged, "first", person="eve", now=tick()).name == "first"


def test_an_upload_goes_by_the_name_its_sender_knows(
    judged: Workspace, tick: Tick, tmp_path: Path
) -> None:
    path = tmp_path / "upload.csv"
    path.write_text("query_id,doc_id,grade\nq1,c,9\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        import_upload(judged, path, "their file.csv", person="eve", now=tick())
    assert raised.value.file == "their file.csv"
    assert str(tmp_path) not in str(raised.value)
    assert noted(judged) == []
    path.write_text("query_id,doc_id,grade\nq1,c,2\n", encoding="utf-8")
    done = import_upload(judged, path, "their file.csv", person="eve", now=tick(), rater="zoe")
    assert done.judgments == 1
    assert noted(judged) == [("eve", "import file")]


@FEW
@given(st.text(max_size=300))
def test_names_of_files_are_safe(called: str) -> None:
    name = file_name(called)
    assert name == Path(name).name
    assert name not in (".", "..", "")
    assert not name.startswith((".", "-"))
    assert len(name.encode()) <= 120


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("ratings.csv.gz", "ratings.csv.gz"),
        ("C:\\x\\../my ratings.csv", "my_ratings.csv"),
        ("../../etc/passwd", "passwd"),
        (None, "upload"),
        ("..", "upload"),
        ("a" * 300 + ".csv", "a" * 116 + ".csv"),
    ],
)
def test_endings_of_names_stay(called: str | None, name: str) -> None:
    assert file_name(called) == name


def test_nobody_corrects_by_a_file_what_another_judged_here(
    judged: Workspace, tick: Tick, tmp_path: Path
) -> None:
    pool = Pairs(pl.DataFrame({"query_id": ["q1"] * 2, "doc_id": ["c", "d"]}), "pool")
    enqueue(judged, pool, now=tick())
    rita = Judging(judged, "rita", tick)
    for _ in range(2):
        card = rita.card()
        assert card is not None
        rita.submit(card, 1)
    path = tmp_path / "forged.csv"
    rows = "".join(f"q1,{d},3,rita\n" for d in "cd")
    path.write_text("query_id,doc_id,grade,rater\nq1,a,2,ann\n" + rows, encoding="utf-8")

    def grades(rater: str) -> list[float]:
        with judged.store.read() as c:
            frame = judgments.current(c, judged.golden.id).frame
        return frame.filter(pl.col("rater") == rater).sort("doc_id")["grade"].to_list()

    with pytest.raises(InputError, match="correct 2 judgments that 'rita' gave here") as raised:
        import_upload(judged, path, "forged.csv", person="eve", now=tick())
    assert (raised.value.file, raised.value.query) == ("forged.csv", "q1")
    assert (grades("rita"), grades("ann")) == ([1.0, 1.0], [0.0, 0.0]), "all of it or nothing"
    assert noted(judged) == []
    # What she said herself says nothing new; her own file corrects it.
    path.write_text("query_id,doc_id,grade,rater\nq1,c,1,rita\n", encoding="utf-8")
    assert import_upload(judged, path, "same.csv", person="eve", now=tick()).corrected == 0
    path.write_text("query_id,doc_id,grade,rater\nq1,c,2,rita\n", encoding="utf-8")
    assert import_upload(judged, path, "own.csv", person="rita", now=tick()).corrected == 1
    assert grades("rita") == [2.0, 1.0]
    # The correction fills her slot, and is hers as much as what it corrects.
    path.write_text("query_id,doc_id,grade,rater\nq1,c,0,rita\n", encoding="utf-8")
    with pytest.raises(InputError, match="correct a judgment that 'rita' gave here"):
        import_upload(judged, path, "forged.csv", person="eve", now=tick())
    # What a file brought, a file may correct; and whoever holds the store may correct all.
    path.write_text("query_id,doc_id,grade,rater\nq1,a,2,ann\nq1,b,1,ben\n", encoding="utf-8")
    assert import_upload(judged, path, "more.csv", person="eve", now=tick()).corrected == 2
    path.write_text("query_id,doc_id,grade,rater\nq1,c,0,rita\n", encoding="utf-8")
    assert import_from(judged, path, now=tick()).corrected == 1
    with judged.store.read() as c:
        about = audit.frame(c)["about"].to_list()
    assert "raters ann 1, ben 1" in about[0]
    assert "raters rita 1" in about[1]
