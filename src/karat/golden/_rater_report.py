"""One rater: against the others, against the known grades, against the same rater earlier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.golden.rating_matrix import PAIR, Rated, figure, kappa_of
from karat.stats.agreement import Sums, Weights, kappa, ratio, share_equal
from karat.tables.golden.agreement import Drift, OneRater

NO_REPEATS = "nothing was judged again"
NO_GOLD = "no pair of known grade was judged"
NO_GRADES = "no known grades were given"


def one_rater(rated: Rated, place: int, weights: Weights, gold: pl.DataFrame | None) -> OneRater:
    """The row of one rater.

    Args:
        rated: Everybody's ratings.
        place: Index of the rater.
        weights: Of κ.
        gold: Known grades (query_id, doc_id, grade), or None.
    """
    name, queries = rated.raters[place], len(rated.queries)
    judged = rated.judged.filter(pl.col("rater") == name)
    beside = _Beside(rated, place)
    everything = np.ones(len(beside.met), np.bool_)
    again = rated.coded(
        rated.repeats.filter(pl.col("rater") == name).join(
            rated.frame.filter(pl.col("rater") == name).select(*PAIR, was="level"),
            on=PAIR,
            maintain_order="left",
        )
    )
    now, was = rated.integers(again, "level"), rated.integers(again, "was")
    at = rated.integers(again, "query")
    right, off = _gold(rated, name, gold)
    untold = NO_GRADES if gold is None else NO_GOLD
    seconds = judged["seconds"].drop_nulls().drop_nans().median()
    return OneRater(
        rater=name,
        judged=judged.height,
        cannot_judge=float((judged["state"] == "cannot_judge").sum()) / max(1, judged.height),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        kappa=replace(kappa_of(rated, *beside.against(everything), weights), pairs=len(beside.met)),
        leniency=figure("grade minus the others'", beside.leniency(everything, queries)),
        self_kappa=kappa_of(rated, at, was, now, weights, NO_REPEATS),
        self_equal=figure("share equal", share_equal(at, was, now, queries), NO_REPEATS),
        gold=figure("share right", right, untold),
        gold_leniency=figure("grade minus the known one", off, untold),
    )


def rater_drift(rated: Rated, weights: Weights) -> tuple[Drift, ...]:
    """Each rater's earlier half against the later one, of what others graded too."""
    queries, found = len(rated.queries), []
    for place, name in enumerate(rated.raters):
        beside = _Beside(rated, place)
        if len(beside.met) < 2:
            continue
        late = np.zeros(len(beside.met), np.bool_)
        late[np.argsort(beside.time, kind="stable")[len(beside.met) // 2 :]] = True
        halves = [
            kappa(*beside.against(held), rated.grades, queries, weights) for held in (~late, late)
        ]
        means = [beside.leniency(held, queries) for held in (~late, late)]
        for what, (first, second) in (("agreement", halves), ("leniency", means)):
            found.append(
                Drift(
                    name,
                    what,
                    figure("first half", first),
                    figure("second half", second),
                    figure("change", second.minus(first)),
                )
            )
    return tuple(found)


class _Beside:
    """What one rater graded and others too.

    Attributes:
        met: Index of each such item.
        time: When the rater graded it.
    """

    def __init__(self, rated: Rated, place: int) -> None:
        ratings = rated.ratings
        mine = ratings.rater == place
        items, level = ratings.item[mine], ratings.level[mine]
        size = int(ratings.item.max(initial=-1)) + 1
        own = np.full(size, -1)
        own[items] = level
        theirs = ~mine & (own[ratings.item] >= 0)
        self._item, self._level = ratings.item[theirs], ratings.level[theirs]
        self._query, self._own = ratings.query[theirs], own[self._item]
        count = np.bincount(self._item, minlength=size)
        total = np.bincount(self._item, rated.grades[self._level], minlength=size)
        held = count[items] > 0
        self.met = items[held]
        self.time = rated.integers(rated.frame, "time_us")[mine][held]
        self._above = rated.grades[level[held]] - total[self.met] / count[self.met]
        self._at = ratings.query[mine][held]

    def against(
        self, held: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Query, own grade and another's, for every other grade of the items held."""
        these = np.isin(self._item, self.met[held])
        return self._query[these], self._own[these], self._level[these]

    def leniency(self, held: NDArray[np.bool_], queries: int) -> Sums:
        """Mean of the own grade minus the others' mean, over the items held."""
        return ratio(self._at[held], self._above[held], np.ones(int(held.sum())), queries)


def _gold(rated: Rated, name: str, gold: pl.DataFrame | None) -> tuple[Sums, Sums]:
    known = (
        pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "known": pl.Float64})
        if gold is None
        else gold.select(*PAIR, pl.col("grade").cast(pl.Float64).alias("known"))
    )
    met = rated.coded(rated.gold.filter(pl.col("rater") == name).join(known.drop_nulls(), on=PAIR))
    query, one = rated.integers(met, "query"), np.ones(met.height)
    off = (met["grade"] - met["known"]).to_numpy()
    right = ratio(query, (off == 0).astype(np.float64), one, len(rated.queries))
    return replace(right, floor=0.0), ratio(query, off, one, len(rated.queries))
