"""Document ids of another world: those of a run that are not the ids that were judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.measures.scores import Scores
from karat.tables import Qrels
from karat.tables.id_spelling import SHARE, Spelling, likely_cause
from karat.tables.notes import Concern, Note

_TOP = 10  # documents of each query that are looked at
_QUERIES = 300  # at most, evenly spread: enough to see how ids are written


@dataclass(frozen=True, slots=True)
class Foreign:
    """What speaks against the ids of a run.

    Attributes:
        judged: Whether any document of any query that counts is judged.
        spelling: How the ids differ from those of the judgments, if that is likely.
    """

    judged: bool
    spelling: Spelling | None

    @property
    def cause(self) -> str:
        """The likely cause, in a few words; empty if none is known."""
        found = self.spelling
        if found is None:
            return ""
        return (
            f"ids differ by {found.cause}: {found.here!r} in the run, {found.there!r} in the "
            "judgments"
        )

    def __str__(self) -> str:
        if self.judged:
            return f"not all documents are found among the judged: {self.cause}"
        none = "none of the documents retrieved is judged"
        asked = (
            "do document ids mean the same in run and qrels? (collapse folds chunks into documents)"
        )
        return f"{none}: {self.cause or asked}"


def foreign_ids(scores: Scores, qrels: Qrels, *, closely: bool = False) -> Foreign | None:
    """Whether the documents of a run have other ids than the judged ones, and why.

    Args:
        scores: Of the run.
        qrels: The judgments.
        closely: Look at every run, and not only where half of the queries have no judged document.

    Returns:
        None if nothing speaks against the ids: documents are judged, and no other spelling would
        find a tenth more of the first ten of each query.
    """
    evidence = scores.full
    held = scores.topics & scores.overall & (evidence.returned > 0)
    if not held.any():
        return None
    found = np.bincount(evidence.query, minlength=evidence.n) > 0
    judged = bool((found & held).any())
    if not closely and 2 * int((found & held).sum()) >= int(held.sum()):
        return None
    chosen = np.flatnonzero(held)
    chosen = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), _QUERIES)).astype(np.int64)]
    query_ids = [evidence.query_ids[index] for index in chosen]
    spelling = _spelling(scores, qrels, query_ids)
    return None if judged and spelling is None else Foreign(judged, spelling)


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
    found = likely_cause(here, there)
    return found if found is not None and found.matched >= SHARE * top.height else None


def of_ids(scores: Scores, qrels: Qrels) -> Iterator[Note]:
    """A note on document ids that are not those of the judgments, if any."""
    found = foreign_ids(scores, qrels)
    if found is not None:
        yield Note(str(found), Concern.INPUT)
