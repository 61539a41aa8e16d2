"""Shrinkage: estimates of slices drawn towards the whole, so that a small one does not shout."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from karat.stats.averages import Floats
from karat.tables.comparison import Difference


def shrunken(estimates: Floats, errors: Floats, centre: float) -> Floats:
    """Each estimate between itself and the centre, by how much it knows; shape (s,).

    The spread between slices beyond what their errors explain is estimated by moments; without
    any, all are drawn to the centre whole.

    Args:
        estimates: One for each slice; shape (s,).
        errors: Their standard errors, 0 or more; NaN where a slice has none, and then it is taken
            to know nothing; shape (s,).
        centre: What is known of all together.

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
    """Slices drawn towards the whole, each under its own measure and candidate.

    The error of a slice is that of the whole, scaled to its number of queries: a few queries that
    happen to agree do not look sure. Slices are taken to share no query; where they do, it is a
    guide. A slice in which both runs are identical stays at 0.

    Args:
        wholes: Over all queries.
        rows: In slices of them.
        apart: Candidate, attribute and value of slices whose queries have no part in the whole
            (weight 0): nothing draws them to it, and they say nothing of the others.
    """
    out: dict[int, float] = {}
    for whole in wholes:
        if whole.difference is None or whole.standard_error is None:
            continue
        held = [
            i
            for i, row in enumerate(rows)
            if (row.candidate, row.measure) == (whole.candidate, whole.measure)
            and (row.candidate, row.attribute, row.slice) not in apart
            and row.n > 1
            and row.verdict != "identical"
        ]
        estimates = np.array([rows[i].difference for i in held], np.float64)
        errors = np.array([whole.standard_error * math.sqrt(whole.n / rows[i].n) for i in held])
        out |= zip(held, shrunken(estimates, errors, whole.difference).tolist(), strict=True)
    return [
        replace(row, shrunk=row.difference if row.verdict == "identical" else out.get(i))
        for i, row in enumerate(rows)
    ]
