"""Run: the rankings of one system, and how it answered each query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError
from karat.tables.column_names import renamed
from karat.tables.incoming import conform, from_pairs, ranking, refuse_rows, to_polars
from karat.tables.ranking import Settled, settle
from karat.tables.schema import ANSWERS, RANKINGS, Column

_INCOMING: tuple[Column, ...] = (
    *RANKINGS[:3],
    Column("rank", pl.Int64(), "only checked against the score", optional=True),
)


class Run:
    """The rankings of one system, sorted and checked.

    Use ``Run.from_dict``, ``from_frame`` or ``from_batches``. Rankings are sorted by score
    descending, then by document id descending by bytes (``karat.tables.ranking``).

    Attributes:
        name: Its name in results, usually the stem of a file.
        query_ids: Queries with at least one document, in order of first appearance.
        starts: First row of each of these queries, then the row count; shape (queries + 1,).
        rows: ``doc_id``, ``score`` and ``doc_hash``, query by query, best first.
        tie_start: First row of each group of two or more equal scores.
        tie_size: Rows of that group.
        contradicting: Queries whose given ranks contradict their scores (the scores are used).
        answers: One row for each query (``schema.ANSWERS``).
        about: Metadata: name, configuration, commit, corpus fingerprint, time.
    """

    def __init__(
        self,
        name: str,
        parts: list[Settled],
        answers: pl.DataFrame | None = None,
        about: Mapping[str, str] | None = None,
        source: str | None = None,
    ) -> None:
        self.name = name
        self.source = source or name
        self.about = dict(about or {})
        self.query_ids = [query for part in parts for query in part.query_ids]
        counts = [part.counts for part in parts]
        self.starts: NDArray[np.int64] = np.concatenate(([0], *counts)).cumsum()
        heights = np.concatenate(([0], [part.rows.height for part in parts])).cumsum()
        self.rows = (
            pl.concat([part.rows for part in parts])
            if parts
            else pl.DataFrame(
                schema={"doc_id": pl.String, "score": pl.Float64, "doc_hash": pl.UInt64}
            )
        )
        none = np.empty(0, np.int64)
        shifted = [part.tie_start + at for part, at in zip(parts, heights, strict=False)]
        self.tie_start: NDArray[np.int64] = np.concatenate((none, *shifted))
        self.tie_size: NDArray[np.int64] = np.concatenate((none, *(p.tie_size for p in parts)))
        self.contradicting = frozenset(query for part in parts for query in part.contradicted)
        self.answers = self._answers(answers)

    @classmethod
    def from_batches(
        cls,
        name: str,
        batches: Iterable[pl.DataFrame],
        *,
        answers: pl.DataFrame | None = None,
        about: Mapping[str, str] | None = None,
        source: str | None = None,
        mapped: Callable[..., Iterable[Settled]] = map,
    ) -> Run:
        """A run from frames of rows in any order; a query may be split between batches.

        Args:
            name: Its name in results.
            batches: Frames of ``query_id``, ``doc_id``, ``score`` and optionally ``rank``.
            answers: States of queries (``schema.ANSWERS``); queries with rows are ``ok``.
            about: Metadata of the run.
            source: Its name in error messages.
            mapped: ``map``, or a version of it that uses threads.

        Raises:
            InputError: a NaN score, a duplicate document for one query, or a state that is unknown
                or contradicts the rows.
        """
        source = source or name
        parts = list(mapped(lambda batch: settle(batch, source), _whole_queries(batches)))
        seen = [query for part in parts for query in part.query_ids]
        if len(set(seen)) < len(seen):
            # The rows of a query are not adjacent: sort everything as one batch.
            whole = settle(pl.concat([_unsettle(part) for part in parts]), source)
            contradicted = [query for part in parts for query in part.contradicted]
            parts = [replace(whole, contradicted=contradicted)]
        return cls(name, parts, answers, about, source)

    @classmethod
    def from_dict(
        cls,
        scores: Mapping[str, Any],
        name: str = "run",
        source: str | None = None,
    ) -> Run:
        """A run from ``{query_id: {doc_id: score}}``, or from ranked lists.

        A list has ids, ``(id, score)`` pairs, or dicts with ``id`` and optionally ``score``, best
        first. Ids without scores keep their order; of duplicate documents the first counts. An
        empty list or dict is an empty answer (``empty``); ``None`` means no answer (``failed``).

        Raises:
            InputError: an id that is not text, a score that is not a number, or a ranking that has
                no order, such as a set.
        """
        source = source or name
        listed = {
            query: ranking(docs, query, source)
            for query, docs in scores.items()
            if docs is not None and not isinstance(docs, Mapping)
        }
        paired = {query: ranked.by_doc for query, ranked in listed.items()}
        frame = from_pairs({**scores, **paired}, "score", source)
        if any(ranked.scored for ranked in listed.values()):
            # Scores decide, not the order; a note reports where the two differ.
            place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query_id")
            frame = frame.with_columns(
                rank=pl.when(pl.col("query_id").is_in(list(listed))).then(place)
            )
        states = {
            query: "failed" if docs is None else "ok" if paired.get(query, docs) else "empty"
            for query, docs in scores.items()
        }
        answers = pl.DataFrame(
            {
                "query_id": list(states),
                "state": list(states.values()),
                "repeated": [listed[q].repeated or None if q in listed else None for q in states],
            },
            schema={"query_id": pl.String, "state": pl.String, "repeated": pl.Int64},
        )
        if not answers["repeated"].count():
            answers = answers.drop("repeated").filter(pl.col("state") != "ok")
        rows = conform(frame, _INCOMING, source)
        return cls.from_batches(name, [rows], answers=answers, source=source)

    @classmethod
    def from_frame(cls, frame: Any, name: str = "run", source: str | None = None) -> Run:
        """A run from any data frame Narwhals reads, with the columns of ``schema.RANKINGS``.

        Column names of other tools, such as ``qid`` and ``docno``, are recognised. Without scores
        the ranks decide.

        Raises:
            InputError: a missing column, an empty id, a NaN score, or a duplicate document for one
                query.
        """
        source = source or name
        rows = conform(renamed(to_polars(frame, source), "run", source), _INCOMING, source)
        return cls(name, [settle(rows, source)] if rows.height else [], source=source)

    @property
    def contradicted(self) -> int:
        """Number of queries whose given ranks contradict their scores."""
        return len(self.contradicting)

    def frame(self) -> pl.DataFrame:
        """``query_id``, ``doc_id``, ``score``, ``rank`` (see ``schema.RANKINGS``)."""
        counts = np.diff(self.starts)
        rank = np.arange(1, self.rows.height + 1) - np.repeat(self.starts[:-1], counts)
        return self.rows.select(
            pl.Series("query_id", self.query_ids, dtype=pl.String).gather(
                np.repeat(np.arange(len(counts)), counts)
            ),
            "doc_id",
            "score",
            pl.Series("rank", rank, dtype=pl.UInt32),
        )

    def of(self, query_id: str) -> pl.DataFrame:
        """The ranking of one query: ``doc_id``, ``score``; no rows if it is not in the run."""
        try:
            index = self.query_ids.index(query_id)
        except ValueError:
            return self.rows.clear().drop("doc_hash")
        start, stop = int(self.starts[index]), int(self.starts[index + 1])
        return self.rows.slice(start, stop - start).drop("doc_hash")

    def top(self, query_ids: Sequence[str], k: int | None = None) -> pl.DataFrame:
        """The first k documents of some queries, query by query, best first; all if k is None.

        Returns:
            ``query`` (index into ``query_ids``), ``doc_id``, and ``rank`` from 1. Queries that are
            not in the run have no rows.
        """
        start, counts = self.places(query_ids, k)
        rank = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        return pl.DataFrame(
            {
                "query": np.repeat(np.arange(len(start)), counts),
                "doc_id": self.rows["doc_id"].gather(np.repeat(start, counts) + rank - 1),
                "rank": rank,
            }
        )

    def places(
        self, query_ids: Sequence[str], k: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First row of each query, and how many documents it has: k at most, 0 if not there."""
        place = {query: index for index, query in enumerate(self.query_ids)}
        at = np.array([place.get(query, -1) for query in query_ids], np.int64)
        returned = np.append(np.diff(self.starts), 0)[at]  # the last is for queries not in the run
        return self.starts[at], returned if k is None else np.minimum(returned, min(k, 1 << 62))

    def ties_of(self, row: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First row and size of the tie of each row; itself and 1 if its score is alone."""
        if not len(self.tie_start):
            return row, np.ones(len(row), np.int64)
        group = np.maximum(np.searchsorted(self.tie_start, row, side="right") - 1, 0)
        start, size = self.tie_start[group], self.tie_size[group]
        inside = (row >= start) & (row < start + size)
        return np.where(inside, start, row), np.where(inside, size, 1)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """``{query_id: {doc_id: score}}``, best first; queries with an empty answer are empty."""
        out: dict[str, dict[str, float]] = {}
        for query_id, doc_id, score, _ in self.frame().iter_rows():
            out.setdefault(query_id, {})[doc_id] = score
        for query_id, state in self.answers.select("query_id", "state").iter_rows():
            if state == "empty":
                out.setdefault(query_id, {})
        return out

    def named(self, name: str) -> Run:
        """A copy of the run with another name."""
        again = copy(self)
        again.name = name
        return again

    def only(self, query_ids: Collection[str]) -> Run:
        """The run restricted to some queries."""
        asked = pl.col("query_id").is_in(pl.Series(list(query_ids), dtype=pl.String).implode())
        return self._again(self.frame().filter(asked), self.answers.filter(asked))

    def to_depth(self, k: int) -> Run:
        """The run cut to the first k documents of each query; k is 1 or more."""
        return self._again(self.frame().filter(pl.col("rank") <= k))

    def in_single_precision(self) -> Run:
        """The run as trec_eval 9 sees it: scores rounded to float32, so more of them tie."""
        frame = self.frame().with_columns(pl.col("score").cast(pl.Float32).cast(pl.Float64))
        return self._again(frame)

    def collapse(self, parents: pl.DataFrame) -> Run:
        """Fold chunks into documents: each document once, at its best-ranked chunk.

        Args:
            parents: ``doc_id`` and ``parent`` (``Documents.parents``); a document that is not
                listed stays itself.
        """
        folded = (
            self.frame()
            .join(parents, on="doc_id", how="left", maintain_order="left")
            .with_columns(doc_id=pl.coalesce("parent", "doc_id"))
            .unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        )
        return self._again(folded)

    def _again(self, frame: pl.DataFrame, answers: pl.DataFrame | None = None) -> Run:
        """The run with other rows, sorted by score; with its own answers if ``answers`` is None."""
        answers = self.answers if answers is None else answers
        rows = frame.select("query_id", "doc_id", "score")
        again = Run.from_batches(
            self.name, [rows], answers=answers, about=self.about, source=self.source
        )
        again.contradicting = self.contradicting & set(answers["query_id"])
        return again

    def _answers(self, given: pl.DataFrame | None) -> pl.DataFrame:
        with_rows = pl.DataFrame(
            {
                "query_id": self.query_ids,
                "state": ["ok"] * len(self.query_ids),
                "returned": np.diff(self.starts),
            },
            schema={"query_id": pl.String, "state": pl.String, "returned": pl.Int64},
        )
        if given is None or not given.height:
            return with_rows
        given = conform(
            given.with_columns(returned=pl.lit(0, pl.Int64))
            if "returned" not in given.columns
            else given,
            ANSWERS,
            self.source,
        )
        self._refuse_answers(given)
        not_ok = pl.col("state") != "ok"
        contradicting = given.filter(not_ok).join(with_rows, on="query_id", how="semi")
        if contradicting.height:
            row = contradicting.row(0, named=True)
            raise InputError(
                f"the query is marked {row['state']} but has documents",
                file=self.source,
                query=row["query_id"],
            )
        extra = given.join(with_rows, on="query_id", how="anti").with_columns(
            state=pl.col("state").replace("ok", "empty"), returned=pl.lit(0, pl.Int64)
        )
        details = given.drop("state", "returned")
        return pl.concat(
            [with_rows.join(details, on="query_id", how="left", maintain_order="left"), extra],
            how="diagonal",
        )

    def _refuse_answers(self, given: pl.DataFrame) -> None:
        unknown = ~given["state"].is_in(["ok", "empty", "failed"]).fill_null(value=False)
        refuse_rows(given, unknown, "state {state!r} is not ok, empty or failed", self.source)
        twice = given["query_id"].is_duplicated()
        refuse_rows(given, twice, "the query has two answers", self.source)

    def __len__(self) -> int:
        return self.rows.height

    def __repr__(self) -> str:
        return f"<Run {self.name}: {len(self)} documents for {len(self.query_ids)} queries>"


def _whole_queries(batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Batches of whole queries: the last query of a batch waits for rows of the next.

    Only rows of a split query are copied.
    """
    waiting: list[pl.DataFrame] = []
    for batch in batches:
        if not batch.height:
            continue
        query_id = batch["query_id"]
        start = 0
        if waiting:
            start = _length_of(query_id, waiting[-1]["query_id"][0], from_end=False)
            waiting.append(batch.head(start))
            if start == batch.height:
                continue
        cut = batch.height - _length_of(query_id, query_id[-1], from_end=True)
        if cut > start:
            waiting.append(batch.slice(start, cut - start))
        if waiting:
            yield pl.concat(waiting)
        waiting = [batch.slice(cut)]
    if waiting:
        yield pl.concat(waiting)


def _length_of(query_id: pl.Series, value: str, *, from_end: bool) -> int:
    """Number of rows at one end with a value, without reading all of a long series."""
    size = 1024
    while True:
        near = query_id.tail(size) if from_end else query_id.head(size)
        others = np.flatnonzero((near != value).to_numpy())
        if len(others):
            return near.len() - 1 - int(others[-1]) if from_end else int(others[0])
        if size >= query_id.len():
            return query_id.len()
        size *= 4


def _unsettle(part: Settled) -> pl.DataFrame:
    index = np.repeat(np.arange(len(part.counts)), part.counts)
    query_id = pl.Series("query_id", part.query_ids, dtype=pl.String).gather(index)
    return part.rows.select(query_id, "doc_id", "score")
