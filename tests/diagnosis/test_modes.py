"""Failure modes: one planted cause for each rule, and that a rule without evidence is silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from karat.tables import Documents, Qrels, Run
from karat.tables.diagnosis.results import MODES
from karat.tables.diagnosis.traces import Trace, from_runs
from karat.tables.judgments import Judgments
from karat.tables.online.clicks import ClickOrigin
from karat.workflows.diagnosis.diagnose import diagnose, road_of

QRELS = {"q1": {"a": 1}}
MISSED = {"q1": ["x", "y"]}
FOUND = {"q1": ["x", "y", "z", "a"]}


def run(lists: dict[str, list[str]], name: str = "run") -> Run:
    return Run.from_dict(
        {q: {d: -float(r) for r, d in enumerate(docs)} for q, docs in lists.items()}, name
    )


def mode(**given: Any) -> tuple[str, str | None, str]:
    """Mode, stage and evidence of the one failing query."""
    given = {"qrels": QRELS, "run": run(MISSED), "measures": ["nDCG@3"]} | given
    found = diagnose(given.pop("qrels"), given.pop("run"), **given)
    (row,) = found.queries
    return row.mode, row.stage, row.evidence


def judged(*rows: tuple[str, str, str, float | None, str]) -> Judgments:
    """Judgments of q1: document, rater, kind, grade, reason."""
    frame = pl.DataFrame(
        [
            {"judgment": at, "query_id": "q1", "doc_id": doc, "rater": rater, "kind": kind,
             "grade": grade, "state": "cannot_judge" if grade is None else "graded",
             "reason": reason or None, "source": "human", "time_us": at}
            for at, (doc, rater, kind, grade, reason) in enumerate(rows)
        ],
        schema_overrides={"grade": pl.Float64},
    )  # fmt: skip
    return Judgments(frame, (0.0, 3.0))


def clicked(low: float, high: float, *, identified: bool = True) -> Any:
    """Grades from clicks of the document of q1, with this interval of its relevance."""
    origin = ClickOrigin("PBM", (0.1, 0.3), (0.0, 1.0, 2.0), 20, None, "log", 0, identified)
    row = {"query_id": "q1", "doc_id": "a", "value": (low + high) / 2, "ci_low": low}
    return pl.DataFrame([row | {"ci_high": high, "effective": 1234.0}]), origin


def test_clicks_that_oppose_the_label() -> None:
    against = clicked(0.02, 0.06)
    assert mode(clicks=against) == (
        "feedback",
        None,
        "clicks oppose its grade: relevance 0.04 (0.02 to 0.06) from 1,234 looks at it",
    )
    assert mode(clicks=clicked(0.02, 0.2))[0] == "debugging"  # its interval has relevant values
    assert mode(clicks=clicked(0.02, 0.06, identified=False))[0] == "debugging"  # the naive rule
    # What an adjudicator settled is not in doubt; what one rater said is.
    settled = judged(("a", "ann", "rating", 1, ""), ("a", "eve", "adjudication", 1, ""))
    assert mode(clicks=against, judgments=settled)[0] == "debugging"
    one = judged(("a", "ann", "rating", 1, ""))
    assert mode(clicks=against, judgments=one)[0] == "feedback"


def test_a_document_that_no_retriever_has() -> None:
    assert mode(stages={"bm25": run(MISSED)}) == (
        "candidate",
        "bm25",
        "in no retriever's list (bm25 to 2); index not checked",
    )


def test_a_document_that_a_filter_removed() -> None:
    kept = run({"q1": ["x", "y", "z"]})
    stages = {"bm25": run(FOUND), "rights": kept}
    assert mode(run=kept, stages=stages, kinds={"rights": "filter"}) == (
        "candidate",
        "rights",
        "rights removed it",
    )


def test_a_document_that_is_ranked_too_low() -> None:
    assert mode(run=run(FOUND), stages={"bm25": run(FOUND)}) == (
        "scoring",
        "bm25",
        "bm25 ranks it 4, below the 3 that are served",
    )
    cut = run({"q1": ["y", "x"]})
    assert mode(run=cut, stages={"bm25": run(FOUND), "top": cut}) == (
        "scoring",
        "top",
        "top did not keep it (bm25 rank 4)",
    )


def test_a_query_without_a_trace() -> None:
    assert mode()[0] == "debugging"


def test_a_stage_that_failed() -> None:
    trace = from_runs({"bm25": run(MISSED)}, {})
    trace.frame = trace.frame.with_columns(state=pl.lit("failed"))
    assert mode(trace=trace) == (
        "cannot_tell",
        "bm25",
        "stage bm25 failed, so nothing shows what it would give",
    )
    trace.frame = trace.frame.with_columns(error=pl.lit("timeout"))
    assert mode(trace=trace)[2].startswith("stage bm25 failed (timeout), so")


def test_labels_in_doubt() -> None:
    stages = {"bm25": run(MISSED)}
    unclear = judged(("y", "ann", "rating", None, "query_unclear"))
    assert mode(stages=stages, judgments=unclear)[0] == "unknowable_intent"
    split = judged(("a", "ann", "rating", 1, ""), ("a", "ben", "rating", 0, ""))
    assert mode(stages=stages, judgments=split)[0] == "feedback"
    settled = judged(
        ("a", "ann", "rating", 1, ""),
        ("a", "ben", "rating", 0, ""),
        ("a", "cleo", "adjudication", 1, ""),
    )
    assert mode(stages=stages, judgments=settled)[0] == "candidate"
    still = judged(("a", "cleo", "adjudication", 1, ""), ("a", "dan", "adjudication", 0, ""))
    assert mode(stages=stages, judgments=still)[0] == "unclear_policy"
    same = judged(("a", "ann", "rating", 1, ""), ("a", "ben", "rating", 2, ""))
    assert mode(stages=stages, judgments=same)[0] == "candidate"


def test_a_stale_copy() -> None:
    rows = pl.DataFrame(
        {"doc_id": ["a"], "updated_at": ["2026-01-01"], "source_updated_at": ["2026-03-01"]}
    )
    found = mode(stages={"bm25": run(MISSED)}, documents=Documents(rows))
    assert found[0] == "stale_content"
    assert found[2] == "the index has it as of 2026-01-01, the source changed on 2026-03-01"
    fresh = rows.with_columns(updated_at=pl.lit("2026-03-01"))
    assert mode(stages={"bm25": run(MISSED)}, documents=Documents(fresh))[0] == "candidate"


def test_an_older_version_above() -> None:
    stages = {"bm25": run(FOUND)}
    by_time = pl.DataFrame(
        {"doc_id": ["a", "y"], "subject_id": ["s", "s"], "updated_at": ["2026-02-01", "2025-02-01"]}
    )
    found = mode(run=run(FOUND), stages=stages, documents=Documents(by_time))
    assert (found[0], found[2]) == ("freshness", "the older y is above it")
    named = pl.DataFrame({"doc_id": ["a"], "supersedes": ["x"]})
    assert mode(run=run(FOUND), stages=stages, documents=Documents(named))[0] == "freshness"
    newer = by_time.with_columns(updated_at=pl.Series(["2025-02-01", "2026-02-01"]))
    assert mode(run=run(FOUND), stages=stages, documents=Documents(newer))[0] == "scoring"


def test_a_rewrite_that_lost_it() -> None:
    """The retriever of the original query has it, but only the other one feeds what is served."""
    top = run(MISSED, "top")
    original = from_runs({"original": run(FOUND)}, {}).frame
    rewritten = from_runs({"rewritten": run(MISSED), "top": top}, {}).frame
    serving = rewritten.filter(pl.col("stage") == "top").with_columns(
        stage=pl.lit("site"), kind=pl.lit("serve"), parents=pl.lit(["top"], pl.List(pl.String))
    )
    found = diagnose(
        QRELS, top, trace=Trace(pl.concat([original, rewritten, serving])), measures=["nDCG@3"]
    )
    (row,) = found.queries
    assert (row.mode, row.stage) == ("intent", "original")
    assert row.evidence == "original has it at rank 4; what is served does not use it"


def test_other_subtopics_above() -> None:
    frame = pl.DataFrame(
        {
            "query_id": ["q1"] * 4,
            "doc_id": ["a", "x", "y", "z"],
            "grade": [3.0, 1.0, 1.0, 1.0],
            "subtopic": ["one", "two", "two", "two"],
        }
    )
    found = diagnose(
        Qrels(frame, "qrels"),
        run(FOUND),
        stages={"bm25": run(FOUND)},
        measures=["nDCG@3"],
        below=0.6,
    )
    (row,) = found.queries
    assert (row.mode, row.evidence) == ("intent", "what is above it is relevant to other subtopics")


def test_scores_that_do_not_add_up() -> None:
    """One source whose scores mean nothing but are as large as those of a good one."""
    rng = np.random.default_rng(3)
    queries = [f"q{n}" for n in range(60)]
    qrels, good, bad = {}, {}, {}
    for query in queries:
        docs = [f"{query}-{n}" for n in range(20)]
        qrels[query] = {d: int(n < 3) for n, d in enumerate(docs)}
        good[query] = {d: float(1.0 * (n < 3) + rng.normal(0, 0.15)) for n, d in enumerate(docs)}
        # Far apart at the top, whatever they find: after min-max they outweigh the good source.
        bad[query] = dict(zip(docs, (rng.permutation(20) ** 0.2).tolist(), strict=True))
    sources = [Run.from_dict(good, "good"), Run.from_dict(bad, "bad")]
    total: dict[str, dict[str, float]] = {}
    for query in queries:
        total[query] = {d: good[query][d] * 0.2 + bad[query][d] for d in good[query]}
    fused = Run.from_dict(total, "fused").to_depth(5)
    found = diagnose(
        qrels, fused, stages={"good": sources[0], "bad": sources[1], "fused": fused},
        kinds={"bad": "retrieve", "fused": "fuse"}, measures=["nDCG@5"],
    )  # fmt: skip
    assert found.modes[0].mode == "calibration"
    assert found.modes[0].share > 0.9
    [fix] = [fix for fix in found.fixes if fix.change.startswith("aligned scores")]
    assert not fix.bound
    assert fix.ci_low is not None
    assert fix.ci_low > 0
    # 1,200 judged documents of each source, 15 % of them relevant, in groups of 240.
    curves = {
        name: [(row.n, row.relevant, row.fitted) for row in found.reliability if row.stage == name]
        for name in ("good", "bad")
    }
    assert [n for n, _, _ in curves["good"]] == [240] * 5
    for rows in curves.values():
        assert np.mean([relevant for _, relevant, _ in rows]) == pytest.approx(0.15)
        assert [fitted for _, _, fitted in rows] == pytest.approx([r for _, r, _ in rows], abs=0.1)
    assert curves["good"][-1][1] > 0.7  # of 180 relevant documents nearly all are in the last 240
    assert max(relevant for _, relevant, _ in curves["bad"]) < 0.25
    few = Qrels.from_dict({q: qrels[q] for q in queries[:2]})
    few_found = diagnose(
        few, fused.only(queries[:2]),
        stages={"good": sources[0].only(queries[:2]), "bad": sources[1].only(queries[:2]),
                "fused": fused.only(queries[:2])},
        kinds={"bad": "retrieve", "fused": "fuse"}, measures=["nDCG@5"],
    )  # fmt: skip
    assert "calibration" not in {row.mode for row in few_found.modes}  # 40 judged documents


def test_shares_add_up_to_one_in_every_slice() -> None:
    qrels = {f"q{n}": {"a": 1} for n in range(10)}
    lists = {
        f"q{n}": (["a"] if n == 0 else ["x", "y", "z", "a"] if n < 4 else ["x"]) for n in range(10)
    }
    queries = pl.DataFrame({"query_id": list(qrels), "kind": ["odd", "even"] * 5})
    found = diagnose(qrels, run(lists), stages={"r": run(lists)}, measures=["nDCG@3"],
                     queries=queries, by="kind")  # fmt: skip
    assert found.failing == 9
    assert {row.mode: row.queries for row in found.modes} == {"candidate": 6, "scoring": 3}
    assert sum(row.share for row in found.modes) == pytest.approx(1)
    for rows in found.slices.values():
        assert sum(row.share for row in rows) == pytest.approx(1)
    assert sum(row.loss for row in found.modes) == pytest.approx(1)
    assert all(row.mode in MODES for row in found.queries)


def test_the_road_of_a_query() -> None:
    found = diagnose(QRELS, run(FOUND), stages={"bm25": run(FOUND)}, measures=["nDCG@3"])
    (road,) = road_of(found, "q1")
    assert road.ranks == {"bm25": 4, "served": None}
    assert (road.lost_at, road.mode, road.loss) == ("served", "scoring", 1.0)
