"""Leaderboard: several runs in order, which of them are told apart, and whether measures agree."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterator, Sequence

import numpy as np

from karat.measures import Measure
from karat.measures.scores import Scores
from karat.stats.averages import Floats
from karat.stats.system_order import order_agreement
from karat.stats.tukey import Tukey, tukey_each
from karat.stats.weighing import Weighing
from karat.tables.comparison import Order, Standing


def standings(
    scored: Sequence[Scores], weighing: Weighing, *, resamples: int, seed: int
) -> list[Standing]:
    """The place of each run under each measure, best first, with tie groups.

    Only queries for which every run has a value count, without those of weight 0.

    Args:
        scored: Two runs or more, over the same queries.
        weighing: What each query counts for.
        resamples: Arrangements of Tukey's test, where not all are gone through.
        seed: Of these.

    Source: as ``karat.stats.tukey``.
    """
    alike: dict[bytes, list[Measure]] = {}
    values = {m: np.stack([s.values[m] for s in scored], axis=1) for m in scored[0].values}
    for measure, table in values.items():
        if (used := scored[0].overall & ~np.isnan(table).any(axis=1)).any():
            alike.setdefault(used.tobytes(), []).append(measure)
    found: dict[Measure, tuple[Tukey, int]] = {}
    for key, measures in alike.items():
        used = np.frombuffer(key, np.bool_)
        cube = np.stack([values[measure][used] for measure in measures], axis=2)
        weights, _ = weighing.at(used)
        each = tukey_each(cube, np.random.default_rng(seed), weights=weights, resamples=resamples)
        found |= {m: (one, int(used.sum())) for m, one in zip(measures, each, strict=True)}
    names = [scores.run.name for scores in scored]
    return [
        row
        for measure in values
        if measure in found
        for row in _places(measure, names, *found[measure])
    ]


def orders(rows: Sequence[Standing], measures: Sequence[Measure]) -> list[Order]:
    """Whether each two measures put the runs in one order; none for fewer than three runs."""
    sign = {str(measure): -1 if measure.entry.direction == "lower" else 1 for measure in measures}
    means: dict[str, dict[str, float]] = {}
    for row in rows:
        means.setdefault(row.measure, {})[row.run] = sign[row.measure] * row.value
    runs = list(dict.fromkeys(row.run for row in rows))
    if len(runs) < 3:
        return []
    found = []
    for one, other in itertools.combinations(means, 2):
        left, right = (_column(means[measure], runs) for measure in (one, other))
        agreed = order_agreement(left, right)
        found.append(Order(one, other, len(runs), agreed.kendall, agreed.tau_ap, agreed.spearman))
    return found


def _column(means: dict[str, float], runs: Sequence[str]) -> Floats:
    return np.array([means[run] for run in runs])


def _places(measure: Measure, names: Sequence[str], found: Tukey, n: int) -> Iterator[Standing]:
    falling = measure.entry.direction != "lower"
    groups = found.groups if falling else tuple(group[::-1] for group in found.groups[::-1])
    letters = dict(zip(groups, _letters(), strict=False))
    honest = found.honest_difference
    for place in np.argsort(-found.means if falling else found.means, kind="stable").tolist():
        yield Standing(
            measure=str(measure),
            run=names[place],
            value=float(found.means[place]),
            n=n,
            groups="".join(letter for group, letter in letters.items() if place in group),
            honest_difference=honest if math.isfinite(honest) else None,
        )


def _letters() -> Iterator[str]:
    yield from string.ascii_lowercase
    yield from string.ascii_uppercase
    yield from (f"({number})" for number in itertools.count(1))
