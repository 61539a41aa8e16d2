"""GoldenSet: put together by hand or from logs, saved, loaded, and used as judgments."""

from __future__ import annotations

import copy
import json
import os
import pickle
import uuid
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

import karat
from karat.errors import InputError, UsageError
from karat.workflows.offline import inputs
from karat.workflows.workspace.fingerprints import fingerprint


def small() -> karat.GoldenSet:
    golden = karat.GoldenSet("docs", scale=(0, 3))
    golden.add("join two lists", {"a": 3, "b": 0}, category="task", difficulty=2)
    golden.add("os.path", ["c"], category="name", need="the page of the module")
    golden.add("bake a cake", no_answer=True)
    return golden


def test_what_is_added_is_there() -> None:
    golden = small()
    assert [query.query_id for query in golden] == ["q1", "q2", "q3"]
    assert golden.qrels.to_dict() == {"q1": {"a": 3.0, "b": 0.0}, "q2": {"c": 1.0}}
    assert golden.qrels.scale == (0.0, 3.0)
    assert golden.queries.attribute("category") == {"q1": "task", "q2": "name"}
    assert golden.queries.attributes == ["no_answer", "category", "difficulty"]
    assert golden.queries.no_answer() == {"q3"}
    assert (len(golden), "q2" in golden, golden["q2"].text) == (3, True, "os.path")
    assert repr(golden) == "<GoldenSet docs: 3 queries (1 without an answer), 3 judgments>"


def test_ids_are_made_up_by_place_and_pass_over_what_is_taken() -> None:
    golden = karat.GoldenSet()
    assert golden.add("x", ["a"]) == "q1"
    assert golden.add("y", ["a"], query_id="q3") == "q3"
    assert golden.add("z", ["a"]) == "q4"
    assert golden.add("z", ["a"], query_id=7) == "7"


def test_an_empty_golden_set_has_empty_tables() -> None:
    golden = karat.GoldenSet()
    assert (len(golden), len(golden.queries), len(golden.qrels)) == (0, 0, 0)
    assert golden.qrels.scale == (0.0, 0.0)


