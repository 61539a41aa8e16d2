"""What a fix is worth: measures of lists that other stages would have made, not guesses.

Exact where the change decides the served order itself: another fusion that nothing ranks after.
Otherwise a bound: what a later ranker does with a document that it has never seen is not known, so
new documents are put where they help most, and the others keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.diagnosis._calibration import Alignment
from karat.diagnosis.waterfall import SERVED, Mask, Roads, ideal_run, values_of, with_empty
from karat.errors import KaratError
from karat.fusion import tuned
from karat.measures import Measure
from karat.measures.parameters import gain_of
from karat.stats.averages import mean
from karat.stats.intervals import shown, t_interval
from karat.tables import Qrels, Run
from karat.tables.diagnosis.results import Fix
from karat.tables.diagnosis.traces import Stage

Floats = NDArray[np.float64]

_RRF = 60
_SAMPLE = 200  # queries by which the settings of a stage are found
_DEPTH = 100  # documents of each list while weights are tried
_MOST_TUNED = 2_000  # lists above which no weights are tried, for they take long


@dataclass(frozen=True)
class Change:
    """A list in place of the served one."""

    stage: str
    change: str
    run: Run
    bound: bool


def fixes(
    found: Roads,
    qrels: Qrels,
    measure: Measure,
    present: Floats,
    query_ids: Sequence[str],
    alignment: Alignment | None = None,
) -> tuple[list[Fix], list[str]]:
    """Changes of the pipeline with their gains, the largest first; and what could not be tried.

    Args:
        found: The roads of the relevant documents.
        qrels: The judgments.
        measure: The measure.
        present: Its present value of each query; shape (q,).
        query_ids: The traced queries; q of them.
        alignment: Of the scores of the last fusion, if it can be computed.
    """
    notes: list[str] = []
    weights = found.weights_of(query_ids)
    out = []
    changes = [*_changes(found, qrels, measure, query_ids, notes), *_aligned(found, alignment)]
    for change in changes:
        gains = values_of(change.run, qrels, measure, query_ids) - present
        known = ~np.isnan(gains)
        if not known.any():
            continue
        gains, weighed = gains[known], weights[known]
        span = shown(t_interval(gains, weighed), gains, None, None)
        gain = mean(gains, weighed)
        out.append(
            Fix(
                change.stage,
                change.change,
                str(measure),
                gain,
                span.low,
                span.high,
                change.bound,
                len(gains),
            )
        )
    return sorted(out, key=lambda fix: -fix.gain), notes


def _changes(
    found: Roads, qrels: Qrels, measure: Measure, query_ids: Sequence[str], notes: list[str]
) -> Iterator[Change]:
    traced = found.traced
    if found.sources:
        names = " + ".join(stage.name for stage in found.sources)
        new = traced & ~found.retrieved
        yield Change(names, "perfect retrieval", _merged(found, new, query_ids), bound=True)
    for stage in found.stages[:-1]:
        inputs = found.inputs_of(stage)
        at = found.place[stage.name]
        if not inputs:
            if stage == found.ranker:
                ideal = ideal_run(found, found.held[at] & traced, query_ids)
                yield Change(stage.name, "perfect order of its documents", ideal, bound=True)
            continue
        given = found.given(stage) & traced
        if stage == found.ranker:
            run = ideal_run(found, given, query_ids)
        else:
            run = _merged(found, given & ~found.held[at], query_ids)
        yield Change(stage.name, f"perfect {_NOUN[stage.kind]}", run, bound=True)
        yield from _deeper(found, stage, inputs, query_ids, notes)
        if stage.kind == "fuse" and len(inputs) > 1:
            yield from _fused(found, stage, inputs, qrels, measure, query_ids, notes)


_NOUN = {"filter": "filter", "fuse": "fusion", "rerank": "reranker", "serve": "serving"}


def _deeper(
    found: Roads, stage: Stage, inputs: Sequence[str], query_ids: Sequence[str], notes: list[str]
) -> Iterator[Change]:
    """The stage, had it taken twice as many documents of its input."""
    taken = _taken(found, stage, inputs)
    deepest = max(found.trace.stage(name).depth for name in inputs)
    if deepest <= taken:
        notes.append(
            f"a deeper {stage.name} was not tried: its input has no more than {deepest:,} documents"
        )
        return
    # What it returned may not show how deep it looked, but its length may.
    depths = [depth for depth in (taken, stage.depth) if taken <= depth < deepest]
    made = next((depth for depth in depths if _is_made(found, stage, inputs, depth)), None)
    if made is not None:
        run = _served(_by_rank(found, inputs, 2 * made, query_ids), query_ids)
        yield Change(stage.name, f"depth {made:,} → {2 * made:,}", run, bound=False)
        return
    ranks = np.array([found.rank[found.place[name]] for name in inputs])
    best = np.where(ranks > 0, ranks, np.iinfo(np.int64).max).min(axis=0)
    new = found.traced & (best > taken) & (best <= 2 * taken) & ~found.held[-1]
    run = _merged(found, new, query_ids)
    yield Change(stage.name, f"depth {taken:,} → {2 * taken:,}", run, bound=True)


def _taken(found: Roads, stage: Stage, inputs: Sequence[str]) -> int:
    """How deep the stage looked into its input: the deepest rank of a document it returned.

    In the first ``_SAMPLE`` queries, as the depth is a setting of the pipeline.
    """
    some = found.trace.query_ids[:_SAMPLE]
    returned = found.trace.candidates(stage.name, some).select("query_id", "doc_id")
    ranks = pl.concat([found.trace.candidates(name, some) for name in inputs])
    best = ranks.group_by("query_id", "doc_id").agg(pl.col("rank").min())
    deepest = returned.join(best, on=["query_id", "doc_id"])["rank"].max()
    return stage.depth if deepest is None else int(deepest)  # type: ignore[arg-type]


def _is_made(found: Roads, stage: Stage, inputs: Sequence[str], depth: int) -> bool:
    """Whether the trace shows how the served list is made of the first documents of the inputs.

    In the order of one input, or by reciprocal rank fusion of several; nothing ranks after it.
    """
    if found.stages[-1].parents != (stage.name,):
        return False
    some = found.trace.query_ids[:_SAMPLE]
    present = found.trace.candidates(stage.name, some).filter(pl.col("rank") <= found.k)
    made = _by_rank(found, inputs, depth, some)
    same = made.join(present, on=["query_id", "doc_id", "rank"], how="semi").height
    return same == present.height


def _by_rank(
    found: Roads, inputs: Sequence[str], depth: int | None, query_ids: Sequence[str]
) -> pl.DataFrame:
    """The top k of the inputs by reciprocal rank fusion: ``query_id``, ``doc_id``, ``rank``.

    Args:
        found: The roads.
        inputs: The stages to fuse; a single one keeps its order.
        depth: Documents of each that are fused; all if None.
        query_ids: The queries.
    """
    # A document below this rank everywhere scores less than the first k of any one list.
    reach = len(inputs) * (_RRF + found.k) - _RRF
    most = reach if depth is None else min(reach, depth)
    first = [found.trace.candidates(name, query_ids, most) for name in inputs]
    pairs = pl.concat(first).select("query_id", "doc_id").unique()
    ranks = [found.trace.ranks(name, pairs) for name in inputs]
    pairs = pairs.with_columns(
        (rank if depth is None else rank * (rank <= depth)).alias(f"rank {at}")
        for at, rank in enumerate(ranks)
    )
    shares = [
        pl.when(pl.col(f"rank {at}") > 0)
        .then(1 / (_RRF + pl.col(f"rank {at}").cast(pl.Float64)))
        .otherwise(0.0)
        for at in range(len(inputs))
    ]
    return (
        pairs.select(
            "query_id", "doc_id", score=pl.concat_list(shares).list.sort(descending=True).list.sum()
        )
        .sort("query_id", "score", "doc_id", descending=[False, True, True])
        .with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("query_id"))
        .filter(pl.col("rank") <= found.k)
        .select("query_id", "doc_id", "rank")
    )


def _served(ranked: pl.DataFrame, query_ids: Sequence[str]) -> Run:
    """The run of some lists, by ``query_id``, ``doc_id`` and ``rank``."""
    rows = ranked.select("query_id", "doc_id", score=-pl.col("rank").cast(pl.Float64))
    return with_empty(rows, query_ids, SERVED)


def _fused(
    found: Roads,
    stage: Stage,
    inputs: Sequence[str],
    qrels: Qrels,
    measure: Measure,
    query_ids: Sequence[str],
    notes: list[str],
) -> Iterator[Change]:
    """Another fusion of the same lists, if nothing ranks after it."""
    if found.stages[-1].parents != (stage.name,):
        after = found.ranker.name if found.ranker is not None else "another stage"
        notes.append(f"other fusions in {stage.name} were not tried: {after} comes after it")
        return
    yield Change(
        stage.name,
        f"by rank (reciprocal rank fusion, k={_RRF})",
        _served(_by_rank(found, inputs, None, query_ids), query_ids),
        bound=False,
    )
    if len(query_ids) * len(inputs) > _MOST_TUNED:
        notes.append(
            f"weights of {stage.name} were not tried: more than {_MOST_TUNED:,} lists; "
            "karat fuse --tune does"
        )
        return
    try:
        asked = set(query_ids)
        runs = [found.trace.run(name).only(asked) for name in inputs]
        best = tuned(runs, qrels, measure, depth=_DEPTH)
    except KaratError as error:
        notes.append(f"weights of {stage.name} were not tried: {getattr(error, 'what', error)}")
        return
    parts = zip(inputs, best.weights, strict=True)
    weights = ", ".join(f"{name} {weight:.2g}" for name, weight in parts)
    rows = best.run.frame().select("query_id", "doc_id", "score")
    yield Change(
        stage.name,
        f"weights by cross-validation ({weights})",
        with_empty(rows, query_ids, SERVED),
        bound=False,
    )


def _aligned(found: Roads, alignment: Alignment | None) -> Iterator[Change]:
    """Probabilities instead of scores, if nothing ranks after the fusion."""
    if alignment is not None and found.stages[-1].parents == (alignment.stage.name,):
        run = _served(alignment.top, found.trace.query_ids)
        yield Change(alignment.stage.name, "aligned scores (cross-fitted)", run, bound=False)


def _merged(found: Roads, new: Mask, query_ids: Sequence[str]) -> Run:
    """The served lists with new relevant documents where they help most.

    The served documents keep their order among each other.
    """
    chosen: dict[int, list[tuple[float, str]]] = {}
    gained = gain_of(found.grade, found.gain)
    for at in np.flatnonzero(new).tolist():
        chosen.setdefault(int(found.query[at]), []).append((float(gained[at]), found.doc_id[at]))
    gain = {
        (int(query), doc_id): float(gain)
        for query, doc_id, gain, there in zip(
            found.query, found.doc_id, gained, found.held[-1], strict=True
        )
        if there
    }
    merged: list[tuple[str, str, int]] = []
    for index, extra in chosen.items():
        query = found.query_ids[index]
        old = [(gain.get((index, doc), 0.0), doc) for doc in found.served.get(query, [])]
        best = best_merge(old, sorted(extra, reverse=True)[: found.k], found.k)
        merged += [(query, doc_id, rank) for rank, doc_id in enumerate(best, 1)]
    others = ~pl.col("query_id").is_in([found.query_ids[each] for each in chosen])
    same = found.run.frame().filter(pl.col("rank") <= found.k, others)
    same = same.select("query_id", "doc_id", "rank")
    lists = pl.concat([same, pl.DataFrame(merged, schema=same.schema, orient="row")])
    return _served(lists.filter(pl.col("query_id").is_in(list(query_ids))), query_ids)


def best_merge(
    old: Sequence[tuple[float, str]], new: Sequence[tuple[float, str]], k: int
) -> list[str]:
    """The merge of two lists, each in its order, with the highest DCG@k.

    Args:
        old: Gain and document, in the order to keep.
        new: Gain and document, best first.
        k: Depth.
    """
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    old, new = old[:k], new[:k]
    # best[i][j]: highest sum of what follows after i old and j new documents.
    best = np.zeros((len(old) + 1, len(new) + 1))

    def sums(i: int, j: int) -> tuple[float, float]:
        """The same, if the next is an old document, and if it is a new one; -1 without one."""
        at = discount[i + j]
        return (
            old[i][0] * at + best[i + 1, j] if i < len(old) else -1.0,
            new[j][0] * at + best[i, j + 1] if j < len(new) else -1.0,
        )

    for i in range(len(old), -1, -1):
        for j in range(min(len(new), k - 1 - i), -1, -1):
            best[i, j] = max(*sums(i, j), 0.0)
    out: list[str] = []
    i = j = 0
    while i + j < min(k, len(old) + len(new)):
        of_old, of_new = sums(i, j)
        if of_new > of_old:
            out.append(new[j][1])
            j += 1
        else:
            out.append(old[i][1])
            i += 1
    return out
