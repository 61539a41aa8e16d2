"""The try loop: variants side by side with grades, and tries as stored runs."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.searchable_shop import SQL, declare
from tests.web.conftest import NOW, make_shop

from karat.engines.search.engine import EngineError
from karat.engines.search.opening import open_search_engine
from karat.errors import InputError, UsageError
from karat.formats.own.engines import read_engine, with_template
from karat.tables.engines import EngineQuery, Variant
from karat.workflows.engines.tries import (
    engine_states,
    find_try,
    forget_try,
    list_tries,
    name_try,
    next_failing,
    numbers_of,
    run_all,
    try_query,
)
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.workspace.listed import list_comparisons, list_runs
from karat.workflows.workspace.stored_inputs import judged
from karat.workflows.workspace.workspace import Workspace, open_workspace

REVERSED = SQL.replace("-bm25", "bm25")


@pytest.fixture(scope="module")
def _shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_shop(tmp_path_factory.mktemp("tries") / "shop", {})
    declare(root)
    return root


@pytest.fixture
def opened(_shop: Path, tmp_path: Path) -> Iterator[Workspace]:
    root = Path(shutil.copytree(_shop, tmp_path / "shop"))
    with open_workspace(root, now=NOW, environment={}) as found:
        yield found


@pytest.fixture
def clock() -> Callable[[], int]:
    count = itertools.count(NOW + 1)
    return lambda: next(count)


def tried(opened: Workspace, *variants: Variant, asked: str = "red shoes", **more):
    return try_query(opened.workspace.root, variants, asked, opened=opened, **more)


def test_scores_are_explained_where_the_engine_says_what_they_are_made_of(opened):
    template = SQL.replace("SELECT id,", "SELECT id, length(title) AS letters,")
    found = tried(opened, Variant("shop", template=template), explain=True)
    hits = found.variants[0].hits
    assert [hit.parts for hit in hits] == [{"letters": float(len(hit.title))} for hit in hits]
    assert tried(opened, Variant("shop", template=template)).variants[0].hits[0].parts is None


def test_texts_that_the_golden_set_lacks_come_from_the_engine(opened):
    def texts(asked, **more):
        first, *_ = tried(opened, Variant("shop"), Variant("away"), asked=asked, **more).variants
        return {hit.doc_id: hit.text for hit in first.hits}

    assert texts("socks", texts=True) == {}
    with sqlite3.connect(opened.workspace.root / "docs.db") as database:
        database.execute("INSERT INTO docs VALUES ('d6', 'Socks', 'socks for red shoes')")
    database.close()
    assert texts("socks d1 wool") == {"d6": None, "d4": None, "d5": None}
    assert texts("socks d1 wool", texts=True) == {
        "d6": "socks for red shoes",
        "d4": None,  # the golden set has it
        "d5": None,
    }


def test_two_variants_are_side_by_side_with_grades_ranks_and_the_value(opened):
    found = tried(opened, Variant("shop"), Variant("shop", template=REVERSED))
    assert (found.query_id, found.measure) == ("q1", "nDCG@10")
    a, b = found.variants
    assert [hit.doc_id for hit in b.hits] == [hit.doc_id for hit in reversed(a.hits)]
    assert [hit.other_rank for hit in a.hits] == [4, 3, 2, 1]
    assert a.hits[0].title in {"Red shoes", "Hats, hoses, shoes"}
    # The grades and the value are those of the whole evaluation, not computed anew.
    qrels = judged(opened).qrels
    grades = {d: g for q, d, g in qrels.frame.select("query_id", "doc_id", "grade").iter_rows()
              if q == "q1"}  # fmt: skip
    assert {hit.doc_id: hit.grade for hit in a.hits} == {
        h.doc_id: grades.get(h.doc_id) for h in a.hits
    }
    run = {"q1": {hit.doc_id: hit.score for hit in a.hits}}
    whole = evaluate(qrels, run, ["nDCG@10"], per_query=True, bounds=True)
    [own] = [row for row in whole.per_query if row.query_id == "q1"]
    assert a.value == own.value
    assert a.low <= a.value < a.high
    assert a.judged == 3
    assert a.latency_us > 0
    assert b.template.startswith("edited ")


def test_an_error_is_in_the_column_of_its_variant_and_the_other_answers(opened):
    found = tried(opened, Variant("away"), Variant("shop"))
    assert found.variants[0].error.startswith("cannot reach 127.0.0.1")
    assert (found.variants[0].state, found.variants[0].hits) == ("failed", [])
    assert found.variants[1].hits
    assert not found.answered
    found = tried(opened, Variant("shop", params={"titel": "2"}))
    assert "no parameter 'titel'" in found.variants[0].error
    with pytest.raises(UsageError, match="titel"):
        tried(opened, Variant("shop", params={"titel": "2"}), strict=True)
    with pytest.raises(UsageError, match="no engine 'shops'"):
        tried(opened, Variant("shops"))


def test_a_query_is_found_by_text_and_id_and_another_is_not_judged(opened):
    assert tried(opened, Variant("titles"), asked="  RED shoes ").query_id == "q1"
    assert tried(opened, Variant("titles"), asked="q1").text == "red shoes"
    found = tried(opened, Variant("titles"), asked="shoes")
    assert (found.query_id, found.variants[0].state) == (None, "unjudged")
    assert [hit.score for hit in found.variants[0].hits] == [None, None]
    for asked, depth in (("  ", 10), ("red", 0), ("red", 101)):
        with pytest.raises(UsageError):
            tried(opened, Variant("titles"), asked=asked, depth=depth)


def test_tries_of_all_queries_are_runs_compared_with_the_last_named_and_forgotten(opened, clock):
    first = run_all(opened, Variant("shop"), person="ann", clock=clock)
    assert (first.name, first.before, first.comparison) == ("shop-try-1", None, None)
    assert first.p95_us
    second = run_all(
        opened, Variant("shop", REVERSED), person="ann", clock=clock, name="upside down"
    )
    assert [change.key for change in second.changes] == ["template"]
    results, comparison = numbers_of(opened, second)
    assert results.value("nDCG@10") == second.values["nDCG@10"] < first.values["nDCG@10"]
    assert (comparison.baseline, comparison.differences[0].candidate) == (first.name, "upside down")
    assert [change.key for change in comparison.changes] == ["template"]
    assert {row.name for row in list_runs(opened)[0]} >= {"shop-try-1", "upside down"}
    assert next_failing(opened, "shop")[0] in {"q1", "q2", "q3", "q4"}
    states = {state.name: state for state in engine_states(opened)}
    assert states["shop"].run_name == "upside down"
    assert states["shop"].version.startswith("sqlite ")
    assert states["titles"].run is None
    with pytest.raises(UsageError, match="already"):
        run_all(opened, Variant("shop"), person="ann", clock=clock, name="upside down")
    # The same answers again: one run with two names, and both tries are there.
    third = run_all(opened, Variant("shop", params={"title": "1"}), person="ann", clock=clock)
    assert (third.run, third.same_as) == (first.run, "shop-try-1")
    assert third.values == first.values
    name_try(opened, "shop-try-2", "best", person="ann", now=clock())
    name_try(opened, "shop-try-1", "first", person="ann", now=clock())
    assert [row.name for row in list_tries(opened)] == ["best", "upside down", "first"]
    assert find_try(opened, "best").same_as == "first"
    forget_try(opened, "first", person="ann", now=clock())  # its run is still "best"
    assert "best" in {name for row in list_runs(opened)[0] for name in row.names}
    forget_try(opened, "upside down", person="ann", now=clock())
    assert [row.name for row in list_tries(opened)] == ["best"]
    assert not list_comparisons(opened)[0]
    with pytest.raises(UsageError, match="no try"):
        forget_try(opened, "upside down", person="ann", now=clock())


def test_a_search_can_be_cancelled_and_stores_nothing(opened, clock):
    class Stop(Exception):
        pass

    def watch(stage: str, done: int, total: int) -> None:
        assert (stage, total) == ("asking", 4)
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        run_all(opened, Variant("shop"), person="ann", clock=clock, watch=watch)
    assert not list_tries(opened)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("VACUUM INTO 'stolen.db' /* {query} */", "authoriz"),
        ("ATTACH 'file:stolen.db?mode=rwc' AS other /* {query} */", "authoriz"),
        ("INSERT INTO docs VALUES ({query}, '', '')", "readonly"),
        ("SELECT hex(zeroblob(100000000)) AS id, {query}", "too big"),
        (
            (
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
                "SELECT count(*) AS id FROM r WHERE {query} != ''"
            ),
            "timeout after 0.3 s",
        ),
    ],
)
def test_an_edited_template_cannot_write_or_hang(opened, sql, says, monkeypatch):
    root = opened.workspace.root
    monkeypatch.chdir(root)
    toml = root / "karat.toml"
    toml.write_text(toml.read_text().replace('url = "docs.db"', 'url = "docs.db"\ntimeout = 0.3'))
    engine = open_search_engine(with_template(read_engine("shop", root), sql))
    with pytest.raises(EngineError, match=says):
        engine.search(EngineQuery("red"), 10)
    engine.close()
    assert not (root / "stolen.db").exists()
    with sqlite3.connect(root / "docs.db") as database:
        assert database.execute("SELECT count(*) FROM docs").fetchone() == (5,)


def test_only_templates_that_an_engine_has_can_be_edited(opened):
    root = opened.workspace.root
    with pytest.raises(UsageError, match="no template"):
        with_template(read_engine("titles", root), "x")
    with pytest.raises(InputError, match="not valid JSON"):
        with_template(read_engine("away", root), "{")
    with pytest.raises(UsageError, match="shards makes Solr call other addresses"):
        with_template(read_engine("away", root), '{"params": {"shards": "http://10.0.0.1/solr"}}')
    shop = read_engine("shop", root)
    assert with_template(shop, f" {SQL}\r\n") is shop
