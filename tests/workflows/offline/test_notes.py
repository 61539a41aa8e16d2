"""Notes: what must stand beside numbers."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import karat
from karat.reports.phrases.numbers import percent
from karat.tables import Qrels, Run
from karat.tables.notes import Concern, Note
from karat.workflows.offline.evaluate import evaluate


def said(qrels: dict[str, dict[str, float]], *runs: Run, **rules: object) -> str:
    return "\n".join(evaluate(qrels, list(runs), ["RR"], **rules).notes)  # type: ignore[arg-type]


JUDGED = {f"q{i:02}": {"a": 1.0, "b": 0.0} for i in range(30)}


def answered(count: int, name: str = "run") -> Run:
    """RR 1 and 1/2 in turns for the first queries of JUDGED."""
    docs = ({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0})
    return Run.from_dict({f"q{i:02}": docs[i % 2] for i in range(count)}, name=name)


def test_nothing_is_said_where_nothing_is_to_say() -> None:
    assert said(JUDGED, answered(30)) == ""


def test_few_queries_are_not_to_be_trusted() -> None:
    few = {query: JUDGED[query] for query in list(JUDGED)[:24]}
    assert "fewer than 25 queries are unreliable (the fewest here: 24)" in said(few, answered(24))
    assert said(few, answered(24), interval="none") == ""
    enough = {query: JUDGED[query] for query in list(JUDGED)[:25]}
    assert said(enough, answered(25)) == ""


def test_ids_are_listed_up_to_five() -> None:
    note = said(JUDGED, answered(24))
    assert "6 queries not in the run: scored 0 (q24, q25, q26, q27, q28 and 1 more)" in note
    assert "1 query not in the run: scored 0 (q29)" in said(JUDGED, answered(29))


def test_several_runs_are_named() -> None:
    note = said(JUDGED, answered(30, "old"), answered(29, "new"))
    assert "new: 1 query not in the run" in note
    assert "old: " not in note


def test_a_failed_query_is_said_whether_or_not_it_had_something_to_find() -> None:
    run = Run.from_dict({"q1": {"a": 1.0}, "q2": None, "q3": None})
    note = said({"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0}}, run, interval="none")
    assert "2 queries got no answer: no value (q2, q3)" in note


def test_queries_without_judgments_are_listed() -> None:
    run = Run.from_dict({"q1": {"a": 1.0}, "z": {"a": 1.0}, "y": {"a": 1.0}})
    note = said({"q1": {"a": 1}}, run)
    assert "2 queries of the run without judgments: left out (y, z)" in note


def test_queries_with_nothing_to_find_are_listed() -> None:
    note = said({"q1": {"a": 1}, "q2": {"a": 1}}, Run.from_dict({"q1": {"a": 1.0}}), rel=1.0)
    assert "without a document" not in note
    note = said({"q1": {"a": 2}, "q2": {"a": 1}}, Run.from_dict({"q1": {"a": 1.0}}), rel=2.0)
    assert "1 query without a document of grade 2 or better: left out (undefined) (q2)" in note


def test_ranks_that_contradict_scores_do_not_count() -> None:
    frame = pl.DataFrame(
        {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0], "rank": [2, 1]}
    )
    results = evaluate({"q": {"a": 1}}, Run.from_frame(frame), ["RR"])
    assert results.results[0].value == 1.0
    note = "\n".join(results.notes)
    assert "ranks contradict scores in 1 query: ordered by score, ranks ignored" in note


def test_ties_are_said_with_their_share() -> None:
    tied = Run.from_dict({"q": {"a": 1.0, "b": 1.0, "c": 0.5}}, name="flat")
    assert "tied in score with another document: 67 %;" in said({"q": {"a": 1}}, tied)
    untied = Run.from_dict({"q": {"a": 1.0}}, name="sharp")
    assert "another document: 67 % of flat;" in said({"q": {"a": 1}}, tied, untied)


def test_no_document_is_left_that_could_tie() -> None:
    run = Run.from_dict({"q": {"x": 1.0, "y": 1.0}})
    assert "tied" not in said({"q": {"a": 1}}, run, judged_only=True)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (1.0, "100 %"),
        (0.99999, "99.99 %"),
        (0.9997, "99.97 %"),
        (0.99, "99 %"),
        (0.5, "50 %"),
        (0.01, "1 %"),
        (0.0003, "0.03 %"),
        (0.00001, "0.01 %"),
    ],
)
def test_nearly_all_is_not_printed_as_all(share: float, shown: str) -> None:
    assert percent(share) == shown


def test_grades_below_0_are_said() -> None:
    run = Run.from_dict({"q": {"a": 1.0}})
    note = said({"q": {"a": 1, "b": -1}}, run)
    assert "1 judgment is below 0, which means pooled but not judged" in note
    assert "2 judgments are below 0" in said({"q": {"a": 1, "b": -1, "c": -2}}, run)


def test_what_trec_eval_cuts_from_grades_is_said() -> None:
    qrels = Qrels.from_dict({"q": {"a": 1.5, "b": 0.9, "c": -0.5}})
    run = Run.from_dict({"q": {"b": 2.0, "a": 1.0}})
    results = evaluate(qrels, run, ["RR"], compat="trec_eval-9")
    assert results.results[0].value == 0.5  # b's 0.9 counts as 0
    note = "\n".join(results.notes)
    assert "grades are truncated to whole numbers" in note
    assert "below 0" not in note, "-0.5 is cut to 0"
    assert "cut" not in "\n".join(evaluate(qrels, run, ["RR"]).notes)


def test_what_trec_eval_leaves_out_is_said() -> None:
    run = Run.from_dict({"q1": {"a": 1.0}})
    note = said({"q1": {"a": 1}, "q2": {"a": 1}}, run, compat="trec_eval-9")
    assert "1 query not in the run: left out, as in trec_eval-9 (q2)" in note


def test_bca_says_its_seed() -> None:
    note = said(JUDGED, answered(30), interval="bca", seed=3)
    assert note == "BCa bootstrap intervals from 2,000 resamples, seed 3"


def test_queries_of_a_golden_set_that_are_not_judged_yet_are_named(tmp_path: Path) -> None:
    golden = karat.GoldenSet("docs")
    golden.add("one", ["a"])
    for text in ("two", "three", "four"):
        golden.add(text)
    golden.add("five", {})
    golden.add("six", no_answer=True)
    golden.save(tmp_path / "golden.json")
    waiting = "3 queries of the golden set are not judged yet: left out (q2, q3, q4)"
    bare = "1 query without a document of grade 1 or better: left out (undefined) (q5)"
    run = karat.Run.from_dict({"q1": {"a": 1.0}, "q2": {"a": 1.0}, "x": {"a": 1.0}}, "mine")
    policy = {"rule": [{"measure": "P@1", "min": 0.5}]}
    for judged in (golden, tmp_path / "golden.json"):
        notes = karat.evaluate(judged, run, ["P@1"]).notes
        assert waiting in notes
        assert bare in notes
        # Not said twice of q2; x is not of the golden set.
        assert "1 query of the run without judgments: left out (x)" in notes
        assert waiting in karat.compare(judged, run, run, ["P@1"]).notes
        assert {waiting, bare} <= set(karat.gate(policy, judged, None, run).notes)
        first = karat.gate(policy, judged, None, run).notes[0]
        assert isinstance(first, Note)
        assert first.concern is Concern.QUERIES
    # A file of queries of its own may hold more than was judged.
    topics = karat.Queries(golden.queries.frame, "topics.tsv")
    notes = karat.evaluate(golden.qrels, run, ["P@1"], queries=topics).notes
    assert not any("not judged yet" in note for note in notes)


def test_a_folder_of_one_split_is_a_golden_set(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    texts = "".join(f'{{"_id": "q{n}", "text": "text {n}"}}\n' for n in (1, 2))
    (tmp_path / "queries.jsonl").write_text(texts, encoding="utf-8")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "a"}\n', encoding="utf-8")
    split = "query-id\tcorpus-id\tscore\nq1\ta\t1\n"
    (tmp_path / "qrels" / "test.tsv").write_text(split, encoding="utf-8")
    run = karat.Run.from_dict({"q1": {"a": 1.0}}, "mine")
    said = "1 query of the golden set is not judged yet: left out (q2)"
    assert said in karat.evaluate(tmp_path, run, ["P@1"]).notes
    (tmp_path / "qrels" / "train.tsv").write_text(split.replace("q1", "q2"), encoding="utf-8")
    assert said not in karat.evaluate(tmp_path, run, ["P@1"]).notes
