"""Planted failures: a search pipeline over a collection, and ways to break it, one or many at once.

The pipeline is broken, never the trace: documents are taken out of the index or analysed in another
way, queries are rewritten, a filter drops and a reranker demotes what it should not, old copies are
boosted, raters disagree. Two retrievers (BM25, and latent semantic analysis as the dense one) are
fused by reciprocal rank, filtered, reranked and cut. Nothing here knows how a diagnosis is made.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from karat import formats
from karat.fusion import reciprocal_rank, weighted_sum
from karat.tables import Documents, Qrels, Queries, Run
from karat.tables.diagnosis.results import Diagnosis
from karat.tables.diagnosis.traces import StageKind, Trace, stage_rows
from karat.tables.judgments import Judgments

DEPTH = 100
SERVED = 10
Grades = dict[str, dict[str, float]]
Lists = dict[str, dict[str, float]]

# Cause → the mode and the stage that must be named for it.
CAUSES: dict[str, tuple[str, str | None]] = {
    "document removed from the index": ("missing_content", None),
    "analyzer changed": ("candidate", "bm25 + dense"),
    "filter too narrow": ("candidate", "allowed"),
    "reranker demotes it": ("scoring", "top"),
    "copy in the index is stale": ("stale_content", None),
    "old version boosted": ("freshness", None),
    "raters disagree": ("feedback", None),
    "adjudicators disagree": ("unclear_policy", None),
    "query is unclear": ("unknowable_intent", None),
    "synonyms rewrite it wrongly": ("intent", "original"),
    "nothing answers the query": ("missing_content", None),
    "retrievers failed": ("cannot_tell", "bm25"),
    "trace is missing": ("debugging", None),
}
OF_QUERIES = list(CAUSES)[8:]  # the others are of one document
EVERYWHERE: dict[str, tuple[str, str | None]] = {
    "depth cut": ("candidate", "bm25 + dense"),
    "fusion of raw scores": ("calibration", "fused"),
}


@dataclass
class Collection:
    """Documents, queries and grades."""

    name: str
    documents: dict[str, str]
    queries: dict[str, str]
    grades: Grades

    @cached_property
    def whole(self) -> Index:
        return Index(self.documents)

    @cached_property
    def unbroken(self) -> Plan:
        return broken(self, {})

    @cached_property
    def best(self) -> dict[str, list[str]]:
        """Query → relevant documents that the unbroken pipeline serves, best grade first.

        Only queries with a single best document that has more than a quarter of all gain: what
        happens to it decides what the query loses.
        """
        out = {}
        for query, grades in self.grades.items():
            relevant = {doc: grade for doc, grade in grades.items() if grade > 0}
            served = [doc for doc in self.unbroken.served(query) if doc in relevant]
            ordered = sorted(served, key=lambda doc: (-relevant[doc], doc))
            most = max(relevant.values(), default=0)
            alone = [*relevant.values()].count(most) == 1 and most > sum(relevant.values()) / 4
            if ordered and alone and relevant[ordered[0]] == most:
                out[query] = ordered
        return out


class Index:
    """BM25 and latent semantic analysis of texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        words = pytest.importorskip("sklearn.feature_extraction.text")
        decomposition = pytest.importorskip("sklearn.decomposition")
        self.doc_ids = list(texts)
        self.counter = words.CountVectorizer(stop_words="english")
        counts = self.counter.fit_transform(texts.values()).astype(float).tocsr()
        n = counts.shape[0]
        frequency = np.asarray((counts > 0).sum(0)).ravel()
        idf = np.log(1 + (n - frequency + 0.5) / (frequency + 0.5))
        length = np.asarray(counts.sum(1)).ravel()
        row = np.repeat(np.arange(n), np.diff(counts.indptr))
        norm = 1.2 * (0.25 + 0.75 * length[row] / length.mean())
        counts.data = counts.data * 2.2 / (counts.data + norm) * idf[counts.indices]
        self.lexical = counts
        self.weigh = words.TfidfVectorizer(stop_words="english", sublinear_tf=True)
        weighed = self.weigh.fit_transform(texts.values())
        size = min(60, *(side - 1 for side in weighed.shape))
        self.reduced = decomposition.TruncatedSVD(size, random_state=0)
        self.dense = _unit(self.reduced.fit_transform(weighed))

    def search(self, queries: Mapping[str, str], kind: str, depth: int = DEPTH) -> Lists:
        """Query → document → score, at most ``depth``; only scores above .02."""
        texts = list(queries.values())
        if not texts:
            return {}
        if kind == "dense":
            scores = _unit(self.reduced.transform(self.weigh.transform(texts))) @ self.dense.T
        else:
            asked = (self.counter.transform(texts) > 0).astype(float)
            scores = (asked @ self.lexical.T).toarray()
        scores = scores.round(9)
        tops = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        return {
            query: {self.doc_ids[d]: float(scores[at, d]) for d in top if scores[at, d] > 0.02}
            for at, (query, top) in enumerate(zip(queries, tops, strict=True))
        }


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; shorter where the words are unknown, and all that is left is noise."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 0.05)


