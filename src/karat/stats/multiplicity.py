"""Many comparisons at once: p-values corrected for how many chances luck had."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat.errors import UsageError
from karat.stats.averages import Floats


def holm(p: Sequence[float | None] | Floats) -> list[float | None]:
    """Adjusted p-values of Holm: the chance of any false finding stays below the level.

    Holds however the tests hang together.

    Args:
        p: P-values, 0 to 1, in any order; shape (m,). None and NaN are no tests: they come back
            as they are and do not count among the m.

    Returns:
        The smallest level at which each would be found, in the order given; at most 1.

    Raises:
        UsageError: a p-value outside of 0 to 1.

    Source: Holm 1979, jstor.org/stable/4615733.
    """
    known, sizes = _known(p)
    order = np.argsort(sizes, kind="stable")
    m = len(sizes)
    stepped = np.minimum(1.0, np.maximum.accumulate(sizes[order] * np.arange(m, 0, -1)))
    return _back(p, known, order, stepped)


def benjamini_hochberg(p: Sequence[float | None] | Floats) -> list[float | None]:
    """Adjusted p-values of Benjamini and Hochberg: of what is found, few are false.

    Keeps the expected share of false findings below the level if the tests are independent or
    hang together positively, as slices of one comparison do.

    Args:
        p: As in ``holm``.

    Returns:
        As ``holm`` does.

    Raises:
        UsageError: a p-value outside of 0 to 1.

    Source: Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    known, sizes = _known(p)
    order = np.argsort(sizes, kind="stable")
    m = len(sizes)
    # m / rank first would make the largest one differ from its own p by a bit.
    scaled = sizes[order] * m / np.arange(1, m + 1)
    stepped = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return _back(p, known, order, stepped)


def _known(p: Sequence[float | None] | Floats) -> tuple[list[int], Floats]:
    """Places of those that are p-values, and these."""
    known = [i for i, value in enumerate(p) if value is not None and not np.isnan(value)]
    sizes = np.array([p[i] for i in known], np.float64)
    wrong = sizes[(sizes < 0) | (sizes > 1)]
    if len(wrong):
        raise UsageError(f"{float(wrong[0]):g} is no p-value", fix="give numbers from 0 to 1")
    return known, sizes


def _back(
    p: Sequence[float | None] | Floats, known: list[int], order: np.ndarray, stepped: Floats
) -> list[float | None]:
    """The adjusted ones where the p-values stood; rounding makes none smaller than its p."""
    out = [None if value is None else float(value) for value in p]
    for place, adjusted in zip(order.tolist(), stepped.tolist(), strict=True):
        before = out[known[place]]
        assert before is not None
        out[known[place]] = max(before, adjusted)
    return out
