"""Shadow traffic as numbers: how each side answered each request, and how far answers differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.stats.averages import Floats
from karat.stats.rank_similarity import overlap, rank_biased_overlap
from karat.tables.experiments.shadow import COLD, KINDS, SIDES, TIMEOUT, Kind, Observed, Side
from karat.tables.run import Run

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
MISSING, OK, EMPTY, FAILED = range(4)
_STATES = {"ok": OK, "empty": EMPTY, "failed": FAILED}


@dataclass(frozen=True)
class Answers:
    """How one side answered the requests; all of shape (n,)."""

    state: Ints  # MISSING | OK | EMPTY | FAILED
    ms: Floats  # latency; NaN if unknown
    timed_out: Mask

    @property
    def asked(self) -> Mask:
        mask: Mask = self.state != MISSING
        return mask

    @property
    def answered(self) -> Mask:
        mask: Mask = (self.state == OK) | (self.state == EMPTY)
        return mask

    @property
    def empty(self) -> Mask:
        mask: Mask = self.state == EMPTY
        return mask

    @property
    def failed(self) -> Mask:
        mask: Mask = self.state == FAILED
        return mask

    @property
    def timed(self) -> Mask:
        """Answers with a latency."""
        return self.answered & ~np.isnan(self.ms)


def answers_of(run: Run, ids: Sequence[str]) -> Answers:
    """How a run answered these requests."""
    place = {query: at for at, query in enumerate(run.answers["query_id"].to_list())}
    at = np.array([place.get(each, -1) for each in ids], np.int64)

    def column(name: str, dtype: pl.DataType) -> pl.Series:
        known = name in run.answers.columns
        values = run.answers[name].cast(dtype) if known else pl.Series([None], dtype=dtype)
        index = np.where(at < 0, len(values), at) if known else np.zeros(len(at), np.int64)
        return pl.concat([values.rename(""), pl.Series([None], dtype=dtype)]).gather(index)

    states = column("state", pl.String()).replace_strict(_STATES, default=MISSING)
    times = column("latency_us", pl.Float64()).to_numpy().astype(np.float64) / 1000
    late = column("error", pl.String()).str.contains(TIMEOUT).fill_null(value=False).to_numpy()
    codes = states.cast(pl.Int64).to_numpy()
    return Answers(codes, times, late & (codes == FAILED))


@dataclass(frozen=True)
class Compared:
    """How far two sides' answers differ; NaN where a side did not answer; shape (n,) each."""

    overlap: Floats  # share of the top k in common
    rbo: Floats
    displacement: Floats  # mean change of rank of the documents of either top k


def compare(left: Run, right: Run, ids: Sequence[str], k: int) -> Compared:
    """The distances between two runs for these requests.

    A document that only one has in its top k is below the other's: at the rank after the longer of
    the two, as in Fagin, Kumar & Sivakumar 2003, doi:10.1137/S0895480102412856 (location k + 1).
    """
    place = {each: at for at, each in enumerate(ids)}
    shared = overlap(left, right, k, query_ids=place)
    found = shared.query_ids
    at = np.array([place[each] for each in found], np.int64)
    out = [np.full(len(ids), np.nan) for _ in range(3)]
    out[0][at] = shared.values
    out[1][at] = rank_biased_overlap(left, right, query_ids=place).values
    out[2][at] = 0.0
    top = [run.top(found, k) for run in (left, right)]
    both = top[0].join(top[1], on=["query", "doc_id"], how="full", coalesce=True)
    below = pl.max_horizontal(pl.col("rank").max(), pl.col("rank_right").max()).over("query") + 1
    moved = both.with_columns(
        moved=(pl.col("rank").fill_null(below) - pl.col("rank_right").fill_null(below)).abs()
    )
    means = moved.group_by("query").agg(pl.col("moved").mean())
    out[2][at[means["query"].to_numpy()]] = means["moved"].to_numpy()
    return Compared(*out)


