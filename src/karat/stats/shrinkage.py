"""Shrinkage: estimates of slices shrunk towards the overall one, as small slices are noisy."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from karat.stats.averages import Floats
from karat.tables.comparison import Difference


def shrunken(estimates: Floats, errors: Floats, centre: float) -> Floats:
    """Estimates shrunk towards the centre according to their precision; shape (s,).

    The variance between slices beyond that of their errors is estimated by moments; if it is 0,
    all estimates become the centre.

    Args:
        estimates: One for each slice; shape (s,).
        errors: Their standard errors, 0 or more; NaN where a slice has none, which shrinks it to
            the centre; shape (s,).
        centre: The overall estimate.

    Source: DerSimonian & Laird 1986, doi:10.1016/0197-2456(86)90046-2, for the spread; Efron &
    Morris 1975 for the estimate.
    """
    known = np.isfinite(errors) & (errors > 0)
    between = 0.0
    if known.sum() > 1:
        weight = 1.0 / errors[known] ** 2
        pooled = (weight * estimates[known]).sum() / weight.sum()
        excess = (weight * (estimates[known] - pooled) ** 2).sum() - (known.sum() - 1)
        between = max(0.0, excess / (weight.sum() - (weight**2).sum() / weight.sum()))
    trust = np.zeros(len(estimates))
    trust[known] = between / (between + errors[known] ** 2)
    trust[errors == 0] = 1.0 if between > 0 else 0.0
    out: Floats = centre + trust * (estimates - centre)
    return out


def shrink_slices(
    wholes: Sequence[Difference],
    rows: Sequence[Difference],
    apart: Collection[tuple[str, str | None, str | None]] = (),
) -> list[Difference]:
    """Differences in slices shrunk towards the overall one of the same measure and candidate.

    The error of a slice is the overall one, scaled to its number of queries, so a few queries that
    happen to agree do not look certain. Slices are assumed to share no query; if they do, this is
    an approximation. A slice in which both runs are identical stays at 0.

    Args:
        wholes: Over all queries.
        rows: In slices.
        apart: Candidate, attribute and value of slices whose queries have zero weight: they are
            neither shrunk nor used to estimate the variance between slices.
    """
    out: dict[int, float] = {}
    for whole in wholes:
        if whole.difference is None or whole.standard_error is None:
            continue
        members = [
            i
            for i, row in enumerate(rows)
            if (row.candidate, row.measure) == (whole.candidate, whole.measure)
            and (row.candidate, row.attribute, row.slice) not in apart
            and row.n > 1
            and row.verdict != "identical"
        ]
        estimates = np.array([rows[i].difference for i in members], np.float64)
        errors = np.array([whole.standard_error * math.sqrt(whole.n / rows[i].n) for i in members])
        out |= zip(members, shrunken(estimates, errors, whole.difference).tolist(), strict=True)
    return [
        replace(row, shrunk=row.difference if row.verdict == "identical" else out.get(i))
        for i, row in enumerate(rows)
    ]
