"""Foreign ids: detects document ids of a run that are not those of the judgments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.measures.scores import Scores
from karat.tables import Qrels
from karat.tables.id_spelling import SHARE, Spelling, likely_cause
from karat.tables.notes import Concern, Note

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

    Args:
        scores: Scores of the run.
        qrels: The judgments.
        closely: Check every run, not only one where half of the queries have no judged document.

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
