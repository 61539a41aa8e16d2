"""Sample ratio: whether users are in the arms in the shares that were planned.

A mismatch means that some users of an arm were lost or moved, and no other number can be believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def mismatch(counts: Sequence[int], shares: Sequence[float]) -> float:
    """P-value of the counts under the planned shares, once: Pearson's chi-squared.

    Args:
        counts: Users of each arm.
        shares: Planned share or weight of each arm, 0 or more; an arm of weight 0 is left out.

    Returns:
        1 if fewer than two arms have a weight, or none has users.
    """
    seen, weights = _live(counts, shares)
    if len(seen) < 2 or not seen.sum():
        return 1.0
    expected = weights * seen.sum()
    from scipy.special import chdtrc

    return float(chdtrc(len(seen) - 1, ((seen - expected) ** 2 / expected).sum()))


def sequential_mismatch(
    counts: Sequence[int], shares: Sequence[float], concentration: float
) -> float:
    """P-value that may be read every day: a Bayes factor against the planned shares.

    Args:
        counts: As in ``mismatch``.
        shares: As in ``mismatch``.
        concentration: Of the Dirichlet prior around the shares: of the order of the planned number
            of users, as small deviations are what is looked for.

    Source: Lindon & Malek 2022, NeurIPS (Anytime-valid inference for multinomial count data).
    """
    seen, weights = _live(counts, shares)
    if len(seen) < 2 or not seen.sum():
        return 1.0
    return min(1.0, math.exp(-log_bayes_factor(seen, weights, concentration * weights)))


def log_bayes_factor(counts: np.ndarray, shares: np.ndarray, prior: np.ndarray) -> float:
    """Log of the marginal likelihood under a Dirichlet prior over that of the shares."""
    from scipy.special import gammaln

    after = prior + counts
    beta = gammaln(after).sum() - gammaln(after.sum())
    beta -= gammaln(prior).sum() - gammaln(prior.sum())
    return float(beta - (counts * np.log(shares)).sum())


def _live(counts: Sequence[int], shares: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    weights = np.array(shares, np.float64)
    live = weights > 0
    seen = np.array(counts, np.float64)[live]
    return seen, weights[live] / weights[live].sum() if live.any() else weights[live]