@dataclass(frozen=True)
class Evidence:
    """The requests that count: all but cold ones."""

    observed: Observed
    k: int
    requests: pl.DataFrame  # those that both sides were asked, as in ``Observed``
    answers: Mapping[Side, Answers]
    query: Ints  # index of the query of each request
    names: list[str]  # text of each query
    query_ids: list[str | None]  # and its id

    @classmethod
    def of(cls, observed: Observed, k: int) -> Evidence:
        counted = observed.requests.filter(pl.col("phase") != COLD)
        found = {
            side: answers_of(run, counted["id"].to_list()) for side, run in observed.runs.items()
        }
        both = found["baseline"].asked & found["candidate"].asked
        requests = counted.filter(pl.Series(both, dtype=pl.Boolean))
        answers = {
            side: Answers(each.state[both], each.ms[both], each.timed_out[both])
            for side, each in found.items()
        }
        queries = requests.group_by("query", maintain_order=True).agg(pl.col("query_id").first())
        index = {text: at for at, text in enumerate(queries["query"].to_list())}
        query = np.array([index[text] for text in requests["query"].to_list()], np.int64)
        ids = queries["query_id"].to_list()
        return cls(observed, k, requests, answers, query, list(index), ids)

    @property
    def baseline(self) -> Answers:
        return self.answers["baseline"]

    @property
    def candidate(self) -> Answers:
        return self.answers["candidate"]

    @property
    def again(self) -> Answers | None:
        return self.answers.get("again")

    @cached_property
    def ids(self) -> list[str]:
        return self.requests["id"].to_list()

    @cached_property
    def sizes(self) -> Ints:
        """Number of requests of each query."""
        return np.bincount(self.query, minlength=len(self.names))

    @cached_property
    def compared(self) -> Compared:
        runs = self.observed.runs
        return compare(runs["baseline"], runs["candidate"], self.ids, self.k)

    @cached_property
    def noise(self) -> Compared | None:
        runs = self.observed.runs
        if "again" not in runs:
            return None
        return compare(runs["baseline"], runs["again"], self.ids, self.k)

    def means(self, values: Floats, used: Mask) -> Floats:
        """Mean over the requests of each query; NaN for a query without any."""
        query = self.query[used]
        counts = np.bincount(query, minlength=len(self.names))
        sums = np.bincount(query, values[used].astype(np.float64), len(self.names))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    @cached_property
    def kinds(self) -> Ints:
        """Most frequent outcome of each query, as index of ``KINDS``; the graver of two."""
        one, other = self.baseline, self.candidate
        of: dict[Kind, Mask] = {
            "failed": one.failed | other.failed,
            "lost_results": (one.state == OK) & (other.state == EMPTY),
            "gained_results": (one.state == EMPTY) & (other.state == OK),
            "same": self.compared.displacement == 0,
            "reordered": self.compared.overlap == 1,
        }
        chosen = [of.get(kind, np.ones(len(self.query), np.bool_)) for kind in _FIRST]
        codes = np.select(chosen, [KINDS.index(kind) for kind in _FIRST])
        cells = self.query * len(KINDS) + codes
        counts = np.bincount(cells, minlength=len(self.names) * len(KINDS))
        most: Ints = counts.reshape(-1, len(KINDS)).argmax(axis=1)
        return most

    @cached_property
    def change(self) -> Floats:
        """1 minus the mean RBO of each query, where failures of the candidate count as 0."""
        lost = self.candidate.failed & self.baseline.answered
        rbo = np.where(lost, 0.0, self.compared.rbo)
        change: Floats = 1 - self.means(rbo, ~np.isnan(rbo))
        return np.where(np.isnan(change), 0.0, np.maximum(change, 0.0))

    def by_traffic(self) -> list[int]:
        """Queries whose answers differ, by requests times change."""
        weight = self.sizes * self.change
        order: list[int] = np.lexsort((np.arange(len(weight)), -weight)).tolist()
        return [at for at in order if self.change[at] > 1e-9]

    def tops(self, queries: Sequence[int]) -> list[tuple[list[str], list[str]]]:
        """Of each query the top k of both sides for one request, if possible one that differs."""
        first: dict[int, tuple[float, int]] = {}
        wanted = set(queries)
        gap = np.nan_to_num(self.compared.displacement, nan=-1.0)
        for at in np.flatnonzero(np.isin(self.query, list(wanted))).tolist():
            rank = (-float(gap[at] > 0), at)
            first[self.query[at]] = min(first.get(int(self.query[at]), rank), rank)
        ids = [self.ids[first[query][1]] for query in queries]
        sides: list[list[list[str]]] = []
        for side in SIDES[:2]:
            docs: list[list[str]] = [[] for _ in ids]
            top = self.observed.runs[side].top(ids, self.k)
            for query, doc in top.select("query", "doc_id").iter_rows():
                docs[query].append(doc)
            sides.append(docs)
        return list(zip(*sides, strict=True))


_FIRST: Sequence[Kind] = (
    "failed", "lost_results", "gained_results", "same", "reordered", "other_documents",
)  # fmt: skip
"""The order in which outcomes are looked for."""
