"""Leaderboard: the order of several runs, which pairs differ, and whether measures agree."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from karat.measures import Measure
from karat.measures.evidence import Mask
from karat.measures.scores import Scores
from karat.stats._system_order import order_agreement
from karat.stats._tukey import Tukey, tukey_each
from karat.stats.averages import Floats, mean
from karat.stats.weighing import Weighing
from karat.tables.comparison import Order, Standing


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
        left, right = (_column(means[measure], runs) for measure in (one, other))
        found = order_agreement(left, right)
        order = Order(one, other, len(runs), found.kendall, found.tau_ap, found.spearman)
        agreements.append(order)
    return agreements


def _column(means: dict[str, float], runs: Sequence[str]) -> Floats:
    return np.array([means[run] for run in runs])


def _letters() -> Iterator[str]:
    yield from string.ascii_lowercase
    yield from string.ascii_uppercase
    yield from (f"({number})" for number in itertools.count(1))
