"""Agreement of grades from clicks with people's: κ, order, and the cut points that agree best."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import combinations

import numpy as np
import polars as pl

from karat.golden.reliability import figure, name_of
from karat.golden.sampling import permanent_numbers
from karat.online.clicks.grading import opposing
from karat.stats.agreement import Integers, Sums, Weights, by_query, confusion, kappa, ratio
from karat.stats.averages import Floats
from karat.tables.golden.agreement import Confusion, Figure
from karat.tables.online.clicks import (
    ClickAgreement,
    ClickAgreementPart,
    ClickOrigin,
    OpposingGrade,
)
from karat.tables.provenance import CutPoints

FOLDS = 5
_CANDIDATES = {1: 200, 2: 80, 3: 40, 4: 24}  # cut points tried, by how many are chosen
_FEW = 25  # pairs, and one query a part, that cut points are chosen from
_BANDS = ((1, 1), (2, 3), (4, 10), (11, None))  # ranks shown
_NOTHING = "nothing is graded by both"
_LISTED = 200  # opposing pairs
_KEYS = ["query_id", "doc_id"]


def agreement(
    clicks: pl.DataFrame,
    people: pl.DataFrame,
    origin: ClickOrigin,
    *,
    weights: Weights = "quadratic",
    by: str | None = None,
    rel: float = 1.0,
) -> ClickAgreement:
    """How far grades from clicks agree with people's.

    Args:
        clicks: As ``formats.own.click_grades`` has them.
        people: ``query_id``, ``doc_id``, ``grade``; ``text`` and ``class`` of the query if known.
        origin: Of the grades from clicks.
        weights: Of κ.
        by: Name of the attribute that is ``class``.
        rel: Lowest relevant grade.
    """
    both = clicks.join(people.rename({"grade": "people"}), on=_KEYS).sort(_KEYS)
    if "text" not in both.columns:
        both = both.with_columns(text=pl.col("query_id"))
    points = CutPoints(tuple(origin.cuts), tuple(origin.grades))
    # Without the effect of position removed, clicks oppose whatever was shown low.
    opposed = opposing(both if origin.identified else both.head(0), points, rel)
    best = best_cuts(both, points, weights) if both.height >= _FEW else None
    levels = _levels(both, points)
    return ClickAgreement(
        origin=origin,
        weights=weights,
        all=_part(None, both, weights),
        only_clicks=clicks.height - both.height,
        only_people=people.height - both.height,
        by=by,
        classes=[] if by is None else _classes(both, weights),
        ranks=_ranks(both, weights),
        best_cuts=None if best is None else best.cuts,
        cross_fitted=_cross_fitted(both, points, weights),
        confusion=Confusion(
            "people",
            "clicks",
            tuple(levels.tolist()),
            tuple(
                tuple(row)
                for row in confusion(
                    _places(both["people"], levels), _places(both["grade"], levels), len(levels)
                ).tolist()
            ),
        ),
        oppose=opposed.height,
        opposing=[
            OpposingGrade(**{each.name: row[each.name] for each in fields(OpposingGrade)})
            for row in opposed.head(_LISTED).iter_rows(named=True)
        ],
    )


def _levels(both: pl.DataFrame, points: CutPoints) -> Floats:
    return np.unique(np.concatenate([both["people"].to_numpy(), np.array(points.grades)]))


def _places(grades: pl.Series, levels: Floats) -> Integers:
    return np.searchsorted(levels, grades.to_numpy()).astype(np.int64)


def _queries(both: pl.DataFrame) -> tuple[Integers, int]:
    """The index of each pair's query, and how many there are."""
    _, query = np.unique(both["query_id"].to_numpy(), return_inverse=True)
    return query.astype(np.int64), int(query.max(initial=-1)) + 1


def _part(value: str | None, both: pl.DataFrame, weights: Weights) -> ClickAgreementPart:
    return ClickAgreementPart(
        value, _kappa(both, "grade", weights), _ordered(both), _correlation(both)
    )


def _kappa(both: pl.DataFrame, grade: str, weights: Weights) -> Figure:
    query, count = _queries(both)
    levels = np.unique(np.concatenate([both["people"].to_numpy(), both[grade].to_numpy()]))
    sums = kappa(
        query,
        _places(both["people"], levels),
        _places(both[grade], levels),
        levels,
        count,
        weights,
    )
    return figure(name_of(weights), sums, _NOTHING, weights=weights)


def _ordered(both: pl.DataFrame) -> Figure:
    """Share of two documents of a query that clicks order as people do; equal values count half."""
    side = both.select("query_id", "people", "value")
    two = side.join(side, on="query_id", suffix="_other").filter(
        pl.col("people") > pl.col("people_other")
    )
    query, count = _queries(two)
    value, other = two["value"].to_numpy(), two["value_other"].to_numpy()
    same = (value > other) + 0.5 * (value == other)
    sums = ratio(query, same.astype(np.float64), np.ones(len(same)), count)
    return figure("ordered as people do", sums, "no query has two grades of people")


