"""What simulated people can ask, and what each arm shows them for it: a golden set and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError
from karat.online.simulate.wording import (
    ADD,
    DROP,
    OWN,
    REORDER,
    RESPELL,
    SUBSTITUTE,
    WORDINGS,
    available,
    wordings,
)
from karat.tables import Qrels, Queries, Run
from karat.tables.online.evaluation import DIMENSIONS

DEPTH = 30  # results kept of each ranking: three pages of ten
_SHAKEN = {OWN: 0.0, ADD: 0.3, DROP: 0.8, SUBSTITUTE: 1.0, RESPELL: 1.0, REORDER: 0.0}
"""How far another wording's ranking is from that of the query's own words, in log ranks."""
_DRAWN = {OWN: 0.0, ADD: 0.6, DROP: 0.0, SUBSTITUTE: 0.2, RESPELL: 0.0, REORDER: 0.0}
"""How much nearer to the top relevant documents come."""
_NOTHING = {OWN: 0.0, ADD: 0.06, DROP: 0.0, SUBSTITUTE: 0.06, RESPELL: 0.3, REORDER: 0.0}
"""Chance that a wording matches nothing."""
_FALLBACK = 0.4  # chance that something is shown all the same, found by a relaxed query


@dataclass(frozen=True)
class Shelf:
    """What can be asked and what is shown, as arrays.

    A run has what an arm returned for the original text of a query. For other wordings that is
    unknown: its ranking is perturbed, more for less specific wordings.
    """

    arms: tuple[str, ...]  # names of the runs
    documents: pl.Series
    texts: pl.Series  # text of each wording; shape (queries × wordings), null where there is none
    has: NDArray[np.bool_]  # whether there is that wording; shape (queries, wordings)
    # Place of each result in `documents`, best first, -1 where there is none; shape (arms, queries,
    # wordings, depth)
    found: NDArray[np.int32]
    gain: NDArray[np.float32]  # of each result, from 0 to 1; the same shape
    matched: NDArray[np.int32]  # documents that matched; shape (arms, queries, wordings)
    raw: NDArray[np.int32]  # the same before any fallback
    weight: NDArray[np.float64]  # how often each query is asked; sums to 1
    # What the log records about each query besides its text, by name
    attributes: Mapping[str, pl.Series]


def stock(
    qrels: Qrels,
    runs: Sequence[Run],
    rng: np.random.Generator,
    *,
    queries: Queries | None = None,
    attributes: Sequence[str] = (),
    weight: Mapping[str, float] | None = None,
) -> Shelf:
    """The shelf of a golden set and of the runs that are its arms.

    Args:
        qrels: Grades; a document without one has gain 0, as has one graded below 0.
        runs: One for each arm.
        rng: Draws words and shakes rankings.
        queries: Texts and weights; without texts a query's id is what is typed.
        attributes: Columns of ``queries`` that the log shall hold; one that is called as what
            results are sliced by anyway (``class``) becomes ``query_NAME``.
        weight: How often each query is asked, in any unit; by default the column ``weight`` of
            ``queries``, else all alike.

    Raises:
        InputError: no query is in a run, or all weigh nothing.
        UsageError: no such attribute.
    """
    texts = queries.texts() if queries is not None else {}
    graded = qrels.query_ids
    asked = list(queries.frame["query_id"]) if queries is not None else list(graded)
    run_ids = {query_id for run in runs for query_id in run.query_ids}
    if not run_ids & set(asked):
        raise InputError(
            f"no query of {runs[0].name} is among the {len(asked):,} of {qrels.source}",
            fix="take qrels, queries and runs of the same golden set",
        )
    weights = weight if weight is not None else queries.weights() if queries is not None else {}
    share = np.array([weights.get(query_id, 0.0 if weights else 1.0) for query_id in asked])
    if not share.sum() > 0:
        raise InputError("all queries weigh 0, so no query would be asked", file=qrels.source)
    top = [run.top(asked, DEPTH) for run in runs]
    ids = pl.concat([each["doc_id"] for each in top]).unique(maintain_order=True)
    place = pl.DataFrame({"doc_id": ids, "place": np.arange(len(ids), dtype=np.int32)})
    most = qrels.scale[1]
    gains = qrels.frame.select(
        pl.col("query_id"),
        "doc_id",
        gain=((2.0 ** pl.col("grade").clip(0) - 1) / max(2.0**most - 1, 1e-9)).clip(0, 1),
    )
    known = pl.DataFrame({"query_id": asked, "query": np.arange(len(asked))})
    gains = gains.join(known, on="query_id").select("query", "doc_id", "gain")
    shape = (len(runs), len(asked), DEPTH)
    found, gain = np.full(shape, -1, np.int32), np.zeros(shape, np.float32)
    matched = np.zeros(shape[:2], np.int32)
    for arm, (run, rows) in enumerate(zip(runs, top, strict=True)):
        joined = rows.join(place, on="doc_id", how="left", maintain_order="left")
        joined = joined.join(gains, on=["query", "doc_id"], how="left", maintain_order="left")
        at = (arm, joined["query"].to_numpy(), joined["rank"].to_numpy() - 1)
        found[at] = joined["place"].to_numpy()
        gain[at] = joined["gain"].fill_null(0.0).to_numpy()
        counts = dict(zip(run.query_ids, np.diff(run.starts).tolist(), strict=True))
        matched[arm] = [counts.get(query_id, 0) for query_id in asked]
    columns = {}
    for name in attributes:
        values = (queries or Queries(pl.DataFrame({"query_id": asked}))).attribute(name)
        called = f"query_{name}" if name in DIMENSIONS else name
        columns[called] = pl.Series([values.get(query_id) for query_id in asked], dtype=pl.String)
    typed = [texts.get(query_id, query_id) for query_id in asked]
    return shelve([run.name for run in runs], ids, found, gain, matched, typed, share, rng, columns)


def shelve(
    arms: Sequence[str],
    documents: pl.Series,
    found: NDArray[np.int32],
    gain: NDArray[np.float32],
    matched: NDArray[np.int32],
    texts: Sequence[str],
    weight: NDArray[np.float64],
    rng: np.random.Generator,
    attributes: Mapping[str, pl.Series] | None = None,
) -> Shelf:
    """A shelf of what arms found for the queries' own words.

    Args:
        arms: Their names.
        documents: Ids.
        found: Places in ``documents``, -1 behind the last; shape (arms, queries, depth).
        gain: From 0 to 1; the same shape.
        matched: Documents that matched; shape (arms, queries).
        texts: What is typed.
        weight: How often each is asked, in any unit.
        rng: Draws words and shakes rankings.
        attributes: What the log says about each query.
    """
    worded = wordings(texts, rng)
    arms_, queries, depth = found.shape
    shape = (arms_, queries, len(WORDINGS), depth)
    all_found, all_gain = np.full(shape, -1, np.int32), np.zeros(shape, np.float32)
    all_matched = np.zeros(shape[:3], np.int32)
    raw = np.zeros(shape[:3], np.int32)
    for wording in range(len(WORDINGS)):
        nothing = rng.random((1, queries)) < _NOTHING[wording]
        relaxed = nothing & (rng.random((1, queries)) < _FALLBACK)
        score = -np.log1p(np.arange(depth)) + _DRAWN[wording] * gain
        if _SHAKEN[wording]:
            # The same shake for all arms: people see words change, and arms differ as before.
            score = score + _SHAKEN[wording] * rng.standard_normal((1, queries, depth))
        order = np.argsort(np.where(found < 0, np.inf, -score), axis=2, kind="stable")
        empty = nothing & ~relaxed
        all_found[:, :, wording] = np.where(
            empty[..., None], -1, np.take_along_axis(found, order, axis=2)
        )
        all_gain[:, :, wording] = np.where(
            empty[..., None], 0, np.take_along_axis(gain, order, axis=2)
        )
        all_matched[:, :, wording] = np.where(empty, 0, matched)
        raw[:, :, wording] = np.where(nothing, 0, matched)
    flat = [text for row in worded for text in row]
    return Shelf(
        tuple(arms),
        documents.rename("doc_id"),
        pl.Series("query", flat, dtype=pl.String),
        available(worded),
        all_found,
        all_gain,
        all_matched,
        raw,
        np.asarray(weight, np.float64) / np.sum(weight),
        dict(attributes or {}),
    )