@pytest.mark.parametrize(
    ("query", "judgments", "more", "says"),
    [
        ("join two lists", ["a"], {}, "the query 'join two lists' already exists, as q1"),
        ("new", ["a"], {"query_id": "q1"}, "'q1' is already used by 'join two lists'"),
        ("new", "abc", {}, "the judged documents are 'abc', not ids"),
        ("new", 7, {}, "the judged documents are 7, not ids"),
        ("new", {"a": 4}, {}, "grade 4 of document a is not on the scale 0 to 3"),
        ("new", {"a": float("nan")}, {}, "grade of document a is nan, not a finite"),
        ("new", {"a": float("inf")}, {}, "not a finite number"),
        ("new", {"a": "3"}, {}, "not a finite number"),
        ("new", {"a": None}, {}, "not a finite number"),
        ("new", {1.5: 1}, {}, "the doc_id is 1.5, not text"),
        ("new", ["a", "a"], {}, "duplicate document a"),
        ("new", {"a": 3}, {"no_answer": True}, "marked no_answer, and document a has grade 3"),
        ("new", ["a"], {"no_answer": "no"}, "no_answer is 'no', not true or false"),
        ("new", ["a"], {"tags": ["x"]}, r"tags is \['x'\]; attributes are text"),
        ("new", ["a"], {"tags": 10**5000}, "tags is a value of type int; attributes are"),
        ("new", ["a"], {"tags": float("inf")}, "tags is inf; attributes are"),
        ("new", ["a"], {"text": "x"}, "an attribute cannot be called 'text'"),
        ("new", ["a"], {"weight": -1}, "the weight is -1, neither 0 nor a number from"),
        ("new", ["a"], {"weight": "2"}, "the weight is '2', neither 0 nor a number from"),
        ("new", {"a": 10**5000}, {}, "document a is a value of type int, not a finite"),
        ("new", {uuid.UUID(int=7): 1}, {}, r"the doc_id is UUID.*\n  fix: str\(doc_id\)"),
        ("new", ["a"], {"weight": True}, "the weight is True, neither 0 nor a number"),
        (" ", ["a"], {}, "the query is empty"),
        (None, ["a"], {}, "the query is None, not text"),
        ("\ud800", ["a"], {}, "half of a surrogate pair"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    query: str, judgments: object, more: dict[str, object], says: str
) -> None:
    golden = small()
    before = list(golden)
    with pytest.raises(InputError, match=says):
        golden.add(query, judgments, **more)  # type: ignore[arg-type]
    assert list(golden) == before


@pytest.mark.parametrize("scale", [(3, 0), (1, 1), (-1, 3), (0, float("inf")), (0, 1, 2)])
def test_a_scale_without_grades_is_refused(scale: tuple[float, float]) -> None:
    with pytest.raises(UsageError):
        karat.GoldenSet(scale=scale)


def test_a_log_is_marked_as_one() -> None:
    golden = karat.GoldenSet()
    logged = golden.add_from_log("x", ["b"], ["a", "b", "c"], category="task")
    assert logged == ("q1", ["a", "b", "c"], [], [])
    assert golden["q1"].grades == {"a": 0.0, "b": 2.0, "c": 0.0}
    assert {judgment.source for judgment in golden["q1"].judgments.values()} == {"clicks"}
    assert golden["q1"].attributes == {"origin": "clicks", "category": "task"}


def test_a_document_clicked_once_counts_as_clicked() -> None:
    golden = karat.GoldenSet()
    golden.add_from_log("x", ["b"], ["a", "b"])
    assert golden.add_from_log("x", ["a", "a"], ["a", "b", "c"]) == ("q1", ["c"], ["a"], [])
    assert golden.add_from_log("x", [], ["a"]) == ("q1", [], [], [])
    assert golden["q1"].grades == {"a": 2.0, "b": 2.0, "c": 0.0}


def test_a_log_leaves_what_a_person_said() -> None:
    golden = karat.GoldenSet()
    golden.add("x", {"a": 3, "b": 0}, origin="interview")
    assert golden.add_from_log("x", ["b", "c"], ["a", "b", "c"]) == ("q1", ["c"], [], ["a", "b"])
    assert golden["q1"].grades == {"a": 3.0, "b": 0.0, "c": 2.0}
    assert [j.source for j in golden["q1"].judgments.values()] == ["person", "person", "clicks"]
    assert golden["q1"].attributes == {"origin": "interview"}
    golden.judge("q1", {"c": 1})  # and a person may correct a click
    assert golden.add_from_log("x", ["c"], ["c"]).kept == ["c"]
    assert golden["q1"].grades["c"] == 1.0


def test_a_log_of_a_text_that_two_queries_have_says_which() -> None:
    golden = karat.GoldenSet()
    golden.add("java", ["a"], query_id="island")
    golden.add("java", ["b"], query_id="language")
    with pytest.raises(InputError, match="2 queries have the text 'java': island, language"):
        golden.add_from_log("java", ["c"], ["c"])
    assert golden.add_from_log("java", ["c"], ["c"], query_id="island").query_id == "island"
    assert golden.add_from_log("java", ["c"], ["c"], query_id="coffee").query_id == "coffee"


@pytest.mark.parametrize(
    ("clicked", "shown", "says"),
    [
        (["z"], ["a"], "document z was clicked and not shown, for the query 'x'"),
        ([], [], "no document was shown for the query 'x'"),
        ("a", ["a"], "clicked is a str, not a list"),
        (["a"], {"a": 1}, "shown is a dict, not a list"),
        ([None], ["a"], "doc_id is None"),
    ],
)
def test_a_log_that_cannot_be(clicked: list[str], shown: list[str], says: str) -> None:
    golden = karat.GoldenSet()
    with pytest.raises((InputError, UsageError), match=says):
        golden.add_from_log("x", clicked, shown)
    assert len(golden) == 0


def test_a_click_on_a_query_without_an_answer_is_refused() -> None:
    golden = small()
    with pytest.raises(InputError, match="marked no_answer, and document a was clicked"):
        golden.add_from_log("bake a cake", ["a"], ["a"])
    assert golden.add_from_log("bake a cake", [], ["a"]).added == ["a"]


def test_queries_without_judgments_are_carried_and_count_in_nothing(tmp_path: Path) -> None:
    golden = karat.GoldenSet("docs")
    golden.add("join two lists", ["a"])
    assert golden.add("not judged yet", category="task") == "q2"
    golden.add("nothing is relevant", {})
    assert golden.to_judge == ["q2"]
    assert repr(golden) == "<GoldenSet docs: 3 queries (1 to judge), 1 judgments>"
    golden.save(tmp_path / "g.json")
    again = karat.GoldenSet.load(tmp_path / "g.json")
    assert (list(again), again.to_judge) == (list(golden), ["q2"])
    tables = karat.GoldenSet.from_tables(golden.queries, golden.qrels, "docs")
    assert list(tables) == list(golden)

    results = karat.benchmark(golden, lambda _: ["b", "a"], ["RR"], per_query=True)
    (row,) = results.results
    # Only q1 has a value: its document is second. q2 and q3 are counted, each as what it is.
    assert (row.value, row.n, row.undefined, row.unjudged) == (0.5, 1, 1, 1)
    assert {(each.query_id, each.state) for each in results.per_query} == {
        ("q1", "ok"),
        ("q2", "unjudged"),
        ("q3", "undefined"),
    }
    assert results.runs["search"].query_ids == ["q1", "q2", "q3"]  # all were asked: to be pooled
    assert karat.evaluate(tmp_path / "g.json", results.runs["search"], ["RR"]).results == [row]

    golden.judge("q2", {"b": 1})
    assert not golden.to_judge


def test_of_a_folder_with_several_splits_only_the_judged_queries_are_asked(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    lines = [json.dumps({"_id": f"q{n}", "text": f"text {n}"}) for n in (1, 2)]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    head = "query-id\tcorpus-id\tscore\n"
    (tmp_path / "qrels/test.tsv").write_text(f"{head}q1\ta\t1\n", encoding="utf-8")
    asked = karat.benchmark(tmp_path, lambda _: ["a"], ["RR"]).runs["search"].query_ids
    assert asked == ["q1", "q2"]  # q2 is to be judged
    (tmp_path / "qrels/train.tsv").write_text(f"{head}q2\ta\t1\n", encoding="utf-8")
    assert karat.benchmark(tmp_path, lambda _: ["a"], ["RR"]).runs["search"].query_ids == ["q1"]


def test_a_set_without_any_judgment_is_asked_and_passes_nothing(tmp_path: Path) -> None:
    golden = karat.GoldenSet("docs")
    golden.add("x")
    golden.add("y")
    results = karat.benchmark(golden, lambda _: ["a"], ["RR"])
    assert [(row.value, row.n, row.unjudged) for row in results.results] == [(None, 0, 2)]
    run = results.runs["search"]
    policy = {"rule": [{"measure": "RR", "min": 0.1}]}
    assert karat.gate(policy, golden, None, run).verdict not in ("pass", "error")
    with pytest.raises(InputError, match="no query is judged yet"):
        karat.compare(golden, run, run)
    golden.save(tmp_path / "g.json")
    with pytest.raises(
        InputError, match=r"contains no judgment\n  fix: import it into a golden set"
    ):
        karat.evaluate(tmp_path / "g.json", run)


def test_a_fingerprint_knows_queries_without_a_relevant_document() -> None:
    grades = pl.DataFrame({"query_id": ["q1"], "doc_id": ["a"], "grade": [1.0]})
    plain, more = karat.Qrels(grades), karat.Qrels(grades, without=["q2"])
    assert fingerprint(plain) != fingerprint(more)
    assert fingerprint(plain) == fingerprint(karat.Qrels(grades, without=["q1"]))  # it has a row


def test_a_whole_log_counts_a_click_only_if_the_user_stayed() -> None:
    golden = karat.GoldenSet("docs")
    golden.add("Wing", {"z": 3})
    golden.add("cake", no_answer=True)
    rows = [
        # Two spellings of one query. a: back after 5 s, then 30 s on it: one click counts.
        {"query": "wing", "doc_id": "a", "clicked": True, "dwell_s": 5},
        {"query": "wing", "doc_id": "b", "clicked": False},
        {"query": "WING ", "doc_id": "a", "clicked": True, "dwell_s": 30},
        {"query": "wing", "doc_id": "z", "clicked": True, "dwell_s": 90},
        {"query": "flap", "doc_id": "c", "clicked": True},  # nobody knows for how long
        {"query": "flap", "doc_id": "d", "clicked": True, "dwell_s": 29.9},
        {"query": "flap", "doc_id": "e", "clicked": True, "dwell_s": 60, "is_bot": True},
        {"query": "anna@example.org", "doc_id": "a", "clicked": False},
        {"query": "cake", "doc_id": "a", "clicked": True, "dwell_s": 60},
        {"query": " ", "doc_id": "a", "clicked": False},
    ]
    done = golden.add_from_logs(rows, dwell_s=30)
    assert golden["q1"].grades == {"z": 3.0, "a": 2.0, "b": 0.0}
    assert golden["q3"].grades == {"c": 2.0, "d": 0.0}
    assert (done.queries, done.new) == (["q1", "q3"], ["q3"])
    assert (done.added, done.raised, done.kept) == (4, 0, 1)  # z keeps the grade of a person
    # Counted: a, z, c and the one on cake. Too short: a once, and d. Without a dwell: c.
    assert (done.clicks, done.short_clicks, done.unknown_dwell) == (4, 2, 1)
    assert done.left_out == {
        "bot": 1,
        "e-mail address": 1,
        "no query": 1,
        "clicks on a query marked no_answer": 1,
    }


@pytest.mark.parametrize("name", ["docno", "corpus-id", "Passage  ID", "document"])
def test_a_log_may_use_the_usual_names_of_columns(name: str) -> None:
    number = {"docid": 7} if name == "docno" else {}  # as in PyTerrier's frames
    golden = karat.GoldenSet()
    golden.add_from_logs([{**number, "Query-Text": "x", name: "a", "clicked": True}])
    assert golden["q1"].grades == {"a": 2.0}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "frame", "parquet"])
def test_a_log_may_be_a_file_or_a_frame(kind: str, tmp_path: Path) -> None:
    shown = {"query": ["x", "x"], "doc_id": ["a", "b"], "clicked": [True, False]}
    frame = pl.DataFrame({**shown, "dwell_s": [40.0, None]})
    log: object = frame
    if kind != "frame":
        log = tmp_path / f"log.{kind}"
        write = {"csv": frame.write_csv, "parquet": frame.write_parquet}
        write.get(kind, frame.write_ndjson)(log)  # type: ignore[operator]
    golden = karat.GoldenSet()
    done = golden.add_from_logs(log)
    assert golden["q1"].grades == {"a": 2.0, "b": 0.0}
    assert done.left_out == {}
    assert done.notes == [
        "No bots were left out: the log has no column that marks them (is_bot, user_agent)."
    ]


def test_a_log_may_have_a_row_for_each_search(tmp_path: Path) -> None:
    rows = [
        {"query": "x", "clicked_docs": ["a"], "shown_docs": ["a", "b"]},
        {"query": "x", "clicked_docs": {"b": 12.0, "c": 31}, "shown_docs": ["b", "c"]},
        {"query": "y", "clicked_docs": [], "shown_docs": []},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for log in (rows, path):
        golden = karat.GoldenSet()
        done = golden.add_from_logs(log)
        assert golden["q1"].grades == {"a": 2.0, "b": 0.0, "c": 2.0}
        assert done.left_out == {"no document": 1}


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ([{"query": "x", "doc": "a"}], "no column 'clicked'; there are 'query', 'doc'"),
        ([{"doc_id": "a", "clicked": 1}], "no column 'query'"),
        ([{"query": "x", "clicked_docs": ["a"]}], "no column 'shown_docs'"),
        ([{"query": "x", "doc_id": "a", "clicked": "often"}], r"row 1 \(query 'x'\): clicked is"),
        ([{"query": "x", "doc_id": "a", "clicked": 1, "dwell_s": "-3"}], "dwell_s is '-3', not"),
        ([{"query": "x", "doc_id": "a", "clicked": 1, "dwell_s": "soon"}], "dwell_s is 'soon'"),
        ([], "the log is an empty list"),
        (["x"], "a row of the log is not a dictionary"),
    ],
)
def test_a_log_that_cannot_be_read_changes_nothing(log: list[object], says: str) -> None:
    golden = small()
    before = list(golden)
    with pytest.raises((InputError, UsageError), match=says):
        golden.add_from_logs(log)
    with pytest.raises(UsageError, match="dwell_s is -1"):
        golden.add_from_logs([{"query": "x", "doc_id": "a", "clicked": 1}], dwell_s=-1)
    assert list(golden) == before


