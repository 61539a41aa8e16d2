"""Waterfall: which relevant documents each stage of a pipeline was given, returned and lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.measures import Measure
from karat.measures.parameters import Gain, divisor_of, gain_of
from karat.measures.scores import Rules, score
from karat.stats.averages import mean
from karat.stats.intervals import Interval, shown, t_interval
from karat.tables import Qrels, Run
from karat.tables.diagnosis.results import StageRow
from karat.tables.diagnosis.traces import Stage, Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SERVED = "served"  # the last stage: the top k of the run


@dataclass(frozen=True)
class Roads:
    """The relevant documents of the traced queries, and where each stage has them."""

    trace: Trace  # the trace
    run: Run  # the served run
    k: int  # documents of each query that are served
    query_ids: list[str]  # the judged queries; q of them
    query: Ints  # index of the query of each relevant document, ascending; shape (m,)
    doc_id: pl.Series  # the document; shape (m,)
    grade: Floats  # its grade, above 0; shape (m,)
    rel: float  # lowest grade that is counted as relevant
    # Its rank in each stage, 0 where it was not returned; the last row is that of the run within
    # the top k; shape (s + 1, m)
    rank: Ints
    below: Ints  # its rank in the whole run, 0 if it is not there; shape (m,)
    traced: Mask  # whether its query has a trace; shape (m,)
    weights: Floats  # weight of each query; shape (q,)

    @cached_property
    def stages(self) -> list[Stage]:
        """The stages that return documents, then the serving."""
        with_documents = [stage for stage in self.trace.stages if stage.depth]
        own = {stage.name for stage in with_documents}
        taken = {parent for stage in with_documents for parent in self.inputs_of(stage)}
        ends = tuple(name for name in own if name not in taken)
        ordered = tuple(stage.name for stage in with_documents if stage.name in ends)
        # A stage that serves is the end; other ends were only looked at.
        served = tuple(s.name for s in with_documents if s.kind == "serve" and s.name in ends)
        ordered = served or ordered
        return [*with_documents, Stage(SERVED, "serve", ordered, self.k)]

    def inputs_of(self, stage: Stage) -> tuple[str, ...]:
        """The nearest stages before it that return documents."""
        by_name = {each.name: each for each in self.trace.stages}
        found: dict[str, None] = {}
        for parent in stage.parents:
            above = by_name.get(parent)
            if above is None:
                continue
            if above.depth:
                found[parent] = None
            else:
                found |= dict.fromkeys(self.inputs_of(above))
        return tuple(found)

    @cached_property
    def place(self) -> dict[str, int]:
        """Stage → its row in ``rank``."""
        return {stage.name: at for at, stage in enumerate(self.stages)}

    def documents(self, query: int) -> Ints:
        """Indices of the relevant documents of a query, which lie together."""
        first, last = np.searchsorted(self.query, [query, query + 1])
        return np.arange(first, last)

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """``query_id`` and ``doc_id`` of the relevant documents; shape (m,)."""
        query_id = pl.Series("query_id", self.query_ids, dtype=pl.String).gather(self.query)
        return pl.DataFrame({"query_id": query_id, "doc_id": self.doc_id})

    @cached_property
    def served(self) -> dict[str, list[str]]:
        """Query → the documents that are served for it, in their order."""
        top = self.run.frame().filter(pl.col("rank") <= self.k)
        return dict(top.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())

    def above(self, at: int) -> list[str]:
        """The documents that are served above a relevant one; all of them if it is not served."""
        served = self.served.get(self.query_ids[int(self.query[at])], [])
        rank = int(self.rank[-1, at])
        return served[: rank - 1] if rank else served

    @cached_property
    def number(self) -> dict[str, int]:
        """Query → its index."""
        return {query_id: at for at, query_id in enumerate(self.query_ids)}

    def weights_of(self, query_ids: Sequence[str]) -> Floats:
        """The weight of each of some queries."""
        return np.array([self.weights[self.number[query]] for query in query_ids])

    @cached_property
    def held(self) -> Mask:
        """Whether each stage returned each document; shape (s + 1, m)."""
        return self.rank > 0

    def given(self, stage: Stage) -> Mask:
        """The documents in a stage's input; a retriever could return any; shape (m,)."""
        inputs = stage.parents if stage.name == SERVED else self.inputs_of(stage)
        if not inputs:
            return np.ones(len(self.query), np.bool_)
        return _any(self.held[[self.place[name] for name in inputs]])

    @cached_property
    def sources(self) -> list[Stage]:
        """The retrievers on the road to what is served."""
        on_road: set[str] = set()
        by_name = {stage.name: stage for stage in self.stages}
        ahead = [SERVED]
        while ahead:
            stage = by_name[ahead.pop()]
            if stage.name not in on_road:
                on_road.add(stage.name)
                ahead += stage.parents if stage.name == SERVED else self.inputs_of(stage)
        return [s for s in self.stages[:-1] if s.name in on_road and not self.inputs_of(s)]

    @cached_property
    def retrieved(self) -> Mask:
        """Whether any retriever on the road has the document; shape (m,)."""
        return _any(self.held[[self.place[source.name] for source in self.sources]])

    @cached_property
    def ranker(self) -> Stage | None:
        """The last stage that decides the order: those after it only leave documents out."""
        rankers = [s for s in self.stages[:-1] if s.kind in {"retrieve", "fuse", "rerank"}]
        return rankers[-1] if rankers else None

    @cached_property
    def lost_at(self) -> Ints:
        """Row of the stage that lost each document; -1 if it is served, -2 if never retrieved.

        The first stage whose input held it and whose output does not.
        """
        lost = np.full(len(self.query), -1, np.int64)
        gone = ~self.held[-1]
        lost[gone & ~self.retrieved] = -2
        for at, stage in enumerate(self.stages):
            if stage.name == SERVED or self.inputs_of(stage):
                here = gone & (lost == -1) & self.retrieved & self.given(stage) & ~self.held[at]
                lost[here] = at
        return lost

    @cached_property
    def loss(self) -> Floats:
        """Gain times (discount at the ideal rank - discount at the rank, 0 beyond k); shape (m,).

        Adds up to IDCG - DCG of each query; below 0 for a document above its ideal rank.
        """
        gained = gain_of(self.grade, self.gain)
        served = np.where(self.held[-1], self.rank[-1], 0)
        last = np.where(self.below > 0, self.below, np.iinfo(np.int64).max)
        order = np.lexsort((last, -self.grade, self.query))
        ideal = np.empty(len(order), np.int64)
        starts = np.flatnonzero(np.diff(self.query[order], prepend=-1))
        counts = np.diff(np.append(starts, len(order)))
        ideal[order] = np.arange(len(order)) - np.repeat(starts, counts) + 1
        return gained * (self.discount(ideal) - self.discount(served))

    gain: Gain = "linear"
    # Those of the queries that nothing answers; they have no relevant documents
    unanswerable: frozenset[str] = frozenset()

    def discount(self, rank: Ints) -> Floats:
        """1 / log2(1 + rank); 0 for rank 0 and beyond k."""
        out = np.zeros(len(rank))
        seen = (rank > 0) & (rank <= self.k)
        out[seen] = 1.0 / divisor_of(rank[seen], "log2", None)
        return out


