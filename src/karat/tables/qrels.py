"""Qrels: relevance grades of documents for queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl

from karat.errors import InputError
from karat.tables.column_names import renamed
from karat.tables.incoming import conform, from_pairs, refuse_rows, relevant_ids, to_polars
from karat.tables.provenance import Provenance
from karat.tables.schema import QRELS, Scale, read_scale


class JudgedTwice(InputError):
    """A document is judged twice for one query, or twice for one subtopic of it."""

    def __init__(self, source: str, query: str, doc_id: str, subtopic: str | None = None) -> None:
        of = "" if subtopic is None else f" for subtopic {subtopic}"
        super().__init__(
            f"document {doc_id} is judged twice{of}",
            file=source,
            query=query,
            doc_id=doc_id,
            fix="keep one judgment for each query and document"
            if subtopic is None
            else "keep one judgment for each query, subtopic and document",
        )
        self.subtopic = subtopic


class Qrels:
    """Judgments: one grade for each judged (query, document) pair.

    Attributes:
        frame: ``query_id``, ``doc_id`` and ``grade``, each pair once, with its best grade over
            subtopics; sorted by query.
        subtopics: ``query_id``, ``subtopic``, ``doc_id`` and ``grade``, each triple once, sorted
            by query; None without subtopics.
        without: Judged queries without rows: no document is relevant to them.
        file: The file they were read from, or that of their golden set; None for judgments from
            memory or standard input, whatever ``source`` is.
        provenance: Whose grades they are; None if unknown.

    Args:
        frame: Columns ``query_id``, ``doc_id``, ``grade`` (see ``schema.QRELS``) and optionally
            ``subtopic``; others are dropped. Grade 0 is judged and not relevant; a negative
            grade means pooled but not judged, as in TREC; fractions are allowed. A subtopic that
            is the same in every row is ignored.
        source: Name in error messages, usually a path.
        scale: Lowest and highest possible grade, ``(0, 3)`` or ``"0-3"``; if None, from 0 to the
            largest grade in the data.
        without: Judged queries for which no document is relevant. Measures are undefined for
            them; queries that have rows are ignored here.

    Raises:
        InputError: a missing column, an empty id, a subtopic in some rows only, a grade that is
            not finite, a pair that is judged twice (for one subtopic), or a grade outside the
            scale.
    """

    file: str | None = None
    provenance: Provenance | None = None

    def __init__(
        self,
        frame: pl.DataFrame,
        source: str = "qrels",
        scale: Any = None,
        without: Iterable[str] = (),
    ) -> None:
        frame = conform(frame, QRELS, source)
        bad = ~frame["grade"].is_finite().fill_null(value=False)
        refuse_rows(frame, bad, "grade {grade} of document {doc_id} is not a finite number", source)
        by_subtopic = _has_subtopics(frame, source)
        key = ["query_id", "subtopic", "doc_id"] if by_subtopic else ["query_id", "doc_id"]
        twice = frame.select(key).is_duplicated()
        if twice.any():
            row = frame.select(key).row(int(twice.arg_max() or 0), named=True)
            raise JudgedTwice(source, row["query_id"], row["doc_id"], row.get("subtopic"))
        frame = frame.select(*key, "grade").sort("query_id", maintain_order=True)
        self.subtopics = frame if by_subtopic else None
        self.frame = _best(frame) if by_subtopic else frame
        self.without = frozenset(without) - set(self.frame["query_id"])
        self.source = source
        self.declared = None if scale is None else read_scale(scale)
        if self.declared is not None:
            self._refuse_off_scale(*self.declared)

    def on_scale(self, scale: Any) -> Qrels:
        """The same judgments on a declared scale, ``"0-3"`` or ``(0, 3)``; itself if None.

        Raises:
            UsageError: the scale is invalid.
            InputError: a grade is above the scale, or between 0 and its lower end.
        """
        return self if scale is None else self._again(self.rows, scale, self.without)

    @property
    def rows(self) -> pl.DataFrame:
        """All judgments: ``subtopics`` if there are any, otherwise ``frame``."""
        return self.frame if self.subtopics is None else self.subtopics

    def refuse_repeats(self, tool: str) -> None:
        """Reject qrels that a tool without subtopics reads as duplicate judgments.

        Args:
            tool: Name of the tool, for the error.

        Raises:
            InputError: a document is judged for several subtopics of a query.
        """
        if self.subtopics is None or self.subtopics.height == self.frame.height:
            return
        pairs = self.subtopics.select("query_id", "doc_id")
        query_id, doc_id = pairs.row(int(pairs.is_duplicated().arg_max() or 0))
        raise InputError(
            f"{tool} does not support subtopics and aborts here (exit 4): document {doc_id} is "
            "judged for several of them, which it reads as duplicate judgments",
            file=self.source,
            query=query_id,
            doc_id=doc_id,
            fix="leave out --compat: karat counts each document once, with its best grade",
        )

    @property
    def scale(self) -> Scale:
        """Lowest and highest grade: as declared, or 0 to the largest grade in the data."""
        if self.declared is not None:
            return self.declared
        highest = self.frame["grade"].max()
        return 0.0, max(float(highest), 0.0) if isinstance(highest, int | float) else 0.0

    def _refuse_off_scale(self, low: float, high: float) -> None:
        grade = self.frame["grade"]
        off = (grade > high) | ((grade >= 0) & (grade < low))
        what = f"grade {{grade:g}} of document {{doc_id}} is not on the scale {low:g} to {high:g}"
        refuse_rows(self.frame, off, what, self.source)

    @classmethod
    def from_dict(cls, grades: Mapping[str, Any], source: str = "qrels") -> Qrels:
        """Qrels from ``{query_id: {doc_id: grade}}``, or from ids of relevant documents.

        ``{query_id: {"a", "c"}}`` (a set, list or tuple) gives each document grade 1; an empty one
        is a query without relevant documents. An empty dict is a query without judgments, unless
        other queries have sets: then ``{}`` was meant to be an empty set.

        Raises:
            InputError: as for ``Qrels``, or an id that is not text, or a grade that is not a
                number.
        """
        graded = {
            query: docs if docs is None else relevant_ids(docs, query, source)
            for query, docs in grades.items()
        }
        frame = from_pairs(graded, "grade", source)
        sets = [query for query, docs in grades.items() if graded[query] is not docs]
        without = [
            query for query, docs in graded.items() if sets and docs is not None and not docs
        ]
        return cls(frame, source, without=without)

    @classmethod
    def from_frame(cls, frame: Any, source: str = "qrels") -> Qrels:
        """Qrels from any data frame Narwhals reads (Polars, pandas, PyArrow, DuckDB …).

        Column names of other tools are recognised: ``qid``, ``docno``, ``label``, ``relevance`` …
        """
        return cls(renamed(to_polars(frame, source), "qrels", source), source)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """``{query_id: {doc_id: grade}}``."""
        out: dict[str, dict[str, float]] = {}
        for query_id, doc_id, grade in self.frame.iter_rows():
            out.setdefault(query_id, {})[doc_id] = grade
        return out

    def judged(self, query_ids: Sequence[str], least: float = 0.0) -> pl.DataFrame:
        """Documents judged for some queries with at least a grade; negative grades never count.

        Args:
            query_ids: Queries, each once, judged or not.
            least: Lowest grade.

        Returns:
            ``query`` (index into ``query_ids``), ``doc_id`` and ``grade``; sorted by the first
            two, documents by bytes.
        """
        wanted = pl.DataFrame({"query_id": list(query_ids)}, schema={"query_id": pl.String})
        wanted = wanted.with_row_index("query").with_columns(pl.col("query").cast(pl.Int64))
        return (
            self.frame.filter(pl.col("grade") >= max(least, 0.0))
            .join(wanted, on="query_id")
            .select("query", "doc_id", "grade")
            .sort("query", "doc_id")
        )

    @property
    def query_ids(self) -> list[str]:
        """The judged queries, sorted by bytes."""
        with_rows = self.frame["query_id"].unique()
        if not self.without:
            return with_rows.sort().to_list()
        return sorted({*with_rows, *self.without}, key=str.encode)

    def only(self, query_ids: Collection[str]) -> Qrels:
        """The judgments of some queries, on the same scale."""
        chosen = pl.Series(list(query_ids), dtype=pl.String)
        rows = self.rows.filter(pl.col("query_id").is_in(chosen.implode()))
        return self._again(rows, self.scale, self.without & set(query_ids))

    def draws(self, count: int, rng: np.random.Generator) -> Iterator[Qrels]:
        """The judgments with uncertain grades drawn anew, count times; certain ones as they are.

        Subtopics, which grades with an error do not have, are left out.
        """
        source = None if self.provenance is None else self.provenance.uncertain
        frames = repeat(self.frame, count) if source is None else source.draws(
            self.frame, count, rng
        )  # fmt: skip
        for frame in frames:
            again = copy(self)
            again.frame, again.subtopics = frame, None
            yield again

    def _again(self, rows: pl.DataFrame, scale: Any, without: Iterable[str]) -> Qrels:
        again = Qrels(rows, self.source, scale, without)
        again.file, again.provenance = self.file, self.provenance
        return again

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Qrels {self.source}: {len(self)} judgments, {len(self.query_ids)} queries>"


def _has_subtopics(frame: pl.DataFrame, source: str) -> bool:
    """Whether there is a column ``subtopic`` with more than one value.

    Raises:
        InputError: some rows have a subtopic and others have none.
    """
    if "subtopic" not in frame.columns or not frame.height:
        return False
    subtopic = frame["subtopic"].fill_null("")
    if (subtopic == subtopic[0]).all():
        return False
    what = "document {doc_id} has no subtopic, but others have one"
    refuse_rows(frame, subtopic == "", what, source, "name a subtopic in every row, or in none")
    return True


def _best(frame: pl.DataFrame) -> pl.DataFrame:
    """Each document of a query once, with its best grade, in the order of first appearance."""
    pair = ["query_id", "doc_id"]
    return frame.group_by(pair, maintain_order=True).agg(pl.col("grade").max())
