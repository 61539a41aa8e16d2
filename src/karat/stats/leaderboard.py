"""Leaderboard: the order of several runs, which pairs differ, and whether measures agree."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from karat.errors import UsageError
from karat.measures import Measure
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.stats._tukey import Tukey, tukey_each
from karat.stats.averages import Floats, mean
from karat.stats.correlation import outcome
from karat.stats.weighing import Weighing
from karat.tables.comparison import Order, Standing


@dataclass(frozen=True, slots=True)
class OrderAgreement:
    """How far two orders of the same systems agree; each from -1 (reversed) over 0 to 1."""

    n: int  # systems that have both values
    # tau-b: concordant less discordant pairs, over those untied in each; or None
    kendall: float | None
    tau_ap: float | None  # Tau_AP: as tau, with more weight to the top of the second order; or None
    spearman: float | None  # correlation of midranks; or None
    reason: str = ""  # why there is none; empty if there is


def order_agreement(reference: Floats, estimated: Floats) -> OrderAgreement:
    """Agreement of two orders of systems, each by a value of which more is better.

    Args:
        reference: One for each system, such as its mean by the full judgments; NaN where there
            is none; shape (s,).
        estimated: The values whose order is in question; shape (s,). Systems that lack either
            are left out. Tau_AP weighs the top of this order, and changes if the two are
            exchanged; the others do not.

    Raises:
        UsageError: the two are not of one length.

    Source: as ``karat.stats.correlation.outcome`` and ``tau_ap``.
    """
    if reference.shape != estimated.shape or reference.ndim != 1:
        raise UsageError(
            f"the values of systems are of shapes {reference.shape} and {estimated.shape}",
            fix="give one value for each system, in the same order of systems",
        )
    both = ~(np.isnan(reference) | np.isnan(estimated))
    x, y = reference[both], estimated[both]
    reason = _no_order(x, y)
    if reason:
        return OrderAgreement(len(x), None, None, None, reason)
    found = outcome(x, y)
    return OrderAgreement(len(x), found.kendall, tau_ap(x, y), found.spearman)


def tau_ap(reference: Floats, estimated: Floats) -> float:
    """AP rank correlation, -1 to 1: at each rank but the first, the share above that belongs there.

    tau_AP = 2 / (s - 1) * sum over ranks i = 2 .. s of C(i) / (i - 1), less 1, where C(i) counts
    the systems above rank i of the estimated order that the reference too has above that system.

    Ties are taken as not knowing: the value is the mean of tau_AP over all ways to break them, in
    both orders, worked out and not drawn. An order with ties thus has less than 1 with itself.

    Args:
        reference: More is better, no NaN; shape (s,), s at least 2.
        estimated: Likewise, of the same systems; shape (s,).

    Source: Yilmaz, Aslam & Robertson 2008, doi:10.1145/1390334.1390435; for ties Urbano &
    Marrero 2017, doi:10.1145/3121050.3121106 (tau_AP,a), here in the reference as well.
    """
    s = len(reference)
    order = np.argsort(-estimated, kind="stable")
    truth, shown = reference[order], estimated[order]
    first = np.searchsorted(-shown, -shown, side="left")  # systems above the tie
    size = np.searchsorted(-shown, -shown, side="right") - first
    right = (truth[:, None] > truth) + 0.5 * (truth[:, None] == truth)  # row above column
    above = np.arange(s)[:, None] < first
    concordant = (right * above).sum(axis=0)
    # Any member of the tie may have any of its ranks, and any two members either order.
    mean_concordant = np.bincount(first, concordant, minlength=s)[first] / size
    ahead = np.arange(s)  # systems above, tied ones included
    expected = mean_concordant + (ahead - first) / 2
    return float(2 * (expected[1:] / ahead[1:]).sum() / (s - 1) - 1)


def _no_order(x: Floats, y: Floats) -> str:
    if len(x) < 2:
        return "no two systems have both values"
    if (x == x[0]).all() or (y == y[0]).all():
        return "all systems are equal in one of the orders"
    return ""


@dataclass(frozen=True, slots=True)
class PairTest:
    """A candidate against the baseline, as one of all pairs of runs."""

    p: float | None  # uncorrected p-value; None if there are no differences
    p_corrected: float | None  # the same, corrected over all pairs of runs and all measures
    family: int  # number of these comparisons


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Every pair of runs under every measure, tested as one family."""

    found: Mapping[Measure, Tukey]  # tests by measure; systems are the runs in the order given
    runs: int

    def against_first(self, measures: Sequence[Measure]) -> list[PairTest | None]:
        """The first run with each other under each measure; None where no query has all values."""
        return [self._pair(run, measure) for run in range(1, self.runs) for measure in measures]

    def _pair(self, candidate: int, measure: Measure) -> PairTest | None:
        test = self.found.get(measure)
        if test is None:
            return None
        if not test.differing[0, candidate]:
            return PairTest(None, None, test.family)
        p, corrected = float(test.alone[0, candidate]), float(test.p_values[0, candidate])
        return PairTest(p, corrected, test.family)


