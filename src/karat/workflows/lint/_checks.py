"""Checks of rankings, judgments, queries and documents.

Runs are checked query by query in a stream, so they may be of any length. A run whose queries are
not contiguous is checked again as a whole, grouped by query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.tables.ranking import mixed
from karat.workflows.lint.tally import Tally

_MANY_TIES = 1.0  # percent of the documents
_SELF_SHARE = 0.1  # of the queries, with themselves at the top
_SHALLOW = range(5, 100)  # R@100 and AP look deeper


class Rankings:
    """Checks the rows of one run; ``documents`` are sorted hashes of all document ids."""

    def __init__(self, documents: NDArray[np.uint64] | None = None) -> None:
        self.tally = Tally()
        self.first_line: dict[str, int] = {}
        self._back: dict[str, int] = {}
        self.rows = 0
        self._documents = documents
        self._depths: list[NDArray[np.int64]] = []
        self._of_depth: list[str] = []
        self._tied = self._tied_queries = self._selves = self._self_tops = 0
        self._tie_lines: list[int] = []
        self._tie_query: str | None = None
        self._self_found: list[tuple[str, int]] = []

    def see(self, pieces: Iterable[pl.DataFrame]) -> None:
        """Check rows: ``query_id``, ``doc_id``, ``score``, ``line`` and perhaps ``rank``."""
        for batch in whole_queries(pieces):
            self._batch(batch)

    @property
    def scattered(self) -> bool:
        """Whether the rows of a query are not contiguous."""
        return bool(self._back)

    def report_scattered(self, tally: Tally) -> None:
        if self._back:
            query = next(iter(self._back))
            tally.add("non-contiguous-query", list(self._back.values()), query=query)

    def finish(self) -> Tally:
        self._report_ties()
        self._report_selves()
        self._report_depth()
        return self.tally

    def _batch(self, batch: pl.DataFrame) -> None:
        self.rows += batch.height
        code = batch["query_id"].rle_id().to_numpy().astype(np.int64)
        starts = _starts(code)
        lines = batch["line"].to_numpy()
        query_ids = batch["query_id"].gather(starts).to_list()
        for query, start in zip(query_ids, starts.tolist(), strict=True):
            if query in self.first_line:
                self._back.setdefault(query, int(lines[start]))
            else:
                self.first_line[query] = int(lines[start])
        self._depths.append(np.diff(np.append(starts, len(code))))
        self._of_depth += query_ids
        self._scores(batch, code, lines)
        self._duplicates(batch, code, lines)
        self._dangling(batch, lines)

    def _scores(
        self, batch: pl.DataFrame, code: NDArray[np.int64], lines: NDArray[np.int64]
    ) -> None:
        score = batch["score"].to_numpy()
        bad = np.isnan(score)
        if bad.any():
            self._add("nan-score", batch, bad, lines)
        infinite = np.isinf(score)
        if infinite.any():
            self._add("infinite-score", batch, infinite, lines)
        order = np.flatnonzero(~bad)
        code, score = code[order], score[order]
        rising = (code[1:] == code[:-1]) & (score[1:] > score[:-1])
        if rising.any():
            first = _first_of_each(code, np.flatnonzero(rising) + 1)
            self._add_queries("score-not-descending", batch, order[first], lines)
            sorting = np.lexsort((-score, code))
            order, code, score = order[sorting], code[sorting], score[sorting]
        same = code[1:] == code[:-1]
        equal = same & (score[1:] == score[:-1])
        if equal.any():
            tied = np.concatenate((equal, [False])) | np.concatenate(([False], equal))
            self._tied += int(tied.sum())
            firsts = _first_of_each(code, np.flatnonzero(tied))
            self._tied_queries += len(firsts)
            if len(self._tie_lines) < 5:
                self._tie_lines += np.sort(lines[order[np.flatnonzero(tied)[:5]]]).tolist()
                self._tie_query = self._tie_query or batch["query_id"][int(order[firsts[0]])]
        if "rank" in batch.columns:
            self._ranks(batch, order, code, same & ~equal, lines)
        self._itself(batch, order, code, lines)

    def _ranks(
        self,
        batch: pl.DataFrame,
        order: NDArray[np.int64],
        code: NDArray[np.int64],
        falls: NDArray[np.bool_],
        lines: NDArray[np.int64],
    ) -> None:
        ranks = batch["rank"]
        known = ranks.is_not_null().to_numpy()[order]
        rank = ranks.fill_null(0).to_numpy()[order]
        wrong = falls & (rank[1:] <= rank[:-1]) & known[1:] & known[:-1]
        if wrong.any():
            first = _first_of_each(code, np.flatnonzero(wrong) + 1)
            self._add_queries("rank-contradicts-score", batch, order[first], lines)
        zero = (rank == 0) & known
        if zero.any():
            first = _first_of_each(code, np.flatnonzero(zero))
            self._add_queries("rank-from-zero", batch, order[first], lines)

    def _itself(
        self,
        batch: pl.DataFrame,
        order: NDArray[np.int64],
        code: NDArray[np.int64],
        lines: NDArray[np.int64],
    ) -> None:
        own = (batch["query_id"] == batch["doc_id"]).to_numpy()
        if not own.any():
            return
        self._selves += int(own.sum())
        tops = order[_starts(code)]
        self._self_tops += int(own[tops].sum())
        if len(self._self_found) < 5:
            at = np.flatnonzero(own)[:5]
            ids = batch["query_id"].gather(at).to_list()
            self._self_found += list(zip(ids, lines[at].tolist(), strict=True))

    def _duplicates(
        self, batch: pl.DataFrame, code: NDArray[np.int64], lines: NDArray[np.int64]
    ) -> None:
        # Sorting 64-bit hashes is far cheaper than grouping strings; matches are then verified.
        key = mixed(batch["doc_id"].hash(), code.astype(np.uint32))
        key.sort()
        if not (key[1:] == key[:-1]).any():
            return
        later = ~batch.select(pl.struct("query_id", "doc_id").is_first_distinct()).to_series()
        if later.any():
            self._add("duplicate-document", batch, later.to_numpy(), lines)

    def _dangling(self, batch: pl.DataFrame, lines: NDArray[np.int64]) -> None:
        if self._documents is not None:
            missing = absent(batch["doc_id"], self._documents)
            if missing.any():
                self._add("dangling-document", batch, missing, lines)

    def _add(
        self, code: str, batch: pl.DataFrame, mask: NDArray[np.bool_], lines: NDArray[np.int64]
    ) -> None:
        at = np.flatnonzero(mask)
        row = batch.row(int(at[0]), named=True)
        example = f"{row['query_id']} {row['doc_id']} {_number(row['score'])}"
        self.tally.add(code, lines[at], query=row["query_id"], example=example)

    def _add_queries(
        self, code: str, batch: pl.DataFrame, at: NDArray[np.int64], lines: NDArray[np.int64]
    ) -> None:
        row = batch.row(int(at[0]), named=True)
        rank = "" if row.get("rank") is None else f" rank {row['rank']}"
        example = f"{row['query_id']} {row['doc_id']}{rank} score {_number(row['score'])}"
        self.tally.add(code, lines[at], query=row["query_id"], example=example)

    def _report_ties(self) -> None:
        if not self._tied:
            return
        share = 100 * self._tied / self.rows
        percent = "100" if self._tied == self.rows else f"{min(share, 99.99):.2g}"
        if 99 < share < 100:
            percent = f"{min(share, 99.99):.2f}"
        queries = "1 query" if self._tied_queries == 1 else f"{self._tied_queries:,} queries"
        self.tally.add(
            "tied-scores" if share >= _MANY_TIES else "rare-ties",
            sorted(self._tie_lines)[:5],
            count=self._tied,
            query=self._tie_query,
            says=f"{percent} % of the documents have the same score as another, in {queries}",
        )

    def _report_selves(self) -> None:
        # Numeric ids of queries and documents coincide by chance, but rarely at the top.
        named = any(not query.isdigit() for query, _ in self._self_found)
        often = self._self_tops >= max(2, _SELF_SHARE * len(self.first_line))
        if named or often:
            self.tally.add(
                "self-retrieval",
                [line for _, line in self._self_found],
                count=self._selves,
                query=self._self_found[0][0],
            )

    def _report_depth(self) -> None:
        if not self._depths:
            return
        depth = np.concatenate(self._depths)
        usual = int(np.median(depth))
        few = np.flatnonzero(depth * 2 < usual)
        if len(few):
            query = self._of_depth[int(few[0])]
            self.tally.add(
                "uneven-depth",
                sorted(self.first_line[self._of_depth[i]] for i in few.tolist()),
                query=query,
                says=f"less than half as many documents as for most queries ({usual:,}); "
                f"the fewest: {int(depth.min()):,}",
            )
        deepest = int(depth.max())
        full = int((depth == deepest).sum())
        if deepest in _SHALLOW and full >= 2 and full >= 0.9 * len(depth):
            says = f"queries are cut off at {deepest} documents"
            self.tally.add("truncated-depth", [], count=full, says=says)


def whole_queries(pieces: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Regroup pieces so that each has whole queries."""
    waiting: list[pl.DataFrame] = []
    for piece in pieces:
        if not piece.height:
            continue
        code = piece["query_id"].rle_id()
        last = int(code[-1])
        cut = 0 if last == 0 else int(code.search_sorted(last))
        if waiting and piece["query_id"][0] != waiting[-1]["query_id"][0]:
            yield pl.concat(waiting, how="diagonal")
            waiting = []
        if last:
            yield pl.concat([*waiting, piece.head(cut)], how="diagonal")
            waiting = []
        waiting.append(piece.slice(cut))
    if waiting:
        yield pl.concat(waiting, how="diagonal")


