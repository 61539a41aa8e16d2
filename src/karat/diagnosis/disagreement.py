"""Disagreement: where one measure is better and another is worse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from karat.diagnosis.slices import Slice
from karat.measures.evidence import Floats
from karat.stats.averages import mean
from karat.stats.effects import TIED
from karat.stats.multiplicity import benjamini_hochberg
from karat.stats.paired import sign_test, t_test
from karat.stats.verdicts import Contrast
from karat.stats.weighing import Weighing
from karat.tables.comparison import Disagreement

_LEAST = 5  # queries; with fewer, a sign is meaningless


def disagreements(
    contrasts: Sequence[Contrast], slices: Sequence[Slice], weighing: Weighing
) -> list[Disagreement]:
    """Pairs of measures with opposite mean differences, each at least its standard error.

    Args:
        contrasts: One candidate against the baseline, under each measure.
        slices: All queries and their slices; those with fewer than five queries are skipped.
        weighing: Weights of the queries.

    Returns:
        The most significant first: by the larger of the two p-values, corrected (Benjamini and
        Hochberg) over every pair of measures in every slice; pairs that agree count as 1.

    Source: Berger 1982, doi:10.1080/00401706.1982.10487790, for the larger of two p-values.
    """
    looked_at = [
        _compared(one, other, part, weighing)
        for part in slices
        for one, other in itertools.combinations(contrasts, 2)
    ]
    corrected = benjamini_hochberg([1.0 if row is None else row.p for row in looked_at])
    found = [
        replace(row, p_corrected=1.0 if p is None else p)
        for row, p in zip(looked_at, corrected, strict=True)
        if row is not None
    ]
    return sorted(found, key=lambda row: (row.p_corrected, row.p, row.attribute is not None))


def _compared(
    one: Contrast, other: Contrast, part: Slice, weighing: Weighing
) -> Disagreement | None:
    """The disagreement of two measures in a slice, if they disagree."""
    used = part.chosen & ~np.isnan(one.difference) & ~np.isnan(other.difference)
    if used.sum() < _LEAST:
        return None
    weights, strata = weighing.at(used)
    gains = [contrast.sign * contrast.difference[used] for contrast in (one, other)]
    (t_one, p_one), (t_other, p_other) = (_tested(gain, weights, strata) for gain in gains)
    if t_one * t_other >= 0 or min(abs(t_one), abs(t_other)) < 1:
        return None
    up, down = (one, other) if t_one > 0 else (other, one)
    rise, fall = gains if t_one > 0 else gains[::-1]
    return Disagreement(
        candidate=one.candidate.run.name,
        attribute=part.attribute,
        slice=part.value,
        better=str(up.measure),
        worse=str(down.measure),
        better_difference=mean(up.difference[used], weights),
        worse_difference=mean(down.difference[used], weights),
        n=int(used.sum()),
        opposed=int(((rise > TIED) & (fall < -TIED)).sum()),
        p=max(p_one, p_other),
        p_corrected=1.0,
    )


def _tested(
    gain: Floats, weights: Floats | None, strata: NDArray[np.int64] | None
) -> tuple[float, float]:
    """The t statistic of the mean gain, and its p-value."""
    found = t_test(gain, weights, strata)
    if found.statistic is not None and found.p is not None:
        return found.statistic, found.p
    # Without spread: no gains, or all equal.
    by_sign = sign_test(gain).p
    return (0.0, 1.0) if by_sign is None else (math.copysign(math.inf, gain[0]), by_sign)
