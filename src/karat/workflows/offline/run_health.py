"""Run health: how a run answered its queries, for the health checks of a gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from karat.measures import Measure, parse
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.release.health import Answers
from karat.stats import mean
from karat.stats.quantiles import latency_of
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Run
from karat.tables.returned import common_reason
from karat.workflows.offline.foreign_ids import foreign_ids
from karat.workflows.release.baseline import states, times_of

DEPTH = 10
"""Depth of the judged share if no measure has a cutoff."""


def answers_of(
    scores: Scores,  # scores of the run
    qrels: Qrels,  # the judgments
    known: Mask,  # known failures, which are excluded; shape (n,)
    measures: Iterable[Measure],  # measures of the policy, for their cutoffs
    weighing: Weighing,  # weights of the judged queries
) -> Answers:
    run, latency = scores.run, latency_of(scores.run)
    counting = scores.topics & scores.overall & ~known
    failed = counting & (scores.answered == "failed")
    judged: dict[int, float | None] = {}
    for k in sorted({m.depth for m in measures if m.depth is not None} or {DEPTH}):
        share = parse(f"Judged@{k}")(scores.evidence)
        used = counting & ~np.isnan(share)
        weights, _ = weighing.at(used)
        judged[k] = mean(share[used], weights) if used.any() else None
    ids = scores.evidence.query_ids
    foreign = foreign_ids(scores, qrels, closely=True)
    of_file = run.source == "standard input" or Path(run.source).is_file()
    return Answers(
        run=run.name,
        queries=int(counting.sum()),
        failed=int(failed.sum()),
        missing=int((counting & (scores.answered == "missing")).sum()),
        empty=int((counting & (scores.answered == "empty")).sum()),
        repeated=len(
            repeated_in(run) & {q for q, counts in zip(ids, counting, strict=True) if counts}
        ),
        documents=int(scores.evidence.returned[counting].sum()),
        judged=judged,
        p95_us=None if latency is None else latency.p95_us,
        times_us=times_of(run),
        asked=run.answers.height + int((scores.topics & (scores.answered == "missing")).sum()),
        marked=states(run, scores.rules.silent),
        foreign="" if foreign is None else str(foreign),
        errors=_errors(run, {query for query, no in zip(ids, failed, strict=True) if no}),
        nothing="" if run.answers.height else f"the run{' file' * of_file} is empty",
    )


def repeated_in(run: Run) -> set[str]:
    """Queries whose answer contained duplicate documents, as recorded in the run."""
    if "repeated" not in run.answers.columns:
        return set()
    return set(run.answers.filter(pl.col("repeated") > 0)["query_id"])


def _errors(run: Run, failed: set[str]) -> dict[str, int]:
    """Number of failed queries by reason; empty if no reasons were recorded."""
    if "error" not in run.answers.columns or not failed:
        return {}
    errors = dict(run.answers.select("query_id", "error").iter_rows())
    return dict(
        Counter(
            common_reason(errors[query])
            for query in run.answers["query_id"]
            if query in failed and errors[query]
        )
    )
