"""Explain: why one query scored what it did, rank by rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from karat.errors import UsageError, nearest
from karat.measures import Measure, parse
from karat.measures.evidence import Evidence
from karat.measures.scores import Rules, Scores, score
from karat.tables import Qrels, Queries, Run
from karat.tables.results import Explanation, Line
from karat.workflows.offline import inputs

TOP = 10


def explain(
    qrels: Any,
    run: Any,
    query_id: str,
    measure: str = "nDCG@10",
    *,
    queries: Any = None,
    documents: Any = None,
    collapse: str | None = None,
    rel: float | None = None,
    scale: str | tuple[float, float] | None = None,
    top: int = TOP,
) -> Explanation:
    """Explain one value.

    Args:
        qrels: The judgments, in any form that ``evaluate`` accepts.
        run: The run, in any form that ``evaluate`` accepts.
        query_id: The query to explain.
        measure: Name of the measure.
        queries: Queries whose texts to show, as in ``evaluate``.
        documents: The chunks, for ``collapse``, as in ``evaluate``.
        collapse: Column of ``documents`` that names the document of each chunk.
        rel: Lowest relevant grade, where the measure does not set it; 1 if None.
        scale: Lowest and highest grade, as in ``evaluate``.
        top: Number of ranks to show at least.

    Raises:
        UsageError: an unknown measure; more than one run; or a query that has no judgments or no
            relevant document.
        InputError: a file or table that cannot be read.
    """
    parsed = parse(measure, rel=rel)
    qrels, runs = inputs.qrels(qrels).on_scale(scale), inputs.runs(run)
    if len(runs) != 1:
        raise UsageError(f"expected one run, got {len(runs)}")
    run = (inputs.collapsed(runs, documents, collapse) if collapse else runs)[0]
    judged = qrels.frame.filter(pl.col("query_id") == query_id)
    if not judged.height:
        raise _unjudged(query_id, qrels, run, inputs.queries(queries))
    rows = run.of(query_id)
    alone = _alone(run, query_id, rows)
    scores = score(alone, qrels, [parsed], Rules(rel=rel or 1.0))
    index = scores.evidence.query_ids.index(query_id)
    value = float(scores.values[parsed][index])
    state = scores.state(parsed, index)
    lines, notes = _lines(scores.evidence.at(np.array([index])), parsed, rows, judged, value)
    if not math.isnan(value):
        notes += _could_be(scores, parsed, index)
    shown = [
        line
        for line in lines
        if (line.rank or 0) <= max(top, parsed.depth or 0) or line.contribution
    ]
    return Explanation(
        run=run.name,
        measure=str(parsed),
        query_id=query_id,
        value=None if math.isnan(value) else value,
        state=state,
        lines=shown,
        missed=_missed(judged, rows, parsed, rel or 1.0),
        hidden=len(lines) - len(shown),
        notes=notes,
        text=_text(inputs.queries(queries), query_id),
    )


def _unjudged(query_id: str, qrels: Qrels, run: Run, about: Queries | None) -> UsageError:
    if about is not None and query_id in about.no_answer():
        return UsageError(
            f"query {query_id!r} is marked no_answer, so no document scores anything",
            fix="evaluate the run to see how it handles such queries",
        )
    if query_id in qrels.without:
        return UsageError(
            f"query {query_id!r} has no relevant document, so no document scores anything"
        )
    retrieved = query_id in set(run.answers["query_id"])
    where = "has no judgments" if retrieved else "is in neither qrels nor run"
    return UsageError(
        f"query {query_id!r} {where}, so there is nothing to explain",
        nearest=nearest(query_id, qrels.query_ids),
    )


def _could_be(scores: Scores, measure: Measure, index: int) -> list[str]:
    value, band, bounds = (
        scores.values[measure][index],
        scores.ties(measure),
        scores.bounds(measure),
    )
    notes = []
    if band.low is not None and band.high is not None:
        low, high = band.low[index], band.high[index]
        if f"{low:.4f}" != f"{high:.4f}":
            mean = "" if band.expected is None else f", {band.expected[index]:.4f} on average"
            notes.append(f"other orders of tied documents: {low:.4f} to {high:.4f}{mean}")
    if bounds is not None:
        low, high = bounds[0][index], bounds[1][index]
        if f"{low:.4f}" != f"{value:.4f}" or f"{high:.4f}" != f"{value:.4f}":
            scale = scores.evidence.scale
            notes.append(
                f"other grades of unjudged documents, {scale[0]:g} to {scale[1]:g}: {low:.4f} to "
                f"{high:.4f}"
            )
    return notes


def _text(queries: Queries | None, query_id: str) -> str | None:
    if queries is None or "text" not in queries.frame.columns:
        return None
    texts = queries.frame.filter(pl.col("query_id") == query_id)["text"].to_list()
    return texts[0] if texts else None


def _alone(run: Run, query_id: str, rows: pl.DataFrame) -> Run:
    frame = rows.select(pl.lit(query_id).alias("query_id"), "doc_id", "score")
    answers = run.answers.filter((pl.col("query_id") == query_id) & (pl.col("state") != "ok"))
    return Run.from_batches(run.name, [frame], answers=answers, source=run.source)


def _lines(
    evidence: Evidence, measure: Measure, rows: pl.DataFrame, judged: pl.DataFrame, value: float
) -> tuple[list[Line], list[str]]:
    grades = dict(judged.select("doc_id", "grade").iter_rows())
    terms = measure.terms(evidence)
    at: dict[int, tuple[float, float, float]] = {}
    notes: list[str] = []
    if terms is None:
        notes.append(f"{measure} is not a sum over documents, so documents have no share of it")
    elif not math.isnan(value):
        shares = _adding_up(terms.term / terms.norm[0], value)
        for place, rank in enumerate(evidence.rank.tolist()):
            at[rank] = (float(terms.gain[place]), float(terms.discount[place]), shares[place])
    doc_ids, points = rows["doc_id"].to_list(), rows["score"].to_list()
    lines = []
    for index, (doc_id, point) in enumerate(zip(doc_ids, points, strict=True)):
        gain, discount, share = at.get(index + 1, (None, None, None))
        if terms is not None and share is None and not math.isnan(value):
            gain, discount, share = 0.0, None, 0.0
        neighbours = points[max(0, index - 1) : index] + points[index + 1 : index + 2]
        grade, tied = grades.get(doc_id), point in neighbours
        lines.append(Line(index + 1, doc_id, point, grade, gain, discount, share, tied))
    return lines, notes


def _adding_up(shares: np.ndarray, value: float) -> list[float]:
    """Shares adjusted in the last bits so that their exact sum rounds to the value."""
    out: list[float] = shares.tolist()
    if not out:
        return out
    by_size = sorted((place for place in range(len(out)) if out[place]), key=lambda i: abs(out[i]))
    for turn in range(8):
        off = value - math.fsum(out)
        if off == 0 or not by_size:
            break
        # A sum halfway between two floats would alternate between them; a small share can take
        # half of the difference.
        out[by_size[-1 if turn % 2 == 0 else 0]] += off if turn % 2 == 0 else off / 2
    return out


def _missed(judged: pl.DataFrame, rows: pl.DataFrame, measure: Measure, rel: float) -> list[Line]:
    level = measure.settings.get("rel", rel)
    lost = (
        judged.filter(pl.col("grade") >= level)
        .join(rows, on="doc_id", how="anti")
        .sort(["grade", "doc_id"], descending=[True, False])
    )
    return [
        Line(None, doc_id, None, grade, None, None, None, tied=False)
        for doc_id, grade in lost.select("doc_id", "grade").iter_rows()
    ]
