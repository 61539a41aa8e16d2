"""Run health: how a run answered its queries, for the health checks of a gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.measures import Measure, parse
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.stats import mean
from karat.stats.quantiles import latency_of, times_of
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Run
from karat.tables.id_spelling import SHARE, Spelling, likely_cause
from karat.tables.notes import Concern, Note
from karat.tables.returned import common_reason

if TYPE_CHECKING:
    from karat.release.health import Answers

_TOP = 10  # documents checked per query
_QUERIES = 300  # queries checked at most, evenly spread


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Evidence that the document ids of a run are not those of the judgments."""

    judged: bool  # whether any document returned for a counted query is judged
    spelling: Spelling | None  # the likely difference in how ids are written, if any

    @property
    def cause(self) -> str:
        """The likely cause, in a few words; empty if none is known."""
        spelling = self.spelling
        if spelling is None:
            return ""
        return (
            f"ids differ by {spelling.cause}: {spelling.here!r} in the run, {spelling.there!r} in "
            "the judgments"
        )

    def __str__(self) -> str:
        if self.judged:
            return f"some document ids do not match the judgments: {self.cause}"
        none = "no retrieved document is judged"
        question = (
            "do document ids mean the same in run and qrels? (collapse folds chunks into documents)"
        )
        return f"{none}: {self.cause or question}"


def foreign_ids(scores: Scores, qrels: Qrels, *, closely: bool = False) -> SourceFile | None:
    """Whether the document ids of a run differ from those of the judgments, and how.

    Returns:
        None if the ids match: some documents are judged, and no other spelling would match a tenth
        more of the first ten of each query.
    """
    evidence = scores.full
    counted = scores.topics & scores.overall & (evidence.returned > 0)
    if not counted.any():
        return None
    has_judged = np.bincount(evidence.query, minlength=evidence.n) > 0
    judged = bool((has_judged & counted).any())
    if not closely and 2 * int((has_judged & counted).sum()) >= int(counted.sum()):
        return None
    chosen = np.flatnonzero(counted)
    chosen = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), _QUERIES)).astype(np.int64)]
    query_ids = [evidence.query_ids[index] for index in chosen]
    spelling = _spelling(scores, qrels, query_ids)
    return None if judged and spelling is None else SourceFile(judged, spelling)


def _spelling(scores: Scores, qrels: Qrels, query_ids: list[str]) -> Spelling | None:
    top = scores.run.top(query_ids, _TOP)
    there: dict[str, set[str]] = {}
    rows = qrels.frame.filter(pl.col("query_id").is_in(query_ids)).select("query_id", "doc_id")
    for query_id, doc_id in rows.iter_rows():
        there.setdefault(query_id, set()).add(doc_id)
    here: dict[str, list[str]] = {}
    for place, doc_id in top.select("query", "doc_id").iter_rows():
        query_id = query_ids[place]
        if doc_id not in there.get(query_id, ()):
            here.setdefault(query_id, []).append(doc_id)
    cause = likely_cause(here, there)
    return cause if cause is not None and cause.matched >= SHARE * top.height else None


def of_ids(scores: Scores, qrels: Qrels) -> Iterator[Note]:
    """A note if document ids do not match those of the judgments."""
    foreign = foreign_ids(scores, qrels)
    if foreign is not None:
        yield Note(str(foreign), Concern.INPUT)


DEPTH = 10  # depth of the judged share if no measure has a cutoff


def answers_of(
    scores: Scores,  # scores of the run
    qrels: Qrels,  # the judgments
    known: Mask,  # known failures, which are excluded; shape (n,)
    measures: Iterable[Measure],  # measures of the policy, for their cutoffs
    weighing: Weighing,  # weights of the judged queries
) -> Answers:
    from karat.release.health import Answers
    from karat.workflows.release.baseline import states

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