def roads(
    trace: Trace, run: Run, qrels: Qrels, query_ids: Sequence[str], k: int, rel: float,
    weights: Floats | None = None, gain: Gain = "linear", unanswerable: Sequence[str] = (),
) -> Roads:  # fmt: skip
    """Find the relevant documents of queries in every stage.

    Args:
        trace: The trace; queries without one have no rank in any stage.
        run: The served run.
        qrels: The judgments.
        query_ids: Queries that count.
        k: Documents of each query that are served.
        rel: Lowest grade that is counted as relevant.
        weights: Of the queries, the unanswerable ones last; all 1 if None; shape (q,).
        gain: Of the measure.
        unanswerable: Further queries, which nothing answers.
    """
    ids = [*query_ids, *unanswerable]
    relevant = qrels.judged(query_ids, np.nextafter(0.0, 1.0))
    relevant = relevant.group_by("query", "doc_id", maintain_order=True).agg(pl.col("grade").max())
    named = relevant.select(
        query_id=pl.Series(ids, dtype=pl.String).gather(relevant["query"]), doc_id="doc_id"
    )
    ranks = [
        trace.ranks(stage.name, named).to_numpy().astype(np.int64)
        for stage in trace.stages
        if stage.depth
    ]
    below = _ranks(named, run.frame().select("query_id", "doc_id", "rank"))
    served = np.where(below <= k, below, 0)
    known = set(trace.query_ids)
    return Roads(
        trace=trace,
        run=run,
        k=k,
        query_ids=ids,
        query=relevant["query"].to_numpy().astype(np.int64),
        doc_id=relevant["doc_id"],
        grade=relevant["grade"].to_numpy(),
        rel=rel,
        rank=np.array([*ranks, served], np.int64).reshape(len(ranks) + 1, len(relevant)),
        below=below,
        traced=named["query_id"].is_in(known).to_numpy(),
        weights=np.ones(len(ids)) if weights is None else weights,
        gain=gain,
        unanswerable=frozenset(unanswerable),
    )


def _any(rows: Mask) -> Mask:
    return np.asarray(rows.any(axis=0), np.bool_)


