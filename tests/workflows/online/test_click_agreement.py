"""Agreement of grades from clicks with people's, and opposing pairs in the queue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.workflows.offline.test_judgment_source import ORIGIN, grades

from karat.errors import InputError, UsageError
from karat.formats.own.click_grades import click_grades_file, write_click_grades
from karat.store.sql import audit, pairs
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.online.click_agreement import agree_clicks
from karat.workflows.workspace.workspace import Workspace

CLICKS = {"q1": {"a": 0.02, "b": 0.7}, "q2": {"a": 0.2, "z": 0.4}}
PEOPLE = {"q1": {"a": 2, "b": 3}, "q2": {"a": 1, "c": 0}}


def test_two_files(tmp_path: Path) -> None:
    write_click_grades(grades(CLICKS), ORIGIN, tmp_path / "g.parquet")
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"], "kind": ["x", "y"]})
    found = agree_clicks(
        clicks=tmp_path / "g.parquet", qrels=PEOPLE, queries=queries, by="kind", weights="none"
    )
    # People 2 3 1, clicks 0 3 1.
    assert (found.all.kappa.pairs, found.only_clicks, found.only_people) == (3, 1, 1)
    assert [(row.text, row.doc_id, row.clicks) for row in found.opposing] == [("one", "a", "lower")]
    assert [row.value for row in found.classes] == ["x", "y"]
    # Relevant from 3 on: people's 2 of a is not, and clicks agree.
    strict = agree_clicks(clicks=tmp_path / "g.parquet", qrels=PEOPLE, rel=3.0)
    assert strict.opposing == []
    for said, more in (
        ("no judgments of people", {"qrels": None}),
        ("no attribute 'kid'", {"by": "kid"}),
        ("unknown kappa weighting", {"weights": "cubic"}),
        ("a queue belongs to a workspace", {"queue": True}),
    ):
        given = {"qrels": PEOPLE, "queries": queries} | more
        with pytest.raises(UsageError, match=said):
            agree_clicks(clicks=tmp_path / "g.parquet", **given)
    with pytest.raises(UsageError, match="no grades from clicks were given"):
        agree_clicks()
    with pytest.raises(InputError, match="there is no such file"):
        agree_clicks(clicks=tmp_path / "none.parquet", qrels=PEOPLE)


def test_a_workspace_and_its_queue(shop: Workspace, tick: Callable[[], int]) -> None:
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"]})
    rows = [(query, doc, float(g)) for query, docs in PEOPLE.items() for doc, g in docs.items()]
    facts = pl.DataFrame(rows, ["query_id", "doc_id", "grade"], orient="row").with_columns(
        rater=pl.lit("ann"), reason=pl.lit(None, pl.String)
    )
    held = Exchange("csv", queries=queries, judgments=facts)
    import_exchange(shop, held, file="f", sha256="0", now=tick())
    with pytest.raises(UsageError, match="the golden set shop has no grades from clicks"):
        agree_clicks(shop, now=tick())
    write_click_grades(grades(CLICKS), ORIGIN, click_grades_file(shop.workspace.root, "shop"))
    assert agree_clicks(shop, now=tick()).queued is None
    found = agree_clicks(shop, queue=True, person="egon", now=tick())
    assert (found.oppose, found.queued, found.weights) == (1, 1, "quadratic")
    with shop.store.read() as connection:
        [pair] = pairs.frame(connection, shop.golden.id).rows(named=True)
        [row] = audit.frame(connection).filter(person="egon").rows(named=True)
    assert (pair["query_id"], pair["doc_id"], pair["chosen_by"]) == ("q1", "a", "clicks disagree")
    assert pair["open"] == 1  # one more rater, as the imported grade of ann has no slot
    assert row["action"] == "queue opposing clicks"
