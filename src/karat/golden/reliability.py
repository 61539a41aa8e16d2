"""Agreement of a golden set's raters: overall, by pair of raters, rater, class and time.

Agreement is of the raters' own grades, given independently: never of adjudicated or aggregated
grades. The statistics are in ``karat.stats.agreement``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError
from karat.stats.agreement import (
    WEIGHTS,
    Integers,
    Ratings,
    Sums,
    Weights,
    ac1,
    agreement_interval,
    alpha,
    confusion,
    fleiss,
    kappa,
    mean_kappa,
    mean_share_equal,
    more_needed,
    ratio,
    share_equal,
    weights_named,
)
from karat.stats.intervals import TRUSTED_FROM
from karat.tables.golden.agreement import Agreement, Confusion, Drift, Figure, OneRater, TwoRaters
from karat.tables.judgments import Judgments

PAIR = ["query_id", "doc_id"]

ALONE = "nothing was graded by two raters"
ALL_ONE = "every grade is the same, so agreement cannot be distinguished from chance"


class Rated:
    """The ratings of people, one for each rater and pair.

    Attributes:
        judged: Judgments of kind rating, graded or not (``schema.JUDGMENTS``).
        frame: The graded ones, with ``query``, ``item``, ``rater_place`` and ``level``: the
            indices of ``ratings``.
        ratings: ``frame`` as arrays.
        queries: query_id of each index.
        raters: Name of each index, in order of their first judgments.
        repeats: Graded hidden repeats.
        gold: Graded judgments of gold items.
        repeated: Ratings replaced by a later one of the same rater and pair.
    """

    def __init__(self, judgments: Judgments) -> None:
        counting = judgments.frame.filter(pl.col("source") == "human")
        ratings = counting.filter(pl.col("kind") == "rating")
        self.judged = ratings.unique([*PAIR, "rater"], keep="last", maintain_order=True)
        self.repeated = ratings.height - self.judged.height
        frame = self.judged.filter(pl.col("state") == "graded")
        graded = counting.filter(pl.col("state") == "graded")
        self.repeats = graded.filter(pl.col("kind") == "repeat")
        self.gold = graded.filter(pl.col("kind") == "gold")
        # Those who only adjudicated are not raters.
        own = counting.filter(pl.col("kind") != "adjudication")
        self.raters: list[str] = own["rater"].unique(maintain_order=True).to_list()
        self.queries: list[str] = counting["query_id"].unique().sort().to_list()
        # Also of repeats and gold items, which share these indices.
        self.grades = graded["grade"].unique().sort().to_numpy()
        items = frame.select(PAIR).unique(maintain_order=True).with_row_index("item")
        self.frame = self.coded(frame.join(items, on=PAIR, how="left", maintain_order="left"))
        self.ratings = Ratings(
            self.integers(self.frame, "query"),
            self.integers(self.frame, "item"),
            self.integers(self.frame, "rater_place"),
            self.integers(self.frame, "level"),
            self.grades,
            len(self.queries),
        )

    def coded(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with the indices of query, rater and grade."""

        def place(column: str, values: Sequence[object], name: str, dtype: pl.DataType) -> pl.Expr:
            places = range(len(values))
            old = pl.Series(values, dtype=dtype)
            return pl.col(column).replace_strict(old, places, return_dtype=pl.Int64).alias(name)

        if frame.is_empty():
            none = (pl.lit(None, pl.Int64).alias(n) for n in ("query", "rater_place", "level"))
            return frame.with_columns(none)
        return frame.with_columns(
            place("query_id", self.queries, "query", pl.String()),
            place("rater", self.raters, "rater_place", pl.String()),
            place("grade", self.grades.tolist(), "level", pl.Float64()),
        )

    @staticmethod
    def integers(frame: pl.DataFrame, column: str) -> Integers:
        """A column of ``coded`` as an array."""
        return frame[column].cast(pl.Int64).to_numpy()


def figure(
    name: str,
    sums: Sums,
    nothing: str = ALONE,
    undefined: str = ALL_ONE,
    weights: Weights | None = None,
) -> Figure:
    """A figure with its interval.

    Args:
        name: Name of the figure.
        sums: Sums per query.
        nothing: The reason for no value if no query contributes.
        undefined: The reason for no value if some do.
        weights: Weights of κ.
    """
    queries, pairs = int((sums.weight > 0).sum()), round(float(sums.weight.sum()))
    value = sums.whole
    if math.isnan(value):
        reason = undefined if queries else nothing
        return Figure(name, None, None, None, queries, pairs, reason, weights)
    span = agreement_interval(sums)
    return Figure(name, value, span.low, span.high, queries, pairs, span.reason, weights)


def kappa_of(
    rated: Rated,
    query: Integers,
    first: Integers,
    second: Integers,
    weights: Weights,
    nothing: str = ALONE,
) -> Figure:
    """κ of two gradings of the same pairs; arrays as in ``stats.agreement.kappa``."""
    sums = kappa(query, first, second, rated.grades, len(rated.queries), weights)
    return figure(name_of(weights), sums, nothing, weights=weights)