LOG = st.tuples(st.sets(st.sampled_from("abcde"), min_size=1), st.sets(st.sampled_from("abcde")))


@drawn(logs=st.lists(LOG, min_size=1, max_size=5), order=st.randoms())
def test_the_order_of_logs_does_not_matter(logs: list[tuple[set[str], set[str]]], order) -> None:
    def read(logs: list[tuple[set[str], set[str]]]) -> dict[str, float]:
        golden = karat.GoldenSet()
        for shown, clicked in logs:
            golden.add_from_log("x", sorted(clicked & shown), sorted(shown))
        return golden["q1"].grades

    before = read(logs)
    order.shuffle(logs)
    assert read(logs) == before
    clicks = set().union(*(clicked & shown for shown, clicked in logs))
    seen = set().union(*(shown for shown, _ in logs))
    assert before == {doc: 2.0 if doc in clicks else 0.0 for doc in seen}


def test_judging_again_and_removing() -> None:
    golden = small()
    golden.judge("q1", {"b": 2, "z": 1}, source="second")
    assert golden["q1"].grades == {"a": 3.0, "b": 2.0, "z": 1.0}
    assert [j.source for j in golden["q1"].judgments.values()] == ["person", "second", "second"]
    golden.remove("q1")
    assert "q1" not in golden
    assert golden.add("join two lists", ["a"]) == "q4"  # q3 is taken: passed over
    for change in (golden.remove, lambda query: golden.judge(query, ["a"])):
        with pytest.raises(KeyError, match=r"docs has no query 'q9'; did you mean"):
            change("q9")


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    golden, path = small(), tmp_path / "golden.json"
    golden.add_from_log("join two lists", ["z"], ["a", "z"])
    golden.save(path)
    again = karat.GoldenSet.load(path)
    assert (list(again), again.name, again.scale) == (list(golden), "docs", (0.0, 3.0))
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    assert path.read_text().splitlines()[1] == (
        '  {"query_id": "q1", "query": "join two lists", "category": "task", "difficulty": 2, '
        '"relevant_docs": {"a": 3, "b": 0, "z": 2}, "sources": {"z": "clicks"}},'
    )