def shared(scored: Sequence[Scores]) -> list[Scores]:
    """The scores without the values of queries for which any run has none, by measure."""
    without = {m: np.any([np.isnan(s.values[m]) for s in scored], axis=0) for m in scored[0].values}
    return [
        replace(s, values={m: np.where(without[m], np.nan, v) for m, v in s.values.items()})
        for s in scored
    ]


def all_pairs(
    scored: Sequence[Scores], weighing: Weighing, *, resamples: int, seed: int
) -> AllPairs:
    """Test every pair of runs under every measure, as one family.

    Only queries for which every run has a value count, without those of zero weight.

    Args:
        scored: Two runs or more, over the same queries.
        weighing: Weights of the queries.
        resamples: Number of resamples of the test.
        seed: Random seed.

    Source: as ``karat.stats._tukey``.
    """
    alike: dict[bytes, list[Measure]] = {}
    values = {m: np.stack([s.values[m] for s in scored], axis=1) for m in scored[0].values}
    for measure, table in values.items():
        if (used := _counting(scored, table)).any():
            alike.setdefault(used.tobytes(), []).append(measure)
    pairs, tested = math.comb(len(scored), 2), sum(map(len, alike.values()))
    tests: dict[Measure, Tukey] = {}
    for key, measures in alike.items():
        used = np.frombuffer(key, np.bool_)
        cube = np.stack([values[measure][used] for measure in measures], axis=2)
        weights, strata = weighing.at(used)
        of_measures = tukey_each(
            cube,
            np.random.default_rng(seed),
            weights=weights,
            strata=strata,
            resamples=resamples,
            others=pairs * (tested - len(measures)),
        )
        tests |= zip(measures, of_measures, strict=True)
    return AllPairs(tests, len(scored))


def standings(
    scored: Sequence[Scores], weighing: Weighing, tested: AllPairs | None = None
) -> list[Standing]:
    """The runs under each measure, best first; with tie groups, if tested.

    Only queries for which every run has a value count, without those of zero weight.

    Args:
        scored: Two runs or more, over the same queries.
        weighing: Weights of the queries.
        tested: All pairs of these runs; None without tie groups.
    """
    rows: list[Standing] = []
    for measure in scored[0].values:
        table = np.stack([scores.values[measure] for scores in scored], axis=1)
        if not (used := _counting(scored, table)).any():
            continue
        weights, _ = weighing.at(used)
        means = np.array([mean(column, weights) for column in table[used].T])
        groups = None if tested is None else tested.found[measure].groups
        falling = measure.entry.direction != "lower"
        if groups is not None and not falling:
            groups = tuple(group[::-1] for group in groups[::-1])
        letters = None if groups is None else dict(zip(groups, _letters(), strict=False))
        rows += [
            Standing(
                measure=str(measure),
                run=scored[place].run.name,
                value=float(means[place]),
                n=int(used.sum()),
                groups=None
                if letters is None
                else "".join(letter for group, letter in letters.items() if place in group),
                honest_difference=None,
            )
            for place in np.argsort(-means if falling else means, kind="stable").tolist()
        ]
    return rows


def _counting(scored: Sequence[Scores], table: Floats) -> Mask:
    """Queries for which every run has a value, without those of zero weight."""
    counting: Mask = scored[0].overall & ~np.isnan(table).any(axis=1)
    return counting


def orders(rows: Sequence[Standing], measures: Sequence[Measure]) -> list[Order]:
    """How far each two measures agree on the order of runs; none for fewer than three runs."""
    sign = {str(measure): -1 if measure.entry.direction == "lower" else 1 for measure in measures}
    means: dict[str, dict[str, float]] = {}
    for row in rows:
        means.setdefault(row.measure, {})[row.run] = sign[row.measure] * row.value
    runs = list(dict.fromkeys(row.run for row in rows))
    if len(runs) < 3:
        return []
    agreements = []
    for one, other in itertools.combinations(means, 2):
        left, right = (np.array([means[measure][run] for run in runs]) for measure in (one, other))
        found = order_agreement(left, right)
        order = Order(one, other, len(runs), found.kendall, found.tau_ap, found.spearman)
        agreements.append(order)
    return agreements


def _letters() -> Iterator[str]:
    yield from string.ascii_lowercase
    yield from string.ascii_uppercase
    yield from (f"({number})" for number in itertools.count(1))