def name_of(weights: Weights) -> str:
    """The name of κ with its weights."""
    return f"κ, {'no' if weights == 'none' else weights} weights"


_NO_REPEATS = "nothing was judged again"
_NO_GOLD = "no pair of known grade was judged"
_NO_GRADES = "no known grades were given"
UNCLASSED = "(no class)"  # the class of queries without one


def agreement(
    judgments: Judgments,
    *,
    weights: Weights = "quadratic",
    by: Mapping[str, str] | None = None,
    gold: pl.DataFrame | None = None,
    target: float = 0.7,
) -> Agreement:
    """Agreement of people: overall, by pair of raters, rater, class, guideline and time.

    Args:
        judgments: All raw judgments; a note gives the number of those by others than people.
        weights: Weights of the headline κ, on the values of the grades.
        by: From query_id to the query's class.
        gold: Known grades: query_id, doc_id, grade. Judgments of kind ``gold`` are compared with
            them.
        target: Required headline, from -1 to below 1.

    Returns:
        Figures with 95 % intervals, from a jackknife over queries. If a rater rated a pair more
        than once under kind ``rating``, the last grade counts.

    Raises:
        UsageError: unknown weights, or a target of 1 or more.
    """
    weights_named(weights)
    if not -1 <= target < 1:
        raise UsageError(f"the target {target:g} is not from -1 to below 1", fix="0.7 is usual")
    rated = Rated(judgments)
    ratings = rated.ratings
    headline = _mean_kappa(name_of(weights), ratings, weights)
    categories = _categories(judgments, ratings)
    figures = (
        headline,
        *(_mean_kappa(name_of(w), ratings, w) for w in WEIGHTS if w != weights),
        figure("Fleiss' κ", fleiss(ratings)),
        figure("Krippendorff's α, nominal", alpha(ratings, "nominal")),
        figure("Krippendorff's α, ordinal", alpha(ratings, "ordinal")),
        figure("Krippendorff's α, interval", alpha(ratings, "interval")),
        figure("Gwet's AC1", ac1(ratings, categories)),
        figure("share equal", mean_share_equal(ratings)),
    )
    twice = mean_share_equal(ratings).weight
    return Agreement(
        headline=headline,
        weights=weights,
        target=target,
        needed=_needed(headline, target),
        raters=tuple(rated.raters),
        queries=int((twice > 0).sum()),
        pairs=int(twice.sum()),
        figures=figures,
        two_raters=_two_raters(rated, weights),
        one_rater=tuple(
            _one_rater(rated, place, weights, gold) for place in range(len(rated.raters))
        ),
        classes=_classes(rated, weights, by),
        guidelines=_guidelines(rated, weights),
        confusion=_over_all(rated),
        drift=_rater_drift(rated, weights),
        notes=_notes(rated, judgments, int((twice > 0).sum())),
    )


def _mean_kappa(name: str, ratings: Ratings, weights: Weights) -> Figure:
    return figure(name, mean_kappa(ratings, weights), weights=weights)


def _categories(judgments: Judgments, ratings: Ratings) -> int:
    """The number of grades: whole numbers on the scale, and any others given."""
    low, high = judgments.scale
    whole = range(math.ceil(low), math.floor(high) + 1)
    return max(2, len({*map(float, whole), *ratings.grades.tolist()}))


def _needed(headline: Figure, target: float) -> int | None:
    if headline.value is None or headline.ci_low is None:
        return None
    return more_needed(headline.value, headline.ci_low, headline.pairs, target)


def _two_raters(rated: Rated, weights: Weights) -> tuple[TwoRaters, ...]:
    results = []
    for first, second in combinations(range(len(rated.raters)), 2):
        query, mine, theirs = rated.ratings.together(first, second)
        if not len(query):
            continue
        names = rated.raters[first], rated.raters[second]
        results.append(
            TwoRaters(
                *names,
                kappa_of(rated, query, mine, theirs, weights),
                figure("share equal", share_equal(query, mine, theirs, rated.ratings.queries)),
                _confusion(rated, *names, confusion(mine, theirs, len(rated.ratings.grades))),
            )
        )
    return tuple(results)


def _over_all(rated: Rated) -> Confusion:
    """The confusion of two raters; of more, all pairs of raters in both directions."""
    levels = len(rated.ratings.grades)
    total = np.zeros((levels, levels), np.int64)
    for first, second in combinations(range(len(rated.raters)), 2):
        _, mine, theirs = rated.ratings.together(first, second)
        total += confusion(mine, theirs, levels)
    if len(rated.raters) == 2:
        return _confusion(rated, rated.raters[0], rated.raters[1], total)
    return _confusion(rated, None, None, total + total.T)


