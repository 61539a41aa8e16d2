"""Counted queries: the tables of a gate's report, without its known failures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from karat.errors import UsageError
from karat.tables import Qrels, Queries, Run
from karat.tables.comparison import Comparison
from karat.tables.release.gate import Gate
from karat.workflows.offline import inputs
from karat.workflows.offline.compare import compare


def known_ids(gate: Gate | None) -> frozenset[str]:
    """The known failures that a gate excludes from every rule."""
    return frozenset(() if gate is None else (row.query_id for row in gate.known_failures))


def without(
    query_ids: Collection[str], qrels: Qrels, queries: Queries | None, runs: Sequence[Run]
) -> tuple[Qrels, Queries | None, list[Run]]:
    """Judgments, queries and runs without some queries."""
    if not query_ids:
        return qrels, queries, list(runs)
    others = ~pl.col("query_id").is_in(sorted(query_ids))
    judged = qrels.frame if qrels.subtopics is None else qrels.subtopics
    judged = judged.filter(others)
    if not judged.height:
        raise UsageError(
            "every judged query is a known failure, so there is nothing to show",
            fix="leave --report out",
        )
    return (
        Qrels(judged, qrels.source, qrels.scale, qrels.without - set(query_ids)),
        None if queries is None else Queries(queries.frame.filter(others), queries.source),
        [
            Run.from_batches(
                run.name,
                [run.frame().filter(others).drop("rank")],
                answers=run.answers.filter(others),
                about=run.about,
                source=run.source,
            )
            for run in runs
        ],
    )


def compare_gated(
    gate: Gate,
    qrels: Any,
    runs: Sequence[Run],
    measures: Sequence[str],
    *,
    queries: Any = None,
    **settings: Any,
) -> Comparison:
    """Compare a gate's two runs over the queries that the gate counts.

    Args:
        gate: The gate's result.
        qrels: As given to ``gate``.
        runs: The baseline and the candidate.
        measures: The measures of the policy.
        queries: As given to ``gate``.
        settings: Further arguments of ``compare``.
    """
    about = inputs.about(queries, qrels)
    judged, about, counting = without(known_ids(gate), inputs.qrels(qrels), about, runs)
    baseline, candidate = counting
    return compare(judged, baseline, candidate, measures, queries=about, **settings)