def test_nothing_is_half_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "golden.json"
    path.write_bytes(b"as it was")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        small().save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["golden.json"]
    assert path.read_bytes() == b"as it was"


def test_a_plain_list_is_loaded(tmp_path: Path) -> None:
    items = [
        {"query": "x", "relevant_docs": ["a"], "category": "c", "difficulty": "hard"},
        {"query": "y", "relevant_docs": {"b": 2}, "category": "d", "difficulty": "easy"},
    ]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(items))
    loaded = karat.GoldenSet.load(path)
    assert list(loaded) == list(karat.GoldenSet.from_list(items))
    assert (loaded.name, loaded.scale) == ("list.json", None)
    assert loaded.qrels.to_dict() == {"q1": {"a": 1.0}, "q2": {"b": 2.0}}
    with pytest.raises(InputError, match="item 2: no key 'query'"):
        karat.GoldenSet.from_list([items[0], {"q": "x"}])


def test_tables_become_a_golden_set(tmp_path: Path) -> None:
    golden = small()
    again = karat.GoldenSet.from_tables(golden.queries, golden.qrels, "docs")
    assert list(again) == list(golden)
    assert again.scale == (0.0, 3.0)
    queries = pl.DataFrame({"query_id": ["1", "2", "3"], "text": ["x", "y", "z"]})
    one = karat.GoldenSet.from_tables(
        karat.Queries(queries), karat.Qrels.from_dict({"2": {"a": 1}})
    )
    assert [q.text for q in one] == ["x", "y", "z"]
    assert one.to_judge == ["1", "3"]  # they have no judgments yet
    odd = queries.with_columns(
        day=pl.lit("2026-01-31").str.to_date(), cost=pl.lit(float("nan")), hard=pl.lit(value=True)
    )
    assert karat.GoldenSet.from_tables(karat.Queries(odd), karat.Qrels.from_dict({"2": {"a": 1}}))[
        "2"
    ].attributes == {
        "day": "2026-01-31",
        "hard": True,
    }
    with pytest.raises(InputError, match=r"is not among the queries \(query 9\)"):
        karat.GoldenSet.from_tables(karat.Queries(queries), karat.Qrels.from_dict({"9": {"a": 1}}))
    with pytest.raises(InputError, match="have no text"):
        karat.GoldenSet.from_tables(
            karat.Queries(queries.drop("text")), karat.Qrels.from_dict({"1": {"a": 1}})
        )


