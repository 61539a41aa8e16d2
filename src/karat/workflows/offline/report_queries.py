"""The queries of a report: which are listed, in what order, and with what details."""

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
    """Views of the list: every measure; in a comparison, for every candidate."""
    if against is None:
        return [View(measure) for measure in dict.fromkeys(r.measure for r in results.results)]
    return [View(row.measure, row.candidate) for row in against.differences]


def by_interest(results: Results, against: Comparison | None, measure: Measure) -> list[str]:
    """Queries by contribution to the difference, or lowest score first; with unanswered ones."""
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
    plan: EvaluationPlan,
    scored: Sequence[Scores],  # scores of the runs under the first measure, at least
    results: Results,  # results with `per_query` values
    against: Comparison | None,  # the comparison, if any
    listed: Sequence[str],  # the queries, in order
    beside: int,  # number of queries, from the first, whose rankings are shown side by side
    k: int,  # ranks shown
    rel: float,  # lowest relevant grade
    documents: Documents | None,  # for slices by documents
) -> list[ShownQuery]:
    chosen = list(listed[:beside])
    rankings = _rankings(plan, scored, chosen, k, rel, compared=against is not None)
    texts = plan.about.texts() if plan.about else {}
    value_of = {(row.query_id, row.measure, row.run): row for row in results.per_query}
    columns = views(results, against)
    measures = list(dict.fromkeys(view.measure for view in columns))
    changes = _changes(against)
    slices = _slices(plan, scored, results, against, documents)
    relevant = plan.qrels.judged(chosen, rel)
    retrieved = pl.concat([run.top(chosen, plan.rules.depth) for run in plan.runs])
    unfound = relevant.join(retrieved, on=["query", "doc_id"], how="anti")
    counts, lacking = (
        np.bincount(rows["query"].to_numpy(), minlength=len(chosen)) for rows in (relevant, unfound)
    )
    names = [run.name for run in plan.runs]
    out = []
    for index, query in enumerate(listed):
        values_of_query = {
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
                values=values_of_query,
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
    plan: EvaluationPlan,
    scored: Sequence[Scores],
    results: Results,
    against: Comparison | None,
    documents: Documents | None,
) -> Mapping[str, dict[tuple[str | None, str], list[str]]]:
    out: dict[str, dict[tuple[str | None, str], list[str]]] = {}
    if against is not None:
        first = against.differences[0].measure
        for row in against.queries:
            if row.measure == first:
                of_query = out.setdefault(row.query_id, {})
                of_query |= {(row.candidate, name): values for name, values in row.slices.items()}
        return out
    ids = scored[0].evidence.query_ids
    for attribute in dict.fromkeys(str(row.attribute) for row in results.slices):
        # The documents it was sliced by may be missing here; then no slices are shown.
        with suppress(UsageError):
            for value, chosen in slices_of(plan.about, attribute, scored, documents, plan.qrels):
                for place in np.flatnonzero(chosen).tolist():
                    out.setdefault(ids[place], {}).setdefault((None, attribute), []).append(value)
    return out


def _rankings(
    plan: EvaluationPlan,
    scored: Sequence[Scores],
    chosen: Sequence[str],
    k: int,
    rel: float,
    *,
    compared: bool,
) -> list[list[Ranking]]:
    first = scored[0]
    place = {query: index for index, query in enumerate(first.evidence.query_ids)}
    queries = [place[query] for query in chosen]
    columns: list[list[Ranking]] = []
    for scores in scored[1:] if compared else scored:
        if compared:
            of_both = first.evidence, scores.evidence
            pair = Pair(first.run, scores.run, plan.qrels, *of_both, plan.rules.depth)
        else:
            pair = alone(scores.run, plan.qrels, scores.evidence, plan.rules.depth)
        both = side_by_side(
            plan.measures[0],
            pair,
            queries,
            k,
            rel,
            condensed=plan.rules.judged_only,
            most=20 if compared else 5,
        )
        if compared and not columns:
            columns.append([ranking for ranking, _ in both])
        columns.append([ranking for _, ranking in both])
    return [list(row) for row in zip(*columns, strict=True)]
