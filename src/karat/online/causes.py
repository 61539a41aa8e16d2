"""Changes for the worse, grouped by the searches that they come from.

A broken synonym makes zero results worse in a class of queries, on every device and over all
searches, and abandonment with them: one cause, and one alert.

**Searches of a change.** Those of its slice; of some queries only, if these, each beyond chance,
make up most of it (``SHARE``). Queries are chosen by a test and not by what they contribute: of
many rare queries, those that failed by chance always contribute most.

**Explained.** A change explains another if most of the other comes from its searches: these
contribute (as in ``karat.online.watch.contributions``) at least ``SHARE`` of the other, as far as
they make up the change itself, or at least half if the rest of it is usual. A slice that stands out
is not explained by a broader one: less what is usual, it has changed at least ``STANDS_OUT`` times
as much as the searches around it.

**Leads.** The change that explains most of the others leads; of equal ones, that with the fewest
searches, and of several metrics in its slice the most significant. One of which a slice that stands
out, or some queries, make up much does not lead. Then the rest is grouped in the same way; what two
leads explain together goes to the larger.

**Not distinguished.** Two incidents in the same searches at the same time are one cause. A cause
that changes different metrics in different searches is several. Metrics that do not add up over
queries (quantiles, means over users) are grouped by metric alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.stats.averages import Floats
from karat.tables.online.watch import Change

SHARE = 0.8
"""Least share of a change that comes from the searches of its cause."""
STANDS_OUT = 2.0
"""Least ratio of the change of a slice, less what is usual, to that of the searches around it."""
_HALF = 0.5  # least share that is enough if the rest of the change is usual
_SURE = 2.5  # standard errors beyond which a query has changed
_MOST_LEADS = 60  # the most significant changes, which may lead; all are explained

Place = tuple[str, tuple[tuple[str, str], ...]]  # a metric, and the values of a slice, by name
Counts = Mapping[frozenset[str], pl.DataFrame]
"""For dimensions, what windows count: the dimensions, ``query``, ``metric``, ``window`` (0 is the
latest), ``numerator`` and ``denominator``."""


@dataclass(frozen=True)
class Grouped:
    """Changes of one cause, by their places in the list."""

    lead: int
    explains: Mapping[int, float | None]  # the others, with the share of each that it explains
    # Queries that make up the lead, the largest contribution first; empty if it is spread over many
    queries: Sequence[str]
    share: float | None  # of the change of its metric over all searches; None if that is not worse


def grouped(changes: Sequence[Change], counts: Counts) -> list[Grouped]:
    """Group changes for the worse by cause, the cause that explains most first.

    Args:
        changes: All changes of a watch, the most significant first; those for the worse are
            grouped, and each is in one cause.
        counts: For the dimensions of each slice, and of any two of them together as far as these
            were read; others do not explain each other.
    """
    worse = [at for at, change in enumerate(changes) if change.verdict == "worse"]
    known = [at for at in worse if _adds_up(changes[at], counts)]
    found = _Grouping(changes, known, counts).groups() if known else []
    by_metric: dict[str, list[int]] = {}
    for at in worse:
        if at not in known:
            by_metric.setdefault(changes[at].metric, []).append(at)
    for places in by_metric.values():
        lead = next((at for at in places if not changes[at].slice), places[0])
        found.append(Grouped(lead, {at: None for at in places if at != lead}, (), None))
    return sorted(found, key=lambda one: (-len(one.explains), one.lead))


def _adds_up(change: Change, counts: Counts) -> bool:
    frame = counts.get(frozenset(change.slice))
    return frame is not None and change.metric in frame["metric"]


class _Grouping:
    def __init__(self, changes: Sequence[Change], worse: Sequence[int], counts: Counts) -> None:
        self.changes, self.worse, self.counts = changes, worse, counts
        self.leads = worse[:_MOST_LEADS]
        self.by_place = {_place(change): at for at, change in enumerate(changes)}
        self.queries: dict[int, Sequence[str]] = {}
        self.least: dict[int, float] = dict.fromkeys(worse, SHARE)
        for at in self.leads:
            self.queries[at], covered = self._queries(changes[at])
            self.least[at] *= min(1.0, covered)
        # Of the change of the second, what comes from the searches of the first
        self.share: dict[tuple[int, int], float] = {(at, at): 1.0 for at in worse}
        self._fill()

    def groups(self) -> list[Grouped]:
        rest, leads = list(self.worse), list[int]()
        free = [at for at in self.leads if not self._is_mixed(at)]
        while rest:
            pool = [at for at in free if at in rest] or [at for at in self.leads if at in rest]
            best = min(pool or rest[:1], key=lambda at: self._rank(at, rest))
            leads.append(next(at for at in pool or rest[:1] if self._are_alike(at, best)))
            rest = [at for at in rest if not self._are_explaining(leads, at)]
        found: dict[int, dict[int, float | None]] = {lead: {} for lead in leads}
        for at in self.worse:
            if at not in leads:
                lead = min(leads, key=lambda lead: self._fit(lead, at))
                found[lead][at] = self._of(lead, at)
        return [
            Grouped(lead, explains, self.queries.get(lead, ()), self._of_all(lead))
            for lead, explains in found.items()
        ]

    def _of(self, lead: int, at: int) -> float:
        return self.share.get((lead, at), 0.0)

    def _of_all(self, lead: int) -> float | None:
        whole = self.by_place.get((self.changes[lead].metric, ()))
        return None if whole in {None, lead} else self.share.get((lead, whole or 0))

    def _rank(self, lead: int, rest: Collection[int]) -> tuple[float, int, int]:
        """By how much a lead explains of the rest, rounded; then the fewest searches."""
        explained = (min(1.0, self._of(lead, at)) for at in rest if self._explains(lead, at))
        part = self.changes[lead].slice
        searches = max(change.n for change in self.changes if change.slice == part)
        return -round(2 * sum(explained)) / 2, searches, lead

    def _are_alike(self, at: int, lead: int) -> bool:
        """Whether a change is of the same slice as one that leads, and may as well lead."""
        same = self.changes[at].slice == self.changes[lead].slice
        return at == lead or (same and self._explains(at, lead))

    def _fit(self, lead: int, at: int) -> tuple[bool, bool, float]:
        other = self.changes[lead].metric != self.changes[at].metric
        return not self._explains(lead, at), other, -self._of(lead, at)

    def _are_explaining(self, leads: Sequence[int], at: int) -> bool:
        """Whether the last of some leads explains a change, or all of them together."""
        if at == leads[-1] or self._explains(leads[-1], at):
            return True
        enough = len(leads) > 1 and sum(self._of(lead, at) for lead in leads) >= SHARE
        return enough and not any(self._is_beyond(at, lead) for lead in leads)

    def _explains(self, lead: int, at: int) -> bool:
        share, change = self._of(lead, at), self.changes[at]
        if share < self.least[lead]:
            size = abs(change.change or 0.0)
            if share < _HALF or (1 - share) * size > size - _surely(change):
                return False
        return at == lead or not self._is_beyond(at, lead)

    def _is_beyond(self, at: int, lead: int) -> bool:
        """Whether the slice of a change is part of another's, and stands out from it."""
        change, outer = self.changes[at], self.changes[lead].slice
        whole = self.by_place.get((change.metric, tuple(sorted(outer.items()))))
        if whole is None or not outer.items() < change.slice.items():
            return False
        part = change.n / max(self.changes[whole].n, 1)
        rest = (self.changes[whole].change or 0.0) - part * (change.change or 0.0)
        return part < 1 and _stands_out(change, rest / (1 - part))

    def _is_mixed(self, at: int) -> bool:
        """Whether a change has a part, and much of it, that stands out from it."""
        return any(
            self._of(other, at) > 1 - SHARE and self._is_part(other, at)
            for other in self.leads
            if other != at
        )

    def _is_part(self, other: int, at: int) -> bool:
        part, change, share = self.changes[other], self.changes[at], self._of(other, at)
        if part.slice == change.slice:  # then queries are the difference
            whole = self._of(at, other) >= SHARE > share
            return whole and bool(self.queries[other]) and bool(self.queries[at])
        if part.metric != change.metric or part.n >= change.n:
            return False
        rest = (1 - share) * (change.change or 0.0) / (1 - part.n / change.n)
        return _stands_out(part, rest)

    def _queries(self, change: Change) -> tuple[Sequence[str], float]:
        """The queries that make up a change of a share, each beyond chance, and how much of it.

        No queries and 1 if they do not.
        """
        if change.unit != "share":
            return (), 1.0
        dimensions = frozenset(change.slice)
        here = (pl.col(name) == value for name, value in change.slice.items())
        frame = self.counts[dimensions].filter(pl.col("metric") == change.metric, *here)
        now, sums = pl.col("window") == 0, ("numerator", "denominator")
        by_query = _with_adds(frame, dimensions).group_by("query").agg(
            pl.col("adds").sum(),
            *(pl.col(name).filter(now).sum().alias(name) for name in sums),
            *(pl.col(name).filter(~now).sum().alias(f"{name}_before") for name in sums),
        )  # fmt: skip
        sure = _excess(by_query, change.expected or 0.0) * _sign(change) >= _SURE
        chosen = by_query.filter(pl.Series(sure, dtype=pl.Boolean))
        chosen = chosen.sort(-_sign(change) * pl.col("adds"), "query")
        covered = float(chosen["adds"].sum()) / (change.change or np.inf)
        return (chosen["query"].to_list(), covered) if covered >= SHARE else ((), 1.0)

    def _fill(self) -> None:
        """What the searches of each lead contribute to each change."""
        for of in dict.fromkeys(frozenset(self.changes[at].slice) for at in self.worse):
            with_adds: dict[frozenset[str], pl.DataFrame] = {}
            for lead in self.leads:
                part = self.changes[lead].slice
                dimensions = of.union(part)
                if dimensions not in self.counts:
                    continue
                if dimensions not in with_adds:
                    with_adds[dimensions] = _with_adds(self.counts[dimensions], of)
                inside = [pl.col(name) == value for name, value in part.items()]
                if self.queries[lead]:
                    inside.append(pl.col("query").is_in(self.queries[lead]))
                by = ["metric", *sorted(of)]
                sums = with_adds[dimensions].filter(*inside).group_by(by).agg(pl.col("adds").sum())
                for *key, adds in sums.iter_rows():
                    at = self.by_place.get((key[0], tuple(zip(by[1:], key[1:], strict=True))))
                    if at is not None and at in self.worse and at != lead:
                        self.share[lead, at] = adds / (self.changes[at].change or np.inf)