def test_it_serves_as_judgments_and_queries(tmp_path: Path) -> None:
    golden, run = small(), {"q1": {"a": 2.0}, "q2": {"x": 1.0}}
    assert inputs.qrels(golden).to_dict() == golden.qrels.to_dict()
    in_memory = karat.evaluate(golden, run, ["RR"], queries=golden, by="category")
    golden.save(tmp_path / "golden.json")
    path = str(tmp_path / "golden.json")
    from_file = karat.evaluate(path, run, ["RR"], queries=path, by="category")
    assert from_file.to_dict() == in_memory.to_dict()
    assert in_memory.value("RR") == 0.5  # q1 has its document first, q2 not at all
    by_slice = {row.slice: row.value for row in in_memory.slices}
    assert (by_slice["task"], by_slice["name"]) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["", "  ", 5, None, "\ud800"])
def test_a_name_that_could_not_be_loaded_again_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="of a golden set"):
        karat.GoldenSet(name)
    golden = small()
    with pytest.raises(UsageError, match="of a golden set"):
        golden.name = name
    assert golden.name == "docs"


def test_a_scale_may_change_as_long_as_it_holds_every_grade() -> None:
    golden = small()
    golden.scale = "0-5"
    assert golden.qrels.scale == (0.0, 5.0)
    with pytest.raises(InputError, match=r"grade 3 of document a is not on the scale 0 to 2"):
        golden.scale = (0, 2)
    with pytest.raises(UsageError):
        golden.scale = (3, 0)
    assert golden.scale == (0.0, 5.0)
    golden.scale = None
    assert golden.qrels.declared is None
    golden.add("gold", {"a": 2, "b": 1}, no_answer=False)
    silent = karat.GoldenSet(scale=(0, 3))
    silent.add("x", {"a": 2}, no_answer=True)  # related, and no answer
    with pytest.raises(InputError, match="marked no_answer, and document a has grade 2"):
        silent.scale = None


