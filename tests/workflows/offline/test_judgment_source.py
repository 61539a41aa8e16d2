"""Whose judgments count: of a golden set's file, a workspace, and grades from clicks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import karat
from karat.errors import InputError, UsageError
from karat.formats.own.click_grades import COLUMNS, click_grades_file, write_click_grades
from karat.tables import Qrels, Run
from karat.tables.golden.golden_sets import Exchange
from karat.tables.online.clicks import ClickOrigin
from karat.tables.provenance import Provenance
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.offline.judgment_source import judged_by
from karat.workflows.workspace.evaluate_stored import evaluate_stored
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace

GOLDEN = {
    "karat_golden_set": 1,
    "name": "docs",
    "scale": [0, 3],
    "queries": [
        {
            "query_id": "q1",
            "query": "one",
            "relevant_docs": {"a": 3, "b": 0, "c": 2},
            "sources": {"b": "clicks", "c": "clicks"},
        },
        {"query_id": "q2", "query": "two", "relevant_docs": {"a": 1}, "sources": {"a": "llm"}},
        {"query_id": "q3", "query": "three", "relevant_docs": {}},
    ],
}
RUN = {"q1": ["b", "a", "c"], "q2": ["a"], "q3": ["a"]}
ORIGIN = ClickOrigin(
    "PBM", [0.1, 0.3, 0.6], [0.0, 1.0, 2.0, 3.0], 20.0, None, "events", 5, True, None, 2
)


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "golden.json"
    path.write_text(json.dumps(GOLDEN), encoding="utf-8")
    return path


def grades(values: dict[str, dict[str, float]], error: float | None = 0.0) -> pl.DataFrame:
    """Grades from clicks with these relevances, by the cut points of ``ORIGIN``."""
    pairs = [(query, doc, value) for query, docs in values.items() for doc, value in docs.items()]
    cut = np.searchsorted(ORIGIN.cuts, [value for *_, value in pairs], side="right")
    rows = [
        {
            "query_id": query, "doc_id": doc, "grade": float(grade), "value": value,
            "ci_low": value, "ci_high": value, "logit": float(np.log(value / (1 - value))),
            "logit_se": error, "shown": 99.0, "effective": 99.0, "clicked": 9.0, "rank": 1.0,
        }
        for (query, doc, value), grade in zip(pairs, cut, strict=True)
    ]  # fmt: skip
    return pl.DataFrame(rows, COLUMNS)


def rr(found: Any) -> tuple[float | None, int]:
    return found.results[0].value, found.results[0].n


def test_a_golden_set_by_source(golden: Path) -> None:
    # Of all: a is relevant at rank 2 in q1, and at rank 1 in q2; nothing is in q3.
    assert rr(karat.evaluate(golden, RUN, "RR@10")) == (0.75, 2)
    people = karat.evaluate(golden, RUN, "RR@10", judgments="human")
    assert rr(people) == (0.5, 1)  # a in q1; that nothing is relevant to q3 is people's, too
    assert people.judgments == "human"
    assert "judgments of people" in people.notes
    assert people.to_dict()["judgments"] == "human"
    clicks = karat.evaluate(golden, RUN, "RR@10", judgments="clicks")
    assert rr(clicks) == (1 / 3, 1)  # c at rank 3
    with pytest.raises(InputError, match="no judgments of an import") as said:
        karat.evaluate(golden, RUN, judgments="import")
    assert said.value.fix == "it has those of clicks, human, llm"
    both = karat.GoldenSet.load(golden)
    assert rr(karat.evaluate(both, RUN, "RR@10", judgments="llm")) == (1.0, 1)


def test_results_without_a_source_are_as_before(golden: Path) -> None:
    found = karat.evaluate(golden, RUN, "RR@10")
    assert found.judgments is None
    assert "judgments" not in found.to_dict()
    compared = karat.compare(golden, RUN, {"q1": ["a"], "q2": ["a"], "q3": []}, "RR@10")
    assert "judgments" not in compared.to_dict()["settings"]


def test_judgments_that_do_not_say_whose_they_are(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\n", encoding="utf-8")
    for qrels in (tmp_path / "qrels.txt", {"q1": {"a": 1}}):
        with pytest.raises(InputError, match="do not say whose they are, and those of clicks"):
            karat.evaluate(qrels, RUN, judgments="clicks")
    with pytest.raises(UsageError, match="unknown source of judgments 'click'; did you mean"):
        karat.evaluate(tmp_path / "qrels.txt", RUN, judgments="click")


def test_grades_from_clicks_say_so_themselves(tmp_path: Path) -> None:
    path = tmp_path / "clicks.parquet"
    write_click_grades(grades({"q1": {"a": 0.7, "b": 0.05}, "q2": {"a": 0.2}}), ORIGIN, path)
    found = karat.evaluate(path, RUN, "RR@10")
    assert rr(found) == (0.75, 2)
    assert found.judgments == "clicks"
    assert "judgments of clicks (by PBM, cut at 0.1, 0.3, 0.6)" in found.notes
    assert rr(karat.evaluate(path, RUN, "RR@10", judgments="clicks")) == (0.75, 2)
    with pytest.raises(InputError, match="the judgments are of clicks, not of people"):
        karat.evaluate(path, RUN, judgments="human")


def uncertain(tmp_path: Path, error: float | None) -> Path:
    """Thirty queries with three documents each, whose relevance is known with an error."""
    rng = np.random.default_rng(2)
    values = {
        f"q{i}": dict(zip("abc", rng.beta(1, 2, 3).round(3).tolist(), strict=True))
        for i in range(30)
    }
    path = tmp_path / f"{error}.parquet"
    write_click_grades(grades(values, error), ORIGIN, path)
    return path


BASELINE = {f"q{i}": ["a", "b", "c"] for i in range(30)}
CANDIDATE = {f"q{i}": ["c", "b", "a"] for i in range(30)}


def test_intervals_include_the_uncertainty_of_grades(tmp_path: Path) -> None:
    plain = Qrels(karat.read_qrels(uncertain(tmp_path, 0.8)).frame, "plain", (0, 3))
    before = karat.evaluate(plain, BASELINE, "nDCG@3").results[0]
    exact = karat.evaluate(uncertain(tmp_path, 0.0), BASELINE, "nDCG@3").results[0]
    assert (exact.value, exact.ci_low, exact.ci_high) == pytest.approx(
        (before.value, before.ci_low, before.ci_high)
    )
    found = karat.evaluate(uncertain(tmp_path, 0.8), BASELINE, "nDCG@3")
    after = found.results[0]
    assert after.value == before.value
    assert None not in (after.ci_low, after.ci_high, before.ci_low, before.ci_high)
    assert after.ci_low < before.ci_low  # type: ignore[operator]
    assert after.ci_high > before.ci_high  # type: ignore[operator]
    [note] = [note for note in found.notes if "Rubin" in note]
    assert note.startswith("intervals include the uncertainty of the grades, by 20 draws")
    assert note.endswith("% of the variance")
    again = karat.evaluate(uncertain(tmp_path, 0.8), BASELINE, "nDCG@3").results[0]
    assert again == after  # seeded
    bca = karat.evaluate(uncertain(tmp_path, 0.8), BASELINE, "nDCG@3", interval="bca")
    assert "bca intervals take the grades as certain; t intervals do not" in bca.notes
    sliced = karat.evaluate(
        uncertain(tmp_path, 0.8), BASELINE, "nDCG@3", by="half",
        queries=pl.DataFrame({"query_id": list(BASELINE), "half": ["x", "y"] * 15}),
    )  # fmt: skip
    assert all(row.ci_low is not None for row in sliced.slices)


def test_draws_without_a_relevant_document_have_no_value(tmp_path: Path) -> None:
    # Relevance .601 is just grade 3; in half of the draws it is 2, and nothing is relevant.
    values = {f"q{i}": {"a": 0.601 if i == 0 else 0.05} for i in range(6)}
    frame = grades(values).with_columns(
        logit_se=pl.when(pl.col("query_id") == "q0").then(1.0).otherwise(0.0)
    )
    write_click_grades(frame, ORIGIN, tmp_path / "g.parquet")
    run = {f"q{i}": ["a"] for i in range(6)}
    found = karat.evaluate(tmp_path / "g.parquet", run, "P@1", rel=3, complete=True)
    assert found.results[0].value == pytest.approx(1 / 6)
    assert found.results[0].ci_low is not None


def test_a_difference_within_the_uncertainty_of_grades_has_no_verdict(tmp_path: Path) -> None:
    # The candidate swaps the last two of three: where the grades say that c is better than b.
    values = {f"q{i}": {"a": 0.2, "b": 0.29, "c": 0.31} for i in range(30)}
    candidate = {query: ["a", "c", "b"] for query in list(BASELINE)[:20]}
    candidate |= {query: ["a", "b", "c"] for query in list(BASELINE)[20:]}
    rows = {}
    for error in (0.0, 3.0):
        path = tmp_path / f"d{error}.parquet"
        write_click_grades(grades(values, error), ORIGIN, path)
        found = karat.compare(path, BASELINE, candidate, "nDCG@3")
        rows[error] = found.differences[0]
        assert found.settings.judgments == "clicks"
        assert found.to_dict()["settings"]["judgments"] == "clicks"
    assert rows[0.0].verdict == "better"
    assert rows[3.0].verdict == "cannot tell"
    assert rows[3.0].reason.startswith("the interval with the uncertainty of the grades includes 0")
    assert rows[3.0].difference == rows[0.0].difference
    assert rows[3.0].p == rows[0.0].p


@pytest.fixture
def filled(shop: Workspace, tick: Callable[[], int]) -> Workspace:
    """q1: a by a person; b by a machine; q2: a imported. A run, and no clicks yet."""
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"]})
    rows = [("q1", "a", 3.0, "ann", "human"), ("q1", "b", 1.0, "gpt-4", "llm")]
    rows += [("q2", "a", 2.0, None, "import")]
    for query, doc, grade, rater, source in rows:
        facts = pl.DataFrame({"query_id": [query], "doc_id": [doc], "grade": [grade]}).with_columns(
            rater=pl.lit(rater, pl.String), reason=pl.lit(None, pl.String)
        )
        held = Exchange("csv", queries=queries, judgments=facts)
        import_exchange(
            shop, held, file=f"f{doc}", sha256=doc, now=tick(), sources={rater or "": source}
        )
    store_runs(shop, [Run.from_dict({"q1": {"b": 2.0, "a": 1.0}, "q2": {"a": 1.0}})], now=tick())
    return shop


def test_a_workspace_by_source(filled: Workspace) -> None:
    folder, run = filled.workspace.root, {"q1": ["b", "a"], "q2": ["a"]}
    both = karat.evaluate(folder, run, "RR@10")
    assert rr(both) == (0.75, 2)  # people's a at rank 2, and the imported one at rank 1
    assert both.judgments == "human+import"
    assert "judgments of people and an import" in both.notes
    assert rr(karat.evaluate(folder, run, "RR@10", judgments="human")) == (0.5, 1)
    assert rr(karat.evaluate(folder, run, "RR@10", judgments="llm")) == (1.0, 1)
    with pytest.raises(UsageError, match="the golden set shop has no judgments of clicks") as said:
        karat.evaluate(folder, run, judgments="clicks")
    assert said.value.fix == "it has those of human, import, llm"
    path = click_grades_file(folder, "shop")
    # What is not in the golden set does not count.
    write_click_grades(grades({"q2": {"a": 0.5}, "other": {"a": 0.9}}), ORIGIN, path)
    clicks = karat.evaluate(folder, run, "RR@10", judgments="clicks")
    assert (rr(clicks), clicks.judgments) == ((1.0, 1), "clicks")
    assert karat.evaluate(folder, run, "RR@10").judgments == "human+import"  # never mixed
    # A BEIR folder that is a workspace too is read as before, unless a source is named.
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "one"}\n', encoding="utf-8")
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\tb\t1\n", encoding="utf-8"
    )
    assert rr(karat.evaluate(folder, {"q1": ["b"]}, "RR@10")) == (1.0, 1)
    assert rr(karat.evaluate(folder, run, "RR@10", judgments="human")) == (0.5, 1)
    compared = karat.compare(folder, run, {"q1": ["a"], "q2": ["b"]}, "RR@10", judgments="clicks")
    assert compared.differences[0].difference == -1.0


def test_stored_runs_by_source(filled: Workspace) -> None:
    assert rr(evaluate_stored(filled, [1], ["RR@10"])) == (0.75, 2)
    assert rr(evaluate_stored(filled, [1], ["RR@10"], judgments="llm")) == (1.0, 1)
    with pytest.raises(UsageError, match="unknown source"):
        evaluate_stored(filled, [1], ["RR@10"], judgments="people")
    with pytest.raises(UsageError, match="the edition e1 has the grades that people gave"):
        evaluate_stored(filled, [1], ["RR@10"], judgments="llm", edition="e1")


def test_a_column_of_sources_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("query_id,doc_id,grade,source\nq1,a,3,human\nq1,b,1,clicks\nq2,a,2,clicks\n")
    found, _ = judged_by(path, "clicks")
    # Two of the three rows are of clicks; the scale stays that of the whole file.
    assert found.frame.rows() == [("q1", "b", 1.0), ("q2", "a", 2.0)]
    assert found.scale == (0.0, 3.0)
    assert found.provenance == Provenance("clicks")
    with pytest.raises(InputError, match="no judgment has the source llm") as caught:
        judged_by(path, "llm")
    assert caught.value.fix == "its sources are clicks, human"


def test_grades_from_clicks_as_csv_say_whose_they_are(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    write_click_grades(grades({"q1": {"a": 0.7, "b": 0.05}}), ORIGIN, path)
    found, _ = judged_by(path, "clicks")
    assert found.frame["grade"].to_list() == [3.0, 0.0]


def test_without_a_column_of_sources(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 a 1\n")
    with pytest.raises(InputError, match="do not say whose they are"):
        judged_by(path, "clicks")
