"""The queries of a report: which are listed, in which order, and what is shown of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import polars as pl

from karat.diagnosis.side_by_side import Ranking, alone, side_by_side
from karat.diagnosis.slices import slices_of
from karat.errors import UsageError
from karat.measures import Measure
from karat.measures.run_pair import Pair
from karat.measures.scores import Scores
from karat.reports.html.content import UNANSWERED, Change, ShownQuery, View
from karat.tables import Documents, Results
from karat.tables.comparison import Comparison
from karat.workflows.offline.evaluation_plan import EvaluationPlan


def views(results: Results, against: Comparison | None) -> list[View]:
    """What the list can show: every measure, of a comparison for every candidate."""
    if against is None:
        return [View(measure) for measure in dict.fromkeys(r.measure for r in results.results)]
    return [View(row.measure, row.candidate) for row in against.differences]


def by_interest(results: Results, against: Comparison | None, measure: Measure) -> list[str]:
    """Queries that contribute most first, or those that score least; unanswered ones too.

    Args:
        results: With each query's values.
        against: The comparison, if there is one.
        measure: The first measure.
    """
    rows = [
        row
        for row in results.per_query
        if row.measure == str(measure) and row.state not in {"undefined", "unjudged"}
    ]
    if against is not None:
        share: dict[str, float] = {}
        for row in against.queries:
            if row.measure == str(measure):
                share[row.query_id] = max(share.get(row.query_id, 0.0), abs(row.share))
        for value in rows:
            if value.value is None or value.state in UNANSWERED:
                share.setdefault(value.query_id, -1.0)
        return sorted(share, key=lambda query: -share[query])
    way = -1.0 if measure.entry.direction == "lower" else 1.0
    first = results.results[0].run
    least = sorted(
        (row for row in rows if row.run == first),
        key=lambda row: (row.value is not None, way * (row.value or 0.0)),
    )
    return [row.query_id for row in least]


def shown(
    asked: EvaluationPlan,
    scored: Sequence[Scores],
    results: Results,
    against: Comparison | None,
    listed: Sequence[str],
    beside: int,
    k: int,
    rel: float,
    documents: Documents | None,
) -> list[ShownQuery]:
    """What the list shows of each query.

    Args:
        asked: What was measured.
        scored: The runs under the first measure, at least.
        results: With each query's values.
        against: The comparison, if there is one.
        listed: The queries, in order.
        beside: Of so many of them, the first, the rankings stand side by side.
        k: To this rank.
        rel: Lowest grade that counts as relevant.
        documents: For slices by documents.
    """
    chosen = list(listed[:beside])
    rankings = _rankings(asked, scored, chosen, k, rel, compared=against is not None)
    texts = asked.about.texts() if asked.about else {}
    value_of = {(row.query_id, row.measure, row.run): row for row in results.per_query}
    columns = views(results, against)
    measures = list(dict.fromkeys(view.measure for view in columns))
    changes = _changes(against)
    slices = _slices(asked, scored, results, against, documents)
    relevant = asked.qrels.judged(chosen, rel)
    found = pl.concat([run.top(chosen, asked.rules.depth) for run in asked.runs])
    unfound = relevant.join(found, on=["query", "doc_id"], how="anti")
    counts, lacking = (
        np.bincount(rows["query"].to_numpy(), minlength=len(chosen)) for rows in (relevant, unfound)
    )
    names = [run.name for run in asked.runs]
    out = []
    for index, query in enumerate(listed):
        held = {
            measure: [
                None if (v := value_of.get((query, measure, name))) is None else v.value
                for name in names
            ]
            for measure in measures
        }
        states = [
            "" if (v := value_of.get((query, measures[0], name))) is None else v.state
            for name in names
        ]
        ranked = index < len(chosen)
        out.append(
            ShownQuery(
                query_id=query,
                text=texts.get(query),
                rankings=rankings[index] if ranked else [],
                values=held,
                states=states,
                changes=[changes.get((query, view)) for view in columns],
                unfound=int(lacking[index]) if ranked else 0,
                relevant=int(counts[index]) if ranked else 0,
                slices=slices.get(query, {}),
            )
        )
    return out


def _changes(against: Comparison | None) -> Mapping[tuple[str, View], Change]:
    if against is None:
        return {}
    return {
        (row.query_id, View(row.measure, row.candidate)): Change(row.difference, row.share)
        for row in against.queries
    }


def _slices(
    asked: EvaluationPlan,
    scored: Sequence[Scores],
    results: Results,
    against: Comparison | None,
    documents: Documents | None,
) -> Mapping[str, dict[tuple[str | None, str], list[str]]]:
    """Query by query the slices it is in, as they were sliced."""
    out: dict[str, dict[tuple[str | None, str], list[str]]] = {}
    if against is not None:
        first = against.differences[0].measure
        for row in against.queries:
            if row.measure == first:
                of_query = out.setdefault(row.query_id, {})
                of_query |= {(row.candidate, name): held for name, held in row.slices.items()}
        return out
    ids = scored[0].evidence.query_ids
    for attribute in dict.fromkeys(str(row.attribute) for row in results.slices):
        # What it was sliced by may not have been handed on; then no query says its slices.
        with suppress(UsageError):
            for value, chosen in slices_of(asked.about, attribute, scored, documents, asked.qrels):
                for place in np.flatnonzero(chosen).tolist():
                    out.setdefault(ids[place], {}).setdefault((None, attribute), []).append(value)
    return out


def _rankings(
    asked: EvaluationPlan,
    scored: Sequence[Scores],
    chosen: Sequence[str],
    k: int,
    rel: float,
    *,
    compared: bool,
) -> list[list[Ranking]]:
    """Query by query, a ranking of each run."""
    first = scored[0]
    place = {query: index for index, query in enumerate(first.evidence.query_ids)}
    queries = [place[query] for query in chosen]
    columns: list[list[Ranking]] = []
    for scores in scored[1:] if compared else scored:
        if compared:
            of_both = first.evidence, scores.evidence
            pair = Pair(first.run, scores.run, asked.qrels, *of_both, asked.rules.depth)
        else:
            pair = alone(scores.run, asked.qrels, scores.evidence, asked.rules.depth)
        both = side_by_side(
            asked.measures[0],
            pair,
            queries,
            k,
            rel,
            condensed=asked.rules.judged_only,
            most=20 if compared else 5,
        )
        if compared and not columns:
            columns.append([ranking for ranking, _ in both])
        columns.append([ranking for _, ranking in both])
    return [list(row) for row in zip(*columns, strict=True)]