def test_what_is_in_it_is_changed_by_its_methods_only() -> None:
    golden = small()
    for held in (golden["q1"].judgments, golden["q1"].attributes):
        for change in (
            lambda held=held: held.__setitem__("x", "\ud800"),
            lambda held=held: held.pop("a"),
            lambda held=held: held.update(a=1),
            lambda held=held: held.clear(),
        ):
            with pytest.raises(TypeError, match=r"changed by golden\.judge"):
                change()
    for again in (copy.deepcopy(golden), pickle.loads(pickle.dumps(golden))):
        assert list(again) == list(golden)
        again.judge("q1", {"a": 1})
        assert golden["q1"].grades == {"a": 3.0, "b": 0.0}
    given_attributes = {"category": "x"}
    golden.add("new", ["a"], query_id="own", **given_attributes)
    given_attributes["category"] = "y"
    assert golden["own"].attributes == {"category": "x"}


def test_ids_are_whole_numbers_of_any_kind() -> None:
    golden = karat.GoldenSet()
    golden.add("x", {np.int64(7): 1}, query_id=np.int64(5))
    assert 5 in golden
    assert np.int64(5) in golden
    assert "5" in golden
    assert True not in golden
    assert [5] not in golden
    golden.judge(5, {8: 0})
    assert golden[5].grades == {"7": 1.0, "8": 0.0}
    golden.remove(5)
    assert not len(golden)


def test_a_weight_is_for_all_queries_or_for_none(tmp_path: Path) -> None:
    golden = karat.GoldenSet("docs")
    golden.add("x", ["a"], weight=2)
    golden.add("y", ["a"])
    with pytest.raises(InputError, match=r"has no weight.*\(query q2\)\n  fix: give every query"):
        _ = golden.queries
    golden.save(tmp_path / "g.json")
    with pytest.raises(InputError, match=r"g\.json: the query has no weight"):
        karat.read_queries(tmp_path / "g.json")


@pytest.mark.parametrize("told", ["no_answer", "source"])
def test_a_log_cannot_say_everything(told: str) -> None:
    golden = karat.GoldenSet()
    with pytest.raises(UsageError, match=f"add_from_log takes no {told}"):
        golden.add_from_log("x", [], ["a"], **{told: True})
    assert not len(golden)


def test_no_path_is_said_to_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="the path is None"):
        karat.GoldenSet.load(None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the path is of type int"):
        small().save(5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="to a file, not to standard output"):
        small().save("-")
    assert not list(tmp_path.iterdir())


def test_related_documents_of_a_query_without_an_answer_are_saved_and_loaded(
    tmp_path: Path,
) -> None:
    frame = {"query_id": ["q1", "q2"], "text": ["x", "y"], "no_answer": [False, True]}
    queries = karat.Queries(pl.DataFrame(frame))
    for grade, scale in ((1, (0.0, 3.0)), (0, None)):
        qrels = karat.Qrels.from_dict({"q1": {"a": 3}, "q2": {"b": grade}})
        golden = karat.GoldenSet.from_tables(queries, qrels)
        assert golden.scale == scale
        golden.save(tmp_path / "g.json")
        assert list(karat.GoldenSet.load(tmp_path / "g.json")) == list(golden)
        golden.judge("q2", {"c": 0})
