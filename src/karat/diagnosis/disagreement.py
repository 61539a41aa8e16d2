"""Disagreement: where one measure says better and another says worse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from karat.measures.evidence import Floats, Mask
from karat.stats.effects import TIED
from karat.stats.paired import sign_test, t_test
from karat.stats.verdicts import LEVEL, Contrast
from karat.stats.weighing import Weighing
from karat.tables.comparison import Disagreement

Slice = tuple[str | None, str | None, Mask]
"""An attribute, its value, and which of the queries have it; None and None for all of them."""

_LEAST = 5  # queries; below, a sign says nothing


def disagreements(
    contrasts: Sequence[Contrast], slices: Sequence[Slice], weighing: Weighing
) -> list[Disagreement]:
    """Pairs of measures with opposite mean differences, each at least its standard error.

    Args:
        contrasts: One candidate against the baseline, under each measure.
        slices: The whole and its slices.
        weighing: What each query counts for.

    Returns:
        The whole first, then those that chance does not explain, then by how far the weaker of
        the two means is from 0 in standard errors.
    """
    found = [
        (sureness, row)
        for attribute, value, chosen in slices
        for one, other in itertools.combinations(contrasts, 2)
        for sureness, row in _opposed(one, other, attribute, value, chosen, weighing)
    ]
    found.sort(key=lambda pair: (pair[1].attribute is not None, not pair[1].sure, -pair[0]))
    return [row for _, row in found]


def _opposed(
    one: Contrast,
    other: Contrast,
    attribute: str | None,
    value: str | None,
    chosen: Mask,
    weighing: Weighing,
) -> Iterator[tuple[float, Disagreement]]:
    used = chosen & ~np.isnan(one.difference) & ~np.isnan(other.difference)
    if used.sum() < _LEAST:
        return
    weights, strata = weighing.at(used)
    gains = [contrast.sign * contrast.difference[used] for contrast in (one, other)]
    tested = [_tested(gain, weights, strata) for gain in gains]
    t = [statistic for statistic, _ in tested]
    if t[0] * t[1] >= 0 or min(map(abs, t)) < 1:
        return
    up, down = (0, 1) if t[0] > 0 else (1, 0)
    sides = [np.where(np.abs(gain) > TIED, np.sign(gain), 0.0) for gain in gains]
    means = [float(np.average(c.difference[used], weights=weights)) for c in (one, other)]
    names = [str(one.measure), str(other.measure)]
    yield (
        min(map(abs, t)),
        Disagreement(
            candidate=one.candidate.run.name,
            attribute=attribute,
            slice=value,
            better=names[up],
            worse=names[down],
            gain=means[up],
            loss=means[down],
            n=int(used.sum()),
            opposed=int(((sides[up] > 0) & (sides[down] < 0)).sum()),
            sure=all(p <= LEVEL for _, p in tested),
        ),
    )


def _tested(
    gain: Floats, weights: Floats | None, strata: NDArray[np.int64] | None
) -> tuple[float, float]:
    """How many standard errors the mean gain is from 0, and how likely chance makes it so."""
    found = t_test(gain, weights, strata)
    if found.statistic is not None and found.p is not None:
        return found.statistic, found.p
    # Without any spread: all the same, or all gain as much.
    by_sign = sign_test(gain).p
    return (0.0, 1.0) if by_sign is None else (math.copysign(math.inf, gain[0]), by_sign)