@dataclass
class Plan:
    """What a diagnosis is given, and what it should find."""

    run: Run
    trace: Trace
    qrels: Qrels
    index: frozenset[str]
    more: dict[str, Any] = field(default_factory=dict)
    planted: dict[str, dict[str, str]] = field(default_factory=dict)  # query → document → cause

    def served(self, query: str) -> list[str]:
        return self.run.of(query)["doc_id"].to_list()[:SERVED]


def broken(c: Collection, planted: Mapping[str, Mapping[str, str]]) -> Plan:
    """The pipeline with some causes planted: query → document → cause."""

    def of(cause: str) -> set[tuple[str, str]]:
        return {(q, d) for q, docs in planted.items() for d, why in docs.items() if why == cause}

    grades, texts = {q: dict(docs) for q, docs in c.grades.items()}, dict(c.documents)
    doubtful = _doubtful(c, planted, grades)
    removed = {doc for _, doc in of("document removed from the index")}
    for doc in removed:
        del texts[doc]
    for _, doc in of("analyzer changed"):  # its words are not split any more
        texts[doc] = re.sub(r"\W+", "", texts[doc])
    stale = {doc for _, doc in of("copy in the index is stale")}
    for doc in stale:
        texts[doc] = "this page is coming soon"
    old = {doc: f"old-{doc}" for _, doc in sorted(of("old version boosted"))}
    texts |= {old[doc]: texts[doc] for doc in old}
    changed = texts != c.documents
    index = Index(texts) if changed else c.whole

    asked = dict(c.queries)
    rewritten = sorted({query for query, _ in of("synonyms rewrite it wrongly")})
    texts_of = [c.queries[query] for query in (*rewritten[1:], *rewritten[:1])]
    # Each of these is taken for another query; a single one for nothing that there is.
    asked |= dict(zip(rewritten, texts_of if len(rewritten) > 1 else ["zzz"], strict=False))
    lists = {kind: index.search(asked, kind) for kind in ("bm25", "dense")}
    failed = {query for query, _ in of("retrievers failed")}
    for found in lists.values():
        found.update({query: {} for query in failed})
    fused = reciprocal_rank([_run(found, name) for name, found in lists.items()], depth=DEPTH)
    narrow = of("filter too narrow")
    allowed = {
        query: {doc: score for doc, score in docs.items() if (query, doc) not in narrow}
        for query, docs in _lists(fused, c.queries).items()
    }
    low = of("reranker demotes it") | of("old version boosted") | of("trace is missing")
    upside_down = {query for query, _ in of("query is unclear")}
    first = {(query, old[doc]) for query, doc in of("old version boosted")}
    top = {
        query: _reranked(query, list(docs), low, first, upside_down)
        for query, docs in allowed.items()
    }
    site = {query: dict(list(docs.items())[:SERVED]) for query, docs in top.items()}
    original = {query: c.queries[query] for query in rewritten}
    stages: list[tuple[str, StageKind, list[str], Lists]] = [
        ("original", "retrieve", [], index.search(original, "bm25")),
        *((name, "retrieve", [], found) for name, found in lists.items()),
        ("fused", "fuse", ["bm25", "dense"], _lists(fused, c.queries)),
        ("allowed", "filter", ["fused"], allowed),
        ("top", "rerank", ["allowed"], top),
        ("site", "serve", ["top"], site),
    ]  # fmt: skip
    frame = pl.concat([stage_rows(n, _run(rows, n), k, p) for n, k, p, rows in stages if rows])
    lost = pl.col("query_id").is_in(sorted(failed)) & (pl.col("kind") == "retrieve")
    frame = frame.with_columns(
        state=pl.when(lost).then(pl.lit("failed")).otherwise("state"),
        error=pl.when(lost).then(pl.lit("timeout")).otherwise("error"),
    )
    untraced = sorted({query for query, _ in of("trace is missing")})
    frame = frame.filter(~pl.col("query_id").is_in(untraced))
    unanswered = {query for query, _ in of("nothing answers the query")}
    for query in unanswered:
        del grades[query]
    return Plan(
        _run(site, "site"),
        Trace(frame),
        Qrels.from_dict(grades),
        frozenset(texts),
        {
            "documents": _documents(c, stale, old),
            "judgments": _judgments(grades, doubtful, upside_down),
            "queries": Queries(
                pl.DataFrame({"query_id": list(c.queries), "text": list(c.queries.values())})
                .with_columns(no_answer=pl.col("query_id").is_in(sorted(unanswered)))
            ),
        },
        {
            query: {_instead(query, doc, doubtful): cause for doc, cause in docs.items()}
            for query, docs in planted.items()
        },
    )  # fmt: skip