def _confusion(rated: Rated, first: str | None, second: str | None, counts: Integers) -> Confusion:
    grades = tuple(rated.ratings.grades.tolist())
    return Confusion(first, second, grades, tuple(tuple(row) for row in counts.tolist()))


def _classes(rated: Rated, weights: Weights, by: Mapping[str, str] | None) -> tuple[Figure, ...]:
    if by is None:
        return ()
    of_query = np.array([by.get(query, UNCLASSED) for query in rated.queries], dtype=np.str_)
    figures = []
    for name in sorted(set(of_query.tolist())):
        ratings = rated.ratings.keep((of_query == name)[rated.ratings.query])
        figures.append(_mean_kappa(name, ratings, weights))
    return tuple(figures)


def _guidelines(rated: Rated, weights: Weights) -> tuple[Figure, ...]:
    """Agreement by guideline version, among ratings with that version."""
    version = rated.frame["guideline"]
    figures = []
    for name in sorted(version.drop_nulls().unique().to_list()):
        ratings = rated.ratings.keep((version == name).fill_null(value=False).to_numpy())
        figures.append(_mean_kappa(name, ratings, weights))
    return tuple(figures)


def _notes(rated: Rated, judgments: Judgments, queries: int) -> tuple[str, ...]:
    notes = []
    others = judgments.ratings.filter(pl.col("source") != "human")["source"]
    for source, count in sorted(others.value_counts().iter_rows()):
        notes.append(f"{count:,} ratings from {source} do not count here")
    if rated.repeated:
        notes.append(
            f"{rated.repeated} times a rater rated a pair more than once: the last grade counts"
        )
    if 0 < queries < TRUSTED_FROM:
        notes.append(
            f"fewer than {TRUSTED_FROM} queries: if raters read a few of them very differently, "
            "intervals cover the true agreement in about 90 % of cases instead of 95 %"
        )
    return tuple(notes)


def _one_rater(rated: Rated, place: int, weights: Weights, gold: pl.DataFrame | None) -> OneRater:
    """One rater, by index: compared with the others, the known grades, and itself earlier."""
    name, queries = rated.raters[place], len(rated.queries)
    judged = rated.judged.filter(pl.col("rater") == name)
    others = _WithOthers(rated, place)
    every_item = np.ones(len(others.met), np.bool_)
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
    no_gold_reason = _NO_GRADES if gold is None else _NO_GOLD
    seconds = judged["seconds"].drop_nulls().drop_nans().median()
    return OneRater(
        rater=name,
        judged=judged.height,
        cannot_judge=float((judged["state"] == "cannot_judge").sum()) / max(1, judged.height),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        kappa=replace(kappa_of(rated, *others.against(every_item), weights), pairs=len(others.met)),
        leniency=figure("grade minus the others'", others.leniency(every_item, queries)),
        self_kappa=kappa_of(rated, at, was, now, weights, _NO_REPEATS),
        self_equal=figure("share equal", share_equal(at, was, now, queries), _NO_REPEATS),
        gold=figure("share right", right, no_gold_reason),
        gold_leniency=figure("grade minus the known one", off, no_gold_reason),
    )


def _rater_drift(rated: Rated, weights: Weights) -> tuple[Drift, ...]:
    """Each rater's earlier half compared with the later one, of pairs that others graded too."""
    queries, drifts = len(rated.queries), []
    for place, name in enumerate(rated.raters):
        others = _WithOthers(rated, place)
        if len(others.met) < 2:
            continue
        late = np.zeros(len(others.met), np.bool_)
        late[np.argsort(others.time, kind="stable")[len(others.met) // 2 :]] = True
        halves = [
            kappa(*others.against(half), rated.grades, queries, weights) for half in (~late, late)
        ]
        means = [others.leniency(half, queries) for half in (~late, late)]
        for quantity, (first, second) in (("agreement", halves), ("leniency", means)):
            drifts.append(
                Drift(
                    name,
                    quantity,
                    figure("first half", first),
                    figure("second half", second),
                    figure("change", second.minus(first)),
                )
            )
    return tuple(drifts)


class _WithOthers:
    """The items that one rater and others graded.

    Attributes:
        met: Index of each item.
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
        shared = count[items] > 0
        self.met = items[shared]
        self.time = rated.integers(rated.frame, "time_us")[mine][shared]
        self._above = rated.grades[level[shared]] - total[self.met] / count[self.met]
        self._at = ratings.query[mine][shared]

    def against(
        self, mask: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Query, own grade and another's, for every other grade of the masked items."""
        these = np.isin(self._item, self.met[mask])
        return self._query[these], self._own[these], self._level[these]

    def leniency(self, mask: NDArray[np.bool_], queries: int) -> Sums:
        """Mean of the own grade minus the others' mean, over the masked items."""
        return ratio(self._at[mask], self._above[mask], np.ones(int(mask.sum())), queries)


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
