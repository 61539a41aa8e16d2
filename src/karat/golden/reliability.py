"""How far the raters of a golden set agree, who differs from whom, and where.

Agreement is of the grades that raters gave first, each without seeing the others': never of grades
that an adjudicator settled or a rule made. What is computed is in ``karat.stats.agreement``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl

from karat.errors import UsageError
from karat.golden._rater_report import one_rater, rater_drift
from karat.golden.rating_matrix import Rated, figure, kappa_of, name_of
from karat.stats.agreement import (
    WEIGHTS,
    Integers,
    Ratings,
    Weights,
    ac1,
    alpha,
    confusion,
    fleiss,
    mean_kappa,
    mean_share_equal,
    share_equal,
)
from karat.stats.agreement_intervals import more_needed
from karat.stats.intervals import TRUSTED_FROM
from karat.tables.golden.agreement import Agreement, Confusion, Figure, TwoRaters
from karat.tables.judgments import SOURCES, Judgments

UNCLASSED = "(no class)"
"""Of queries that a mapping of classes leaves out."""


def agreement(
    judgments: Judgments,
    *,
    weights: Weights = "quadratic",
    sources: Sequence[str] = ("human",),
    by: Mapping[str, str] | None = None,
    gold: pl.DataFrame | None = None,
    target: float = 0.7,
) -> Agreement:
    """Agreement of the raters: over all, by two raters, rater, class, guideline and time.

    Args:
        judgments: Raw, all of them; what does not count here is left out here.
        weights: Of the κ in the headline, on the values of the grades.
        sources: Whose judgments count; others stay out, and a note says so.
        by: From query_id to the query's class.
        gold: Grades known beforehand: query_id, doc_id, grade. Judgments of kind ``gold`` are
            held against them.
        target: What the headline is to be above, in -1 to 1; below 1.

    Returns:
        Figures with 95 % intervals, from a jackknife over queries. Where a rater graded a pair
        twice under kind ``rating``, the later grade counts.

    Raises:
        UsageError: unknown weights or source, or a target of 1 or more.
    """
    _check(weights, sources, target)
    rated = Rated(judgments, sources)
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
            one_rater(rated, place, weights, gold) for place in range(len(rated.raters))
        ),
        classes=_classes(rated, weights, by),
        guidelines=_guidelines(rated, weights),
        confusion=_over_all(rated),
        drift=rater_drift(rated, weights),
        notes=_notes(rated, judgments, sources, int((twice > 0).sum())),
    )


def _check(weights: str, sources: Sequence[str], target: float) -> None:
    if weights not in WEIGHTS:
        raise UsageError(f"{weights!r} are no weights of κ", fix=f"one of {', '.join(WEIGHTS)}")
    for source in sources:
        if source not in SOURCES:
            raise UsageError(
                f"{source!r} is no source of judgments", fix=f"some of {', '.join(SOURCES)}"
            )
    if not -1 <= target < 1:
        raise UsageError(f"agreement cannot be above {target:g}", fix="a target such as 0.7")


def _mean_kappa(name: str, ratings: Ratings, weights: Weights) -> Figure:
    return figure(name, mean_kappa(ratings, weights), weights=weights)


def _categories(judgments: Judgments, ratings: Ratings) -> int:
    """How many grades the scale has: its whole numbers, and what else was given."""
    low, high = judgments.scale
    whole = range(math.ceil(low), math.floor(high) + 1)
    return max(2, len({*map(float, whole), *ratings.grades.tolist()}))


def _needed(headline: Figure, target: float) -> int | None:
    if headline.value is None or headline.ci_low is None:
        return None
    return more_needed(headline.value, headline.ci_low, headline.pairs, target)


def _two_raters(rated: Rated, weights: Weights) -> tuple[TwoRaters, ...]:
    found = []
    for first, second in combinations(range(len(rated.raters)), 2):
        query, mine, theirs = rated.ratings.together(first, second)
        if not len(query):
            continue
        names = rated.raters[first], rated.raters[second]
        found.append(
            TwoRaters(
                *names,
                kappa_of(rated, query, mine, theirs, weights),
                figure("share equal", share_equal(query, mine, theirs, rated.ratings.queries)),
                _confusion(rated, *names, confusion(mine, theirs, len(rated.ratings.grades))),
            )
        )
    return tuple(found)


def _over_all(rated: Rated) -> Confusion:
    """Of two raters theirs; of more, every two ratings of a pair both ways round."""
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
    found = []
    for name in sorted(set(of_query.tolist())):
        held = rated.ratings.keep((of_query == name)[rated.ratings.query])
        found.append(_mean_kappa(name, held, weights))
    return tuple(found)


def _guidelines(rated: Rated, weights: Weights) -> tuple[Figure, ...]:
    """Only ratings of the version count, so that what differs is not the version."""
    version = rated.frame["guideline"]
    found = []
    for name in sorted(version.drop_nulls().unique().to_list()):
        held = rated.ratings.keep((version == name).fill_null(value=False).to_numpy())
        found.append(_mean_kappa(name, held, weights))
    return tuple(found)


def _notes(
    rated: Rated, judgments: Judgments, sources: Sequence[str], queries: int
) -> tuple[str, ...]:
    notes = []
    others = judgments.ratings.filter(~pl.col("source").is_in(list(sources)))["source"]
    for source, count in sorted(others.value_counts().iter_rows()):
        notes.append(f"{count:,} ratings from {source} do not count here")
    if rated.repeated:
        notes.append(
            f"{rated.repeated} times a rater rated a pair more than once: the last grade counts"
        )
    if 0 < queries < TRUSTED_FROM:
        notes.append(
            f"fewer than {TRUSTED_FROM} queries: where raters read a few of them very differently, "
            "90 and not 95 of 100 such intervals hold the true agreement"
        )
    return tuple(notes)