def _instead(query: str, doc: str, doubtful: Mapping[tuple[str, str], tuple[str, str]]) -> str:
    """The document that was given the grade of a planted one."""
    pairs = doubtful.items()
    return next((other for (q, other), (was, _) in pairs if (q, was) == (query, doc)), doc)


def _doubtful(
    c: Collection, planted: Mapping[str, Mapping[str, str]], grades: Grades
) -> dict[tuple[str, str], tuple[str, str]]:
    """Give the grade of planted documents to ones that no retriever finds, by one of two raters."""
    out = {}
    tops = [c.whole.search(c.queries, kind) for kind in ("bm25", "dense")] if planted else []
    for query, docs in planted.items():
        for doc, cause in docs.items():
            if cause in {"raters disagree", "adjudicators disagree"}:
                known = {*grades[query], *(each for top in tops for each in top[query])}
                other = next(each for each in sorted(c.documents) if each not in known)
                grades[query][other] = grades[query].pop(doc)
                out[query, other] = doc, cause
    return out


def _reranked(
    query: str, docs: list[str], low: set[tuple[str, str]], first: set[tuple[str, str]],
    upside_down: set[str],
) -> dict[str, float]:  # fmt: skip
    def place(doc: str) -> int:
        return ((query, doc) in low) - ((query, doc) in first)

    ordered = sorted(docs, key=place)
    if query in upside_down:
        ordered.reverse()
    return {doc: -float(rank) for rank, doc in enumerate(ordered, 1)}


def _lists(run: Run, queries: Iterable[str]) -> Lists:
    lists: Lists = {query: {} for query in queries}
    for query, doc, score in run.frame().select("query_id", "doc_id", "score").iter_rows():
        lists[query][doc] = score
    return lists


def _run(lists: Lists, name: str) -> Run:
    return Run.from_dict(lists, name)


def _documents(c: Collection, stale: set[str], old: Mapping[str, str]) -> Documents:
    """Indexed a month after the last change, except for stale copies."""
    return Documents(
        pl.DataFrame(
            {
                "doc_id": list(c.documents),
                "updated_at": ["2026-01-01" if d in stale else "2026-05-01" for d in c.documents],
                "source_updated_at": ["2026-04-01"] * len(c.documents),
                "supersedes": [old.get(doc) for doc in c.documents],
            }
        )
    )


def _judgments(
    grades: Grades, doubtful: Mapping[tuple[str, str], tuple[str, str]], unclear: set[str]
) -> Judgments:
    """Two raters who agree, except on what is doubtful."""
    rows: list[dict[str, Any]] = []
    common = {"source": "human", "state": "graded", "reason": None}
    for query, docs in grades.items():
        for doc, grade in docs.items():
            cause = doubtful.get((query, doc), ("", ""))[1]
            kind = "adjudication" if cause == "adjudicators disagree" else "rating"
            rows += [
                common | {"query_id": query, "doc_id": doc, "rater": rater, "kind": kind,
                          "grade": 0.0 if cause and rater == "ben" else grade}
                for rater in ("ann", "ben")
            ]  # fmt: skip
    rows += [
        common | {"query_id": query, "doc_id": next(iter(grades[query])), "rater": "cleo",
                  "kind": "rating", "grade": None, "state": "cannot_judge",
                  "reason": "query_unclear: which of the two?"}
        for query in sorted(unclear)
    ]  # fmt: skip
    frame = pl.DataFrame(
        [row | {"judgment": at, "time_us": at} for at, row in enumerate(rows)],
        infer_schema_length=None,
    )
    return Judgments(frame, (0.0, 5.0))