def _starts(code: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(code):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1])))


def _first_of_each(code: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first position in each query; positions and codes are ascending."""
    firsts: NDArray[np.int64] = at[np.unique(code[at], return_index=True)[1]]
    return firsts


def _number(score: float | None) -> str:
    return "without a score" if score is None else f"{score:g}"


def check_judgments(rows: pl.DataFrame, tally: Tally, silent: Collection[str] = ()) -> None:
    bad = rows.filter(~pl.col("grade").is_finite())
    if bad.height:
        _count(tally, "grade-not-a-number", bad)
        rows = rows.filter(pl.col("grade").is_finite())
    _count(tally, "negative-grade", rows.filter(pl.col("grade") < 0))
    _count(tally, "fractional-grade", rows.filter(pl.col("grade") != pl.col("grade").floor()))
    _duplicates(rows, tally)
    _without_relevant(rows.filter(~pl.col("query_id").is_in(list(silent))), tally)


def _duplicates(rows: pl.DataFrame, tally: Tally) -> None:
    pair = ["query_id", "doc_id"]
    if "subtopic" in rows.columns and rows["subtopic"].n_unique() > 1:
        pair.append("subtopic")  # a constant subtopic is not one
    if not rows.select(pair).is_duplicated().any():
        return
    several = rows.filter(rows.select(pair).is_duplicated())
    grades = several.group_by(pair).agg(pl.col("grade").n_unique().alias("grades"))
    later = several.filter(~pl.struct(pair).is_first_distinct()).join(
        grades, on=pair, how="left", nulls_equal=True, maintain_order="left"
    )
    _count(tally, "duplicate-judgment", later.filter(pl.col("grades") == 1))
    conflicting = later.filter(pl.col("grades") > 1)
    if conflicting.height:
        row = conflicting.row(0, named=True)
        same = several.filter(pl.col(name).eq_missing(row[name]) for name in pair)
        grades_text = " and ".join(f"{grade:g}" for grade in same["grade"].unique().sort())
        example = f"{' '.join(str(row[name]) for name in pair)}: {grades_text}"
        tally.add(
            "conflicting-judgment",
            conflicting["line"].to_numpy(),
            query=row["query_id"],
            example=example,
        )


def _without_relevant(rows: pl.DataFrame, tally: Tally) -> None:
    if not rows.height:
        return
    best = rows.group_by("query_id", maintain_order=True).agg(
        pl.col("grade").max(), pl.col("line").first()
    )
    if rows["grade"].max() < 1 and (rows["grade"] > 0).any():  # type: ignore[operator]
        tally.add("no-grade-reaches-1", [], count=1)
        return
    bare = best.filter(pl.col("grade") < 1)
    if bare.height:
        tally.add("no-relevant-document", bare["line"].to_numpy(), query=bare["query_id"][0])


def _count(tally: Tally, code: str, rows: pl.DataFrame) -> None:
    if rows.height:
        first = rows.row(0, named=True)
        example = f"{first['query_id']} {first['doc_id']} {first['grade']:g}"
        tally.add(code, rows["line"].to_numpy(), query=first["query_id"], example=example)


_CODES = {
    "queries": ("duplicate-query", "empty-query"),
    "documents": ("duplicate-document", "empty-document"),
}


class Texts:
    """Checks the rows of a queries or documents file in a stream.

    Only a 64-bit hash of each document id is stored, so collections may be large.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self.ids: list[pl.DataFrame] = []  # of queries
        self.silent: set[str] = set()  # queries marked no_answer
        self._hashes: list[NDArray[np.uint64]] = []
        self._lines: list[NDArray[np.int64]] = []

    def see(self, rows: pl.DataFrame, tally: Tally) -> None:
        """Check rows: ``id``, ``empty``, ``line`` and optionally ``no_answer``."""
        empty = rows.filter("empty")
        if empty.height:
            first = empty["id"][0]
            query = first if self.role == "queries" else None
            tally.add(_CODES[self.role][1], empty["line"].to_numpy(), example=first, query=query)
        self._hashes.append(rows["id"].hash().to_numpy())
        self._lines.append(rows["line"].to_numpy())
        if self.role == "queries":
            self.ids.append(rows.select(pl.col("id").alias("query_id"), "line"))
            if "no_answer" in rows.columns:
                self.silent.update(rows.filter("no_answer")["id"])

    def finish(self, tally: Tally) -> NDArray[np.uint64]:
        """Report duplicate ids; returns the sorted hashes of all ids."""
        if not self._hashes:
            return np.empty(0, np.uint64)
        hashes = np.concatenate(self._hashes)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if len(again):
            lines = np.sort(np.concatenate(self._lines)[order[again]])
            tally.add(_CODES[self.role][0], lines)
        return np.unique(ordered)


def absent(ids: pl.Series, known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Mask of the ids whose hashes are not in the sorted ``known``."""
    if not len(known):
        return np.ones(len(ids), np.bool_)
    hashes = ids.hash().to_numpy()
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    missing: NDArray[np.bool_] = known[at] != hashes
    return missing