def _ranks(pairs: pl.DataFrame, rows: pl.DataFrame) -> Ints:
    found = pairs.join(rows, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return found["rank"].fill_null(0).to_numpy().astype(np.int64)


def waterfalls(
    found: Roads,
    qrels: Qrels,
    measures: Sequence[Measure],
    slices: Mapping[str, Collection[str]],
) -> tuple[list[StageRow], dict[str, list[StageRow]]]:
    """The stages, with what each was given, returned and lost, and its ceilings; also of parts.

    The parts are each grade, without ceilings, and each slice. Only traced queries count, and
    documents of grade ``rel`` or better.

    Args:
        found: The roads of the relevant documents.
        qrels: The judgments.
        measures: Whose ceilings are computed.
        slices: Slice → the ids of its queries.
    """
    counted = found.traced & (found.grade >= found.rel)
    known = set(found.trace.query_ids) - found.unanswerable
    asked = [query for query in found.query_ids if query in known]
    ceilings = [
        {str(m): values_of(ideal_run(found, held, asked), qrels, m, asked) for m in measures}
        for held in found.held
    ]

    # Without the lists, which are large.
    answers = found.trace.frame.select(
        "query_id", "stage", "latency_us", length=pl.col("doc_ids").list.len()
    )

    def rows(documents: Mask, query_ids: Collection[str] | None) -> list[StageRow]:
        own = [query_ids is None or query in query_ids for query in asked]
        weights = found.weights_of(asked)[own]
        timed = answers
        if query_ids is not None:
            timed = answers.filter(pl.col("query_id").is_in(list(query_ids)))
        return [
            _stage_row(found, at, documents & counted, timed, {
                name: value
                for name, values in ceilings[at].items()
                if (value := mean_value(values[own], weights)) is not None
            })
            for at in range(len(found.stages))
        ]  # fmt: skip

    parts: dict[str, list[StageRow]] = {}
    grades = np.unique(found.grade[counted])[::-1].tolist()
    for grade in grades if len(grades) > 1 else []:
        of_grade = rows(found.grade == grade, None)
        parts[f"grade {grade:g}"] = [replace(row, ceiling={}) for row in of_grade]
    for name, query_ids in slices.items():
        chosen = np.array([query in query_ids for query in found.query_ids], np.bool_)
        parts[name] = rows(chosen[found.query], query_ids)
    return rows(np.ones(len(counted), np.bool_), None), parts


def _stage_row(
    found: Roads,
    at: int,
    documents: Mask,
    answers: pl.DataFrame,  # `stage`, `length`, `latency_us` of each query
    ceiling: dict[str, float],
) -> StageRow:
    stage = found.stages[at]
    given, held = found.given(stage) & documents, found.held[at] & documents
    lost = given & ~held
    share, span = _share(found.query[lost], found.query[given])
    lengths, latency = np.diff(found.run.starts), None
    if stage.name == SERVED:
        returned = float(np.minimum(lengths, found.k).mean() or 0.0)
    else:
        rows = answers.filter(pl.col("stage") == stage.name)
        returned = float(rows["length"].mean() or 0.0)  # type: ignore[arg-type]
        median = rows["latency_us"].median()
        latency = None if median is None else round(median)  # type: ignore[arg-type]
    return StageRow(
        stage=stage.name,
        kind=stage.kind,
        relevant_in=int(given.sum()),
        relevant_out=int(held.sum()),
        lost=int(lost.sum()),
        returned=returned,
        ceiling=ceiling,
        latency_us=latency,
        lost_share=share,
        ci_low=span.low,
        ci_high=span.high,
    )


def _share(part: Ints, whole: Ints) -> tuple[float | None, Interval]:
    """The share of documents, and its interval over the queries; both by query."""
    if not len(whole):
        return None, Interval(None, None, "no documents")
    counts = np.bincount(whole)
    with_documents = counts > 0
    shares = np.bincount(part, minlength=len(counts))[with_documents] / counts[with_documents]
    weights = counts[with_documents].astype(np.float64)
    return len(part) / len(whole), shown(t_interval(shares, weights), shares, 0.0, 1.0)


def ideal_run(found: Roads, held: Mask, query_ids: Sequence[str]) -> Run:
    """Some relevant documents in their best order, for each query."""
    at = np.flatnonzero(held)
    rows = found.pairs[at].with_columns(score=pl.Series(found.grade[at]))
    return with_empty(rows.filter(pl.col("query_id").is_in(list(query_ids))), query_ids, "ideal")


def with_empty(rows: pl.DataFrame, query_ids: Sequence[str], name: str) -> Run:
    """A run in which queries without rows have an empty answer."""
    there = set(rows["query_id"])
    empty = [query for query in query_ids if query not in there]
    answers = pl.DataFrame(
        {"query_id": empty, "state": ["empty"] * len(empty)},
        schema={"query_id": pl.String, "state": pl.String},
    )
    return Run.from_batches(name, [rows], answers=answers)


def values_of(run: Run, qrels: Qrels, measure: Measure, query_ids: Sequence[str]) -> Floats:
    """The values of a measure, NaN where a query has none; shape (q,)."""
    if not query_ids:
        return np.empty(0)
    scores = score(run, qrels, [measure], Rules())
    at = {query: index for index, query in enumerate(scores.evidence.query_ids)}
    values = scores.values[measure]
    return np.array([values[at[query]] if query in at else np.nan for query in query_ids])


def mean_value(values: Floats, weights: Floats) -> float | None:
    """The weighted mean over the queries with a value; None if there are none."""
    known = ~np.isnan(values)
    return mean(values[known], weights[known]) if known.any() else None
