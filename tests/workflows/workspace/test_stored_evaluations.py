"""Kept evaluations: the numbers of ``evaluate`` until somebody judges; runs that are brought."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.errors import InputError, UsageError
from karat.store.sql import queries, runs
from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange
from karat.tables.workspace import RunRow
from karat.workflows.golden.editions import freeze
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.judging.in_place import rate
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.workspace import stored_evaluations
from karat.workflows.workspace.stored_evaluations import (
    Rules,
    compute,
    in_short,
    kept,
    key,
    known,
    side,
)
from karat.workflows.workspace.stored_inputs import judged
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace

NOW = 1_800_000_000_000_000


@pytest.fixture
def row(shop: Workspace) -> RunRow:
    """A run of four queries: answered, badly, with nothing, not at all; and one nobody judged."""
    asked = pl.DataFrame(
        {
            "query_id": ["q1", "q2", "q3", "q4", "q5"],
            "text": ["red shoes", "hose", None, "hat", "x"],
            "lang": ["de", "en", "de", "en", "en"],
        }
    )
    facts = [("q1", "a", 3.0), ("q1", "b", 0.0), ("q2", "a", 0.0), ("q2", "b", 2.0)]
    facts += [("q3", "a", 1.0), ("q4", "a", 1.0)]
    said = pl.DataFrame(facts, schema=["query_id", "doc_id", "grade"], orient="row")
    said = said.with_columns(rater=pl.lit(None, pl.String), reason=pl.lit(None, pl.String))
    found = Exchange("csv", queries=asked, judgments=said)
    import_exchange(shop, found, file="f", sha256="0" * 64, now=NOW)
    run = Run.from_dict(
        {
            "q1": {"a": 2.0, "b": 1.0},
            "q2": {"a": 2.0, "b": 1.0, "new": 0.5},
            "q3": {},
            "q4": None,
            "q5": {"a": 1.0},
        },
        "mine",
    )
    store_runs(shop, [run], now=NOW)
    with shop.store.read() as connection:
        return runs.runs(connection, shop.golden.id)[0]


def test_the_numbers_are_those_of_evaluate(shop: Workspace, row: RunRow) -> None:
    rules = Rules(by=["lang"])
    assert kept(shop, row, rules) is None
    compute(shop, row, rules)
    found = kept(shop, row, rules)
    assert found is not None
    given = judged(shop)
    run = Run.from_dict({}, "mine")
    run = stored_evaluations.read_stored(shop, row)
    plain = evaluate(given.qrels, run, queries=given.queries, by=["lang"], per_query=True)
    assert found.results.results == plain.results
    assert found.results.slices == plain.slices
    assert found.results.notes == plain.notes
    values = {(v.measure, v.query_id): (v.value, v.state) for v in plain.per_query}
    assert values == {
        (r["measure"], r["query_id"]): (r["value"], r["state"])
        for r in found.frame.iter_rows(named=True)
    }


def test_the_worst_come_first_and_what_got_no_answer_before_them(
    shop: Workspace, row: RunRow
) -> None:
    compute(shop, row, Rules())
    found = kept(shop, row, Rules())
    assert found is not None
    listed = found.frame.filter(measure="RR@10").select("query_id", "state").rows()
    assert {state for _, state in listed[:2]} == {"failed", "empty"}
    # q2 finds at rank 2 (0.5), q1 at rank 1; of q5 nothing is known.
    assert [query for query, _ in listed[2:]] == ["q2", "q1", "q5"]


def test_a_slice_holds_its_queries(shop: Workspace, row: RunRow) -> None:
    compute(shop, row, Rules(by=["lang"]))
    found = kept(shop, row, Rules(by=["lang"]))
    assert found is not None
    part = found.frame.filter(pl.col("slices").list.contains("lang=de"), measure="AP")
    assert set(part["query_id"]) == {"q1", "q3"}


def test_judging_makes_it_older_and_an_edition_stays(shop: Workspace, row: RunRow) -> None:
    freeze(shop, "first", now=NOW)
    for rules in (Rules(), Rules(edition="first")):
        compute(shop, row, rules)
    rate(shop, "ann", "q2", "new", 3.0, now=NOW + 1)
    now, frozen = kept(shop, row, Rules()), kept(shop, row, Rules(edition="first"))
    assert now is not None
    assert frozen is not None
    assert now.older
    assert not frozen.older
    compute(shop, row, Rules())
    again = kept(shop, row, Rules())
    assert again is not None
    assert not again.older
    assert again.results.value("AP") != now.results.value("AP")


@pytest.mark.parametrize(
    ("query_id", "grades"),
    deep_but(
        ["q2", "q3"],
        [("q1", [3.0, 0.0]), ("q2", [0.0, 2.0, None]), ("q3", []), ("q5", [None])],
    ),
)
def test_a_query_has_its_ranking(
    shop: Workspace, row: RunRow, query_id: str, grades: list[float | None]
) -> None:
    compute(shop, row, Rules())
    found = kept(shop, row, Rules())
    assert found is not None
    shown = side(shop, found, query_id, "nDCG@10")
    assert shown is not None
    assert [one.grade for one in shown.query.rankings[0].top] == grades
    assert side(shop, found, "no such", "nDCG@10") is None


def test_an_unknown_attribute_is_refused(shop: Workspace, row: RunRow) -> None:
    with pytest.raises(UsageError, match="colour"):
        compute(shop, row, Rules(by=["colour"]))


def test_whatever_it_is_computed_from_makes_it_older(shop: Workspace, row: RunRow) -> None:
    compute(shop, row, Rules(by=["lang"]))
    first = kept(shop, row, Rules(by=["lang"]))
    assert first is not None
    asked = pl.DataFrame({"query_id": ["q1"], "text": ["red shoes"], "lang": ["fr"]})
    with shop.store.begin() as connection:
        queries.put(connection, shop.golden.id, asked, NOW)  # a class alone
    before = kept(shop, row, Rules(by=["lang"]))
    assert before is not None
    assert before.older
    compute(shop, row, Rules(by=["lang"]))
    again = kept(shop, row, Rules(by=["lang"]))
    assert again is not None
    assert not again.older
    assert {each.slice for each in again.results.slices} == {"de", "en", "fr"}


def test_another_golden_set_of_the_same_name_has_other_numbers(
    shop: Workspace, row: RunRow
) -> None:
    other = replace(shop, golden=replace(shop.golden, salt="another"))
    assert key(shop, row, Rules()) != key(other, row, Rules())


def test_rules_have_one_order_and_know_what_there_is(shop: Workspace, row: RunRow) -> None:
    found = known(shop, Rules(by=["query_length", "lang", "lang"]))
    assert list(found.by) == ["lang", "query_length"]
    assert list(known(shop, Rules(by=["lang,query_length"])).by) == ["lang,query_length"]
    four = ["lang", "query_length", "relevant_documents", "first_relevant"]
    for by, words in ((["colour"], "colour"), (four, "3 attributes"), ([",".join(four)], "3 at")):
        with pytest.raises(UsageError, match=words):
            known(shop, Rules(by=by))
    with pytest.raises(UsageError, match="unknown edition 'frist'"):
        known(shop, Rules(edition="frist"))


def test_lists_have_the_values_of_before_until_there_are_newer(
    shop: Workspace, row: RunRow
) -> None:
    [nothing] = in_short(shop, [row])
    assert (nothing.values, nothing.older) == (None, True)
    compute(shop, row, Rules())
    [first] = in_short(shop, [row])
    assert not first.older
    assert first.values is not None
    assert first.values["RR@10"] is not None
    rate(shop, "ann", "q2", "new", 3.0, now=NOW + 1)
    [before] = in_short(shop, [row])
    assert (before.values, before.older) == (first.values, True)
    assert before.key != first.key
    compute(shop, row, Rules())
    assert not in_short(shop, [row])[0].older


def test_a_run_of_another_workspace_is_not_followed(
    shop: Workspace, row: RunRow, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.parquet"
    shutil.copy(shop.workspace.root / row.path, elsewhere)
    found = stored_evaluations.read_stored(shop, replace(row, path=str(elsewhere)))
    assert found.name == "mine"  # by its own name, in the folder of the runs
    (shop.workspace.root / row.path).unlink()
    with pytest.raises(InputError):
        stored_evaluations.read_stored(shop, replace(row, path=str(elsewhere)))
