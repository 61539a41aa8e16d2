"""P-values corrected for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat.errors import UsageError
from karat.stats.averages import Floats


def holm(p: Sequence[float | None] | Floats) -> list[float | None]:
    """Holm's adjusted p-values, which control the probability of any false finding.

    Holds for any dependence between the tests.

    Args:
        p: P-values, 0 to 1, in any order; shape (m,). None and NaN are not counted among the m,
            and returned unchanged.

    Returns:
        The lowest level at which each would be significant, in the order given; at most 1.

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
    """Benjamini and Hochberg's adjusted p-values, which control the false discovery rate.

    Holds for tests that are independent or positively correlated, as slices of one comparison are.

    Args:
        p: As in ``holm``.

    Returns:
        As in ``holm``.

    Raises:
        UsageError: a p-value outside of 0 to 1.

    Source: Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    known, sizes = _known(p)
    order = np.argsort(sizes, kind="stable")
    m = len(sizes)
    # Computing m / rank first would change the last bit of the largest.
    scaled = sizes[order] * m / np.arange(1, m + 1)
    stepped = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return _back(p, known, order, stepped)


def _known(p: Sequence[float | None] | Floats) -> tuple[list[int], Floats]:
    """Indices of the p-values that are not None or NaN, and these p-values."""
    known = [i for i, value in enumerate(p) if value is not None and not np.isnan(value)]
    sizes = np.array([p[i] for i in known], np.float64)
    wrong = sizes[(sizes < 0) | (sizes > 1)]
    if len(wrong):
        raise UsageError(f"{float(wrong[0]):g} is not a p-value", fix="give numbers from 0 to 1")
    return known, sizes


def _back(
    p: Sequence[float | None] | Floats, known: list[int], order: np.ndarray, stepped: Floats
) -> list[float | None]:
    """The adjusted p-values in the order of ``p``; rounding makes none smaller than its p."""
    out = [None if value is None else float(value) for value in p]
    for place, adjusted in zip(order.tolist(), stepped.tolist(), strict=True):
        before = out[known[place]]
        assert before is not None
        out[known[place]] = max(before, adjusted)
    return out