def _correlation(both: pl.DataFrame) -> Figure:
    """Spearman's, with the interval of a jackknife over queries."""
    query, count = _queries(both)
    columns = both.select(pl.col("value", "people").rank())
    x, y = columns.to_numpy().T if both.height else (np.zeros(0), np.zeros(0))
    table = by_query(query, np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], 1), count)

    def value(sums: Floats) -> Floats:
        n, sx, sy, sxx, syy, sxy = np.moveaxis(sums, -1, 0)
        spread = (n * sxx - sx * sx) * (n * syy - sy * sy)
        safe = np.where(spread > 1e-9, spread, np.nan)
        return np.asarray((n * sxy - sx * sy) / np.sqrt(safe))

    sums = Sums(table, value, table[:, 0], -1.0)
    return figure("Spearman", sums, _NOTHING, "all values or all grades are equal")


def _classes(both: pl.DataFrame, weights: Weights) -> list[ClickAgreementPart]:
    parts = both.with_columns(pl.col("class").cast(pl.String).fill_null("(no class)"))
    return [
        _part(str(name), part, weights)
        for (name,), part in parts.partition_by("class", as_dict=True).items()
    ]


def _ranks(both: pl.DataFrame, weights: Weights) -> list[ClickAgreementPart]:
    rank, out = pl.col("rank").round(), []
    for first, last in _BANDS:
        within = rank >= first if last is None else rank.is_between(first, last)
        part = both.filter(within)
        name = f"{first}+" if last is None else f"{first}-{last}" if last > first else f"{first}"
        if part.height:
            out.append(_part(name, part, weights))
    return out


def best_cuts(both: pl.DataFrame, points: CutPoints, weights: Weights) -> CutPoints | None:
    """The cut points whose grades agree best with people's; None if there are too few values.

    Args:
        both: ``value`` and ``people``.
        points: With the grades of the scale.
        weights: Of the κ that is made as large as possible, over quantiles of the values.
    """
    chosen, values = len(points.cuts), both["value"].to_numpy()
    most = _CANDIDATES.get(chosen, max(chosen + 4, 14))
    tried = np.unique(np.quantile(values, np.arange(1, most) / most)) if len(values) else values
    tried = tried[(tried > 0) & (tried < 1)]
    if len(tried) < chosen:
        return None
    levels, people = np.unique(both["people"].to_numpy(), return_inverse=True)
    cells = people * (len(tried) + 1) + np.searchsorted(tried, values, side="right")
    counts = np.bincount(cells, minlength=len(levels) * (len(tried) + 1)).astype(np.float64)
    below = np.cumsum(counts.reshape(len(levels), -1), axis=1)
    choices = np.array(list(combinations(range(len(tried)), chosen)))
    ends = np.concatenate([below[:, choices], np.repeat(below[:, -1:, None], len(choices), 1)], 2)
    table = np.diff(ends, axis=2, prepend=0.0)  # people's level, choice, grade of clicks
    far = np.abs(levels[:, None] - np.array(points.grades))
    cost = {"none": (far > 0).astype(np.float64), "linear": far, "quadratic": far**2}[weights]
    observed = np.einsum("lcg,lg->c", table, cost)
    chance = np.einsum("l,cg,lg->c", table.sum(axis=(1, 2)) / len(choices), table.sum(axis=0), cost)
    lost = np.divide(
        observed * len(values), chance, out=np.full(len(choices), np.inf), where=chance > 0
    )
    best = choices[int(np.argmin(lost))]
    return CutPoints(tuple(tried[best].tolist()), points.grades)


def _cross_fitted(both: pl.DataFrame, points: CutPoints, weights: Weights) -> Figure:
    """κ by cut points that were chosen on other queries."""
    name = f"{name_of(weights)}, cross-fitted"
    numbers = permanent_numbers(both["query_id"].to_list(), "cut points")
    part = np.floor(np.asarray(numbers) * FOLDS).astype(np.int64)
    queries = both["query_id"].n_unique()
    if both.height < _FEW or queries < FOLDS:
        reason = f"fewer than {_FEW} pairs, or {FOLDS} queries, to choose cut points from"
        return Figure(name, None, None, None, queries, both.height, reason, weights)
    grades = np.full(both.height, np.nan)
    for fold in range(FOLDS):
        here = part == fold
        fitted = best_cuts(both.filter(pl.Series(~here)), points, weights)
        grades[here] = (fitted or points).grade(both["value"].to_numpy()[here])
    return replace(
        _kappa(both.with_columns(fitted=pl.Series(grades)), "fitted", weights), name=name
    )