# --- which queries and documents ---


def apart(c: Collection, each: int) -> dict[str, list[str]]:
    """Queries with ``each`` documents to break, none of them relevant to another of the queries.

    The first has the best grade of the query, the second a lower one.
    """
    taken: set[str] = set()  # relevant to a chosen query
    broken_docs: set[str] = set()
    out: dict[str, list[str]] = {}
    for query, docs in c.best.items():
        relevant = {doc for doc, grade in c.grades[query].items() if grade > 0}
        free = [doc for doc in docs if doc not in taken]
        less = [doc for doc in free if c.grades[query][doc] < c.grades[query][docs[0]]]
        chosen = [*free[:1], *less][:each]
        if chosen[:1] == docs[:1] and len(chosen) == each and not relevant & broken_docs:
            out[query] = chosen
            taken |= relevant
            broken_docs |= set(chosen)
    return out


def single(c: Collection, shift: int) -> Plan:
    """One cause for one document of each query, all causes in turn."""
    names = list(CAUSES)
    return broken(
        c,
        {
            query: {docs[0]: names[(at + shift) % len(names)]}
            for at, (query, docs) in enumerate(apart(c, 1).items())
        },
    )


def pairs(c: Collection, shift: int) -> Plan:
    """Two causes for two documents of each query."""
    names = [name for name in CAUSES if name not in OF_QUERIES]
    return broken(
        c,
        {
            query: dict(zip(docs, (names[(at + shift) % len(names)],
                                   names[(at + 2 * shift + 1) % len(names)]), strict=True))
            for at, (query, docs) in enumerate(apart(c, 2).items())
        },
    )  # fmt: skip


def depth_cut(c: Collection) -> Plan:
    """Retrievers that return 3 documents."""
    lists = [c.unbroken.trace.run(name).to_depth(3) for name in ("bm25", "dense")]
    served = reciprocal_rank(lists, depth=SERVED, name="site")
    return _fused(c, "depth cut", [*lists, served])


def shallow(c: Collection) -> Plan:
    """A fusion of the first 5 of each retriever, which were traced to their full depth."""
    lists = [c.unbroken.trace.run(name) for name in ("bm25", "dense")]
    return _fused(c, "depth cut", [*lists, reciprocal_rank(lists, depth=5, name="site")])


def raw_scores(c: Collection) -> Plan:
    """A third source whose scores mean nothing is added without a common scale."""
    lists = [c.unbroken.trace.run(name) for name in ("bm25", "dense")]
    draw = np.random.default_rng(0)
    ids = list(c.documents)
    random = {q: {ids[d]: float(draw.random() * 200) for d in draw.permutation(len(ids))[:DEPTH]}
              for q in c.queries}  # fmt: skip
    lists.append(_run(random, "noise"))
    served = weighted_sum(lists, normalise="none", name="site", depth=DEPTH)
    # What is not in the qrels is not relevant.
    graded = {q: dict.fromkeys(_pooled(lists, q), 0.0) | docs for q, docs in c.grades.items()}
    plan = _fused(c, "fusion of raw scores", [*lists, served])
    return replace(plan, qrels=Qrels.from_dict(graded))


def _pooled(runs: Sequence[Run], query: str) -> list[str]:
    return list(dict.fromkeys(doc for run in runs for doc in run.of(query)["doc_id"]))


def _fused(c: Collection, cause: str, runs: Sequence[Run]) -> Plan:
    """A pipeline that ends with a fusion, which is what was broken for all queries."""
    names = [run.name for run in runs[:-1]]
    rows = [stage_rows(name, run, "retrieve", []) for name, run in zip(names, runs, strict=False)]
    rows.append(stage_rows("fused", runs[-1], "fuse", names))
    planted = {query: {docs[0]: cause} for query, docs in c.best.items()}
    trace = Trace(pl.concat(rows))
    return replace(c.unbroken, run=runs[-1], trace=trace, planted=planted)