def _place(change: Change) -> Place:
    return change.metric, tuple(sorted(change.slice.items()))


def _sign(change: Change) -> int:
    """1 if more is worse, else -1."""
    return 1 if change.direction == "lower" else -1


def _surely(change: Change) -> float:
    """The size of a change, less what is usual."""
    edge = change.usual_high if _sign(change) > 0 else change.usual_low
    return 0.0 if change.value is None or edge is None else _sign(change) * (change.value - edge)


def _stands_out(change: Change, rest: float) -> bool:
    return _surely(change) >= STANDS_OUT * max(0.0, rest * _sign(change))


def _with_adds(frame: pl.DataFrame, of: Collection[str]) -> pl.DataFrame:
    """Rows with what each contributes to the change of its slice, as ``adds``."""
    slices = ["metric", *sorted(of)]
    sums = frame.group_by([*slices, "window"]).agg(
        over=pl.col("numerator").sum().cast(pl.Float64), per=pl.col("denominator").sum()
    )
    earlier = pl.col("window") > 0
    sums = sums.filter(pl.col("per") > 0).with_columns(
        expected=(pl.col("over") / pl.col("per")).filter(earlier).mean().over(slices),
        weight=pl.when(earlier).then(-1 / earlier.sum().over(slices)).otherwise(1.0),
    )
    excess = pl.col("numerator") - pl.col("expected") * pl.col("denominator")
    return frame.join(sums, on=[*slices, "window"]).with_columns(
        pl.col("query").fill_null(""), adds=pl.col("weight") * excess / pl.col("per")
    )


def _excess(by_query: pl.DataFrame, expected: float) -> Floats:
    """How many standard errors the share of each query is higher than before.

    A query that was not asked before is compared with the expected value of all.
    """
    names = ("numerator", "denominator", "numerator_before", "denominator_before")
    k, n, k0, n0 = (by_query[name].cast(pl.Float64).to_numpy() for name in names)
    known = n0 > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (k + np.where(known, k0, 0) + 0.5) / (n + n0 + 1)
        before = np.where(known, k0 / n0, expected)
        error = np.sqrt(pooled * (1 - pooled) * (1 / n + np.where(known, 1 / n0, 0.0)))
        z = (k / n - before) / error
    return np.where(n > 0, z, 0.0)
