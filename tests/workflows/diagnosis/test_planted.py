"""Planted failures over Cranfield: the pipeline is broken, never the trace.

Two retrievers (BM25, and latent semantic analysis as the dense one), a reciprocal rank fusion and a
reranker. Each plan breaks one part for some queries, and names the mode that must be found for the
documents it took away; the unbroken pipeline is the control.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from karat import formats
from karat.fusion import reciprocal_rank, weighted_sum
from karat.tables import Documents, Qrels, Run
from karat.tables.diagnosis.traces import Trace, from_runs
from karat.tables.judgments import Judgments
from karat.workflows.diagnosis.diagnose import diagnose

Lists = dict[str, dict[str, float]]
DEPTH = 100


@dataclass
class Cranfield:
    """Queries, documents, and the scores of two retrievers for every pair."""

    qrels: Qrels
    query_ids: list[str]
    doc_ids: list[str]
    lexical: np.ndarray
    dense: np.ndarray
    best: dict[str, str] = field(default_factory=dict)  # query → a document that both find

    def run(self, scores: np.ndarray, name: str, depth: int = DEPTH, drop: Any = None) -> Run:
        """The top of each query; ``drop`` maps queries to documents that are not there."""
        out: Lists = {}
        for at, query in enumerate(self.query_ids):
            row = scores[at].copy()
            for doc in (drop or {}).get(query, ()):
                row[self.doc_ids.index(doc)] = -np.inf
            top = np.argsort(-row, kind="stable")[:depth]
            out[query] = {self.doc_ids[d]: float(row[d]) for d in top if np.isfinite(row[d])}
        return Run.from_dict(out, name)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def cranfield(field_data: Path) -> Cranfield:
    """Cranfield, scored by BM25 and by latent semantic analysis."""
    sklearn = pytest.importorskip("sklearn.feature_extraction.text")
    decomposition = pytest.importorskip("sklearn.decomposition")
    folder = field_data / "cranfield"
    corpus = _lines(folder / "corpus.jsonl")
    asked = _lines(folder / "queries.jsonl")
    texts = [f"{each['title']} {each['text']}" for each in corpus]
    queries = [each["text"] for each in asked]
    counter = sklearn.CountVectorizer(stop_words="english")
    counts = counter.fit_transform(texts).astype(float).tocsr()
    n = counts.shape[0]
    frequency = np.asarray((counts > 0).sum(0)).ravel()
    idf = np.log(1 + (n - frequency + 0.5) / (frequency + 0.5))
    length = np.asarray(counts.sum(1)).ravel()
    row = np.repeat(np.arange(n), np.diff(counts.indptr))
    norm = 1.2 * (0.25 + 0.75 * length[row] / length.mean())
    counts.data = counts.data * 2.2 / (counts.data + norm) * idf[counts.indices]
    lexical = ((counter.transform(queries) > 0).astype(float) @ counts.T).toarray()
    weigh = sklearn.TfidfVectorizer(stop_words="english", sublinear_tf=True)
    reduced = decomposition.TruncatedSVD(100, random_state=0)
    left = reduced.fit_transform(weigh.fit_transform(texts))
    right = reduced.transform(weigh.transform(queries))
    left /= np.linalg.norm(left, axis=1, keepdims=True) + 1e-9
    right /= np.linalg.norm(right, axis=1, keepdims=True) + 1e-9
    made = Cranfield(
        formats.read_qrels(folder / "qrels" / "test.tsv"),
        [each["_id"] for each in asked],
        [each["_id"] for each in corpus],
        lexical,
        right @ left.T,
    )
    # Per query the most relevant document, if both retrievers have it in their first ten: what a
    # plan takes away was there before, and is most of the query's loss afterwards.
    grades: dict[str, dict[str, float]] = {}
    for query, doc, grade in made.qrels.frame.select("query_id", "doc_id", "grade").iter_rows():
        grades.setdefault(query, {})[doc] = grade
    lexical_top, dense_top = made.run(lexical, "l", 10), made.run(made.dense, "d", 10)
    for query in made.query_ids:
        both = set(lexical_top.of(query)["doc_id"]) & set(dense_top.of(query)["doc_id"])
        relevant = {doc: grade for doc, grade in grades.get(query, {}).items() if grade > 0}
        top = max(relevant.values(), default=0)
        # A query of which the planted document is more than half of all gain.
        if (
            len([g for g in relevant.values() if g == top]) == 1
            and top * 2 > sum(relevant.values()) / 2
        ):
            doc = max(relevant, key=relevant.__getitem__)
            if doc in both:
                made.best[query] = doc
    return made


@dataclass
class Plan:
    """What diagnose is given after something was broken."""

    run: Run
    trace: Trace
    mode: str
    more: dict[str, Any] = field(default_factory=dict)


def pipeline(
    c: Cranfield,
    *,
    lexical: Run,
    dense: Run,
    keep: Callable[[str, str], bool] | None = None,
    low: dict[str, str] | None = None,
) -> Plan:
    """Fuse by rank, filter, and put the documents ``low`` (query → document) to the end."""
    fused = reciprocal_rank([lexical, dense], name="fused", depth=DEPTH)
    stages = {"bm25": lexical, "dense": dense, "fused": fused}
    kinds: Any = {"dense": "retrieve", "fused": "fuse", "allowed": "filter", "top": "rerank"}
    last = fused
    if keep is not None:
        rows = fused.frame()
        there = [keep(q, d) for q, d in rows.select("query_id", "doc_id").iter_rows()]
        last = Run.from_batches("allowed", [rows.filter(pl.Series(there))])
        stages["allowed"] = last
    if low is not None:
        out: Lists = {}
        for query in last.query_ids:
            docs = last.of(query)["doc_id"].to_list()
            docs = [d for d in docs if d != low.get(query)] + [
                d for d in docs if d == low.get(query)
            ]
            out[query] = {doc: -float(rank) for rank, doc in enumerate(docs)}
        last = Run.from_dict(out, "top")
        stages["top"] = last
    return Plan(last, from_runs(stages, kinds), "scoring")


def plans(c: Cranfield) -> dict[str, Plan]:
    """One plan for each cause."""
    lexical, dense = c.run(c.lexical, "bm25"), c.run(c.dense, "dense")
    gone = {query: [doc] for query, doc in c.best.items()}
    without = (c.run(c.lexical, "bm25", drop=gone), c.run(c.dense, "dense", drop=gone))
    plan = {
        "a word is not analysed": pipeline(c, lexical=without[0], dense=without[1]),
        "a filter is too narrow": pipeline(
            c, lexical=lexical, dense=dense, keep=lambda q, d: c.best.get(q) != d
        ),
        "the reranker does not like it": pipeline(c, lexical=lexical, dense=dense, low=c.best),
        "a document is not indexed": pipeline(c, lexical=without[0], dense=without[1]),
        "the copy is stale": pipeline(c, lexical=without[0], dense=without[1]),
        "the label is doubtful": pipeline(c, lexical=without[0], dense=without[1]),
    }
    modes = ("candidate", "candidate", "scoring", "missing_content", "stale_content", "feedback")
    for each, mode in zip(plan.values(), modes, strict=True):
        each.mode = mode
    missing = set(c.best.values())
    plan["a document is not indexed"].more = {"index": set(c.doc_ids) - missing}
    stale = pl.DataFrame(
        {
            "doc_id": c.doc_ids,
            "updated_at": ["2026-01-01" if doc in missing else "2026-05-01" for doc in c.doc_ids],
            "source_updated_at": ["2026-04-01"] * len(c.doc_ids),
        }
    )
    plan["the copy is stale"].more = {"documents": Documents(stale)}
    plan["the label is doubtful"].more = {"judgments": disagreed(c.best)}
    older = {query: f"old-{doc}" for query, doc in c.best.items()}
    plan["an old version is first"] = stale_first(c, lexical, dense, older)
    plan["scores of another scale"] = raw_scores(c, lexical, dense)
    return plan


def disagreed(pairs: dict[str, str]) -> Judgments:
    """Two raters, on both sides of relevant."""
    rows = [
        {"judgment": 2 * at + more, "query_id": query, "doc_id": doc, "rater": rater,
         "grade": grade, "state": "graded", "source": "human", "kind": "rating", "time_us": at}
        for at, (query, doc) in enumerate(pairs.items())
        for more, (rater, grade) in enumerate((("ann", 3.0), ("ben", 0.0)))
    ]  # fmt: skip
    return Judgments(pl.DataFrame(rows), (0.0, 4.0))


def stale_first(c: Cranfield, lexical: Run, dense: Run, older: dict[str, str]) -> Plan:
    """Old copies are boosted to the top, and push the new one out."""
    plan = pipeline(c, lexical=lexical, dense=dense, low=c.best)
    out: Lists = {}
    for query in plan.run.query_ids:
        docs = plan.run.of(query)["doc_id"].to_list()
        docs = [older[query], *docs] if query in older else docs
        out[query] = {doc: -float(rank) for rank, doc in enumerate(docs)}
    run = Run.from_dict(out, "top")
    stages = {name: plan.trace.run(name) for name in ("bm25", "dense", "fused")}
    kinds: Any = {"dense": "retrieve", "fused": "fuse", "top": "rerank"}
    names = sorted(set(c.best.values()))
    versions = pl.DataFrame({"doc_id": names, "supersedes": [f"old-{doc}" for doc in names]})
    return Plan(run, from_runs(stages | {"top": run}, kinds), "freshness",
                {"documents": Documents(versions)})  # fmt: skip


def raw_scores(c: Cranfield, lexical: Run, dense: Run) -> Plan:
    """A third source whose scores mean nothing is added without a common scale."""
    rng = np.random.default_rng(0)
    noise = c.run(rng.random(c.lexical.shape) * 200, "noise")
    fused = weighted_sum([lexical, dense, noise], normalise="none", name="fused", depth=DEPTH)
    kinds: Any = {"dense": "retrieve", "noise": "retrieve", "fused": "fuse"}
    stages = {"bm25": lexical, "dense": dense, "noise": noise, "fused": fused}
    trace = from_runs(stages, kinds)
    # Cranfield is judged in full: what is not in the qrels is not relevant.
    pairs = pl.concat(
        [run.frame().select("query_id", "doc_id") for run in stages.values()]
    ).unique()
    zeros = pairs.join(c.qrels.frame, on=["query_id", "doc_id"], how="anti")
    frame = zeros.with_columns(grade=pl.lit(0.0))
    every = pl.concat([c.qrels.frame.select("query_id", "doc_id", "grade"), frame])
    return Plan(fused, trace, "calibration", {"qrels": Qrels(every, "cranfield, judged in full")})


def diagnosed(c: Cranfield, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Any:
    more = dict(plan.more)
    index = more.pop("index", None)
    if index is not None:  # what a declared engine would answer
        monkeypatch.setattr(
            "karat.workflows.diagnosis.diagnose._in_index", lambda *_: frozenset(index)
        )
        more["engine"] = object()
    qrels = more.pop("qrels", c.qrels)
    return diagnose(qrels, plan.run, trace=plan.trace, below=1.1, **more)


@pytest.mark.deep  # mode by mode in tests/diagnosis/test_modes.py
def test_planted_causes_are_found(cranfield: Cranfield, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least 9 of 10 of the queries for which a cause was planted."""
    assert len(cranfield.best) >= 20
    table: dict[str, Counter[str]] = {}
    for name, plan in plans(cranfield).items():
        with monkeypatch.context() as patch:
            found = diagnosed(cranfield, plan, patch)
        mode_of = {row.query_id: row.mode for row in found.queries}
        top = set(plan.run.frame().filter(pl.col("rank") <= 10).select("query_id", "doc_id").rows())
        hit = [query for query, doc in cranfield.best.items() if (query, doc) not in top]
        assert len(hit) >= 15, name  # queries that the plan really took the document from
        table[f"{name} ({plan.mode})"] = Counter(mode_of.get(query, "none") for query in hit)
    printed = "\n".join(f"{name}: {dict(counts)}" for name, counts in table.items())
    right = {
        name: counts[name.rpartition("(")[2].rstrip(")")] / counts.total()
        for name, counts in table.items()
    }
    assert min(right.values()) >= 0.9, printed


@pytest.mark.deep  # over a whole collection, as the one before
def test_controls_are_not_named(cranfield: Cranfield) -> None:
    """With nothing planted, under 5 % get a mode that evidence alone could give."""
    lexical, dense = (
        cranfield.run(cranfield.lexical, "bm25"),
        cranfield.run(cranfield.dense, "dense"),
    )
    plan = pipeline(cranfield, lexical=lexical, dense=dense)
    fresh = pl.DataFrame(
        {
            "doc_id": cranfield.doc_ids,
            "updated_at": ["2026-05-01"] * len(cranfield.doc_ids),
            "source_updated_at": ["2026-04-01"] * len(cranfield.doc_ids),
            "subject_id": cranfield.doc_ids,
        }
    )
    found = diagnose(cranfield.qrels, plan.run, trace=plan.trace, documents=Documents(fresh),
                     judgments=Judgments(disagreed(cranfield.best).frame.with_columns(
                         grade=pl.lit(3.0)), (0.0, 4.0)))  # fmt: skip
    named = Counter(row.mode for row in found.queries)
    planted = named.total() - named["candidate"] - named["scoring"]
    assert planted <= 0.05 * named.total(), named