# --- collections ---


def cranfield(folder: Path) -> Collection:
    def lines(name: str) -> list[dict[str, Any]]:
        text = (folder / name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    grades: Grades = {}
    qrels = formats.read_qrels(folder / "qrels" / "test.tsv").frame
    for query, doc, grade in qrels.select("query_id", "doc_id", "grade").iter_rows():
        grades.setdefault(query, {})[doc] = grade
    return Collection(
        "Cranfield",
        {each["_id"]: f"{each['title']} {each['text']}" for each in lines("corpus.jsonl")},
        {each["_id"]: each["text"] for each in lines("queries.jsonl")},
        grades,
    )


def demo() -> Collection:
    from karat.demo import _documents, _golden_set

    queries = {each.query_id: each.text for each in _golden_set.queries() if not each.no_answer}
    grades: Grades = {query: {} for query in queries}
    for query, doc, grade, *_ in _golden_set.judgments():
        if query in queries:
            grades[query][doc] = float(grade)
    rows = _documents.collect().select("doc_id", "title", "text").iter_rows()
    return Collection(
        "the demo",
        {doc: f"{title} {text}" for doc, title, text in rows},
        queries,
        grades,
    )


def made(topics: int = 60) -> Collection:
    """A small collection: for each query four relevant documents among others with its words."""
    documents, queries, grades = {}, {}, {}
    for n, nearby in pairwise([*range(topics), 0]):
        words = [f"word{n}{letter}" for letter in "abc"]
        queries[f"q{n}"] = " ".join(words)
        grades[f"q{n}"] = {f"d{n}-{m}": grade for m, grade in enumerate((3.0, 2.0))}
        for m in range(8):
            common = words if m < 2 else words[: m % 3]
            documents[f"d{n}-{m}"] = " ".join([*common, f"word{nearby}a", f"own{n}{m}"])
    return Collection("made", documents, queries, grades)


# --- what was found ---

Matrix = dict[str, Counter[str]]


def confused(matrix: Matrix, plan: Plan, found: Diagnosis) -> None:
    """Add the queries that lost their planted document, by cause: the mode that was found.

    Of two causes the one of the better document counts. A right mode with the wrong stage counts
    as ``other stage``.

    Args:
        matrix: Cause → mode → queries.
        plan: What was broken.
        found: Its diagnosis.
    """
    rows = {row.query_id: row for row in found.queries}
    expected = CAUSES | EVERYWHERE
    for query, docs in plan.planted.items():
        if any(doc in plan.served(query) for doc in docs) and query in plan.qrels.query_ids:
            continue
        why = next(iter(docs.values()))
        mode, stage = expected[why]
        row = rows.get(query)
        named: str = "none" if row is None else row.mode
        if row is not None and named == mode and stage is not None and row.stage != stage:
            named = "other stage"
        matrix.setdefault(why, Counter())[named] += 1


def right(matrix: Matrix) -> dict[str, float]:
    """The share of each cause that was named."""
    expected = CAUSES | EVERYWHERE
    return {why: counts[expected[why][0]] / counts.total() for why, counts in matrix.items()}


def controls(plan: Plan, found: Diagnosis) -> tuple[int, int]:
    """Failing queries with nothing planted, and those of them with a mode that needs a cause.

    What is left are queries that the collection itself makes hard: not retrieved, ranked too low.
    """
    broken_docs = {doc for docs in plan.planted.values() for doc in docs}
    touched = plan.qrels.frame.filter(
        pl.col("grade") > 0, pl.col("doc_id").is_in(sorted(broken_docs))
    )
    others = {row.query_id: row.mode for row in found.queries}
    for query in {*plan.planted, *touched["query_id"]}:
        others.pop(query, None)
    named = [mode for mode in others.values() if mode not in {"candidate", "scoring"}]
    return len(others), len(named)


def table(matrix: Matrix, name: str) -> str:
    """Planted against diagnosed, as Markdown."""
    modes = sorted({mode for counts in matrix.values() for mode in counts})
    head = [f"Planted in {name}", *(f"`{mode}`" for mode in modes)]
    order = [cause for cause in CAUSES | EVERYWHERE if cause in matrix]
    rows = [[cause, *(f"{matrix[cause][mode] or '·'}" for mode in modes)] for cause in order]
    lines = [head, ["---", *["---:"] * len(modes)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
