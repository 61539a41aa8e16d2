"""From relevance to grades: cut points, least impressions, and what raw click rates get wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import polars as pl

from karat.errors import UsageError
from karat.online.clicks.counts import Cells
from karat.online.clicks.entry import Relevance, relevance_frame
from karat.tables.online.clicks import GradeCount, RatedByCtr
from karat.tables.provenance import CutPoints

NAIVE = "naive"  # the rule that takes position for relevance
LEAST = 20.0  # effective impressions of a pair that gets a grade
CUTS = {1: (0.3,), 2: (0.2, 0.5), 3: (0.1, 0.3, 0.6), 4: (0.1, 0.2, 0.4, 0.6)}
"""Default cut points by the number of grades above the lowest."""
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Grading:
    """How the relevance of a pair becomes a grade."""

    points: CutPoints
    least: float = LEAST  # effective impressions; a pair with fewer gets no grade

    def __post_init__(self) -> None:
        """Raises UsageError for impressions that are not a finite number above 0."""
        if not 0 < self.least < inf:
            raise UsageError(
                f"least {self.least:g} is not a number above 0", fix=f"{LEAST:g}, for example"
            )


def cut_points(grades: Sequence[float], cuts: Sequence[float] | None = None) -> CutPoints:
    """The cut points of a scale, checked; the default ones if None.

    Args:
        grades: All grades of the scale, ascending.
        cuts: One for each grade above the lowest, ascending, each between 0 and 1.
    """
    wanted = len(grades) - 1
    if cuts is None:
        if wanted not in CUTS:
            raise UsageError(
                f"no default cut points for {len(grades)} grades",
                fix=f"give {wanted}, ascending and between 0 and 1",
            )
        cuts = CUTS[wanted]
    shown = ", ".join(f"{cut:g}" for cut in cuts) or "none"
    if len(cuts) != wanted:
        example = ",".join(f"{cut:g}" for cut in CUTS.get(wanted, ()))
        raise UsageError(
            f"expected {wanted} cut points for the grades {grades[0]:g} to {grades[-1]:g}, got "
            f"{len(cuts)} ({shown})",
            fix=f"one for each grade above {grades[0]:g}" + (f": {example}" if example else ""),
        )
    if not all(0 < cut < 1 for cut in cuts) or not all(a < b for a, b in pairwise(cuts)):
        raise UsageError(
            f"the cut points {shown} are not ascending, each between 0 and 1",
            fix="0.1,0.3,0.6, for example",
        )
    return CutPoints(tuple(map(float, cuts)), tuple(map(float, grades)))


def naive(cells: Cells) -> pl.DataFrame:
    """Relevance by the naive rule: the share of impressions that ended in a satisfied click.

    Shown without a click counts against a document, at whatever place it was shown: the rule takes
    position for relevance. A last click whose dwell time is not known may have satisfied or not, so
    the share has bounds: ``ci_low``, which is the ``value``, counts it as no, ``ci_high`` as yes.
    They are bounds of the log itself, not an interval, and there is no ``logit``.
    """
    shown = cells.by_pair(cells.shown)
    low, high = (
        cells.by_pair(satisfied) / shown
        for satisfied in (cells.satisfied_low, cells.satisfied_high)
    )
    return relevance_frame(cells, Relevance(low, low, high, None, None, shown))


def graded(relevance: pl.DataFrame, grading: Grading) -> pl.DataFrame:
    """The pairs that get a grade, with ``grade``.

    Args:
        relevance: As ``relevance_frame`` returns it.
        grading: A value on a cut point has the higher grade.
    """
    enough = pl.col("value").is_not_nan() & (pl.col("effective") >= grading.least)
    kept = relevance.filter(enough.fill_null(value=False))
    return kept.with_columns(grade=pl.Series(grading.points.grade(kept["value"].to_numpy())))


def by_grade(grades: pl.DataFrame, points: CutPoints) -> list[GradeCount]:
    """Number of pairs of each grade, and of those whose interval has a cut point."""
    low, high = (points.grade(grades[name].to_numpy()) for name in ("ci_low", "ci_high"))
    given, unsure = grades["grade"].to_numpy(), low != high
    return [
        GradeCount(grade, int((given == grade).sum()), int((unsure & (given == grade)).sum()))
        for grade in points.grades
    ]


def rated_by_ctr(grades: pl.DataFrame) -> tuple[list[RatedByCtr], list[RatedByCtr]]:
    """Pairs of ``graded``, by ``query_id``, that raw click rates overrate and underrate most.

    Raw rates are of documents where they were shown, so the relevance is first scaled to the mean
    of these places. A pair is overrated if its rate is above that, and raw rates put it before
    documents of its query that are more relevant.
    """
    rows = grades.filter(pl.col("shown") > 0).with_columns(ctr=pl.col("clicked") / pl.col("shown"))
    expected = float((rows["value"] * rows["shown"]).sum())
    seen = float(rows["clicked"].sum()) / expected if expected else 0.0
    rows = rows.with_columns(
        (pl.col("ctr") - (seen * pl.col("value")).clip(upper_bound=1.0)).alias("excess"),
        *(
            pl.col(name).rank("min", descending=True).over("query_id").cast(pl.Int64).alias(place)
            for name, place in (("ctr", "ctr_place"), ("value", "value_place"))
        ),
    )
    before, after = pl.col("ctr_place"), pl.col("value_place")
    over = rows.filter(before < after, pl.col("excess") > 0)
    under = rows.filter(before > after, pl.col("excess") < 0)
    order = ["excess", "query_id", "doc_id"]
    return (
        _rated(over.sort(order, descending=[True, False, False]).head(_EXAMPLES)),
        _rated(under.sort(order).head(_EXAMPLES)),
    )


def _rated(rows: pl.DataFrame) -> list[RatedByCtr]:
    names = ("query_id", "doc_id", "ctr", "value", "ci_low", "ci_high", "rank", "shown")
    places = ("ctr_place", "value_place")
    return [
        RatedByCtr(text=row["query_id"], **{n: row[n] for n in names + places})
        for row in rows.iter_rows(named=True)
    ]


def opposing(both: pl.DataFrame, points: CutPoints, rel: float = 1.0) -> pl.DataFrame:
    """Pairs whose interval is on the other side of relevant than people's grade.

    Args:
        both: ``query_id``, ``doc_id``, ``people``: people's grade; ``ci_low`` and ``ci_high``: of
            the relevance from clicks.
        points: How that becomes a grade.
        rel: Lowest relevant grade.

    Returns:
        ``both`` with ``clicks``: ``higher`` or ``lower`` than people's grade; the farthest first.
    """
    cut = points.lowest(rel)
    if cut is None:
        return both.head(0).with_columns(clicks=pl.lit(None, pl.String))
    people = pl.col("people") >= rel
    lower, higher = people & (pl.col("ci_high") < cut), ~people & (pl.col("ci_low") >= cut)
    far = pl.when(lower).then(cut - pl.col("ci_high")).otherwise(pl.col("ci_low") - cut)
    which = pl.when(lower).then(pl.lit("lower")).when(higher).then(pl.lit("higher"))
    return (
        both.with_columns(clicks=which, _far=far)
        .filter(pl.col("clicks").is_not_null())
        .sort(["_far", "query_id", "doc_id"], descending=[True, False, False])
        .drop("_far")
    )
