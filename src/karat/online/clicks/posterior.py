"""Intervals of probabilities: Beta distributions, exact or matched."""

from __future__ import annotations

import numpy as np

from karat.online.clicks.counts import Floats, Integers
from karat.online.clicks.entry import Prior, Relevance, prior_counts

Z95 = 1.959963984540054  # 97.5 % quantile of the normal distribution
_LEAST = 1e-3  # pseudo-counts below which digamma and its kin lose their meaning


def beta_interval(successes: Floats, failures: Floats) -> tuple[Floats, Floats]:
    """The central 95 % of Beta distributions."""
    from scipy.special import betaincinv

    low, high = (betaincinv(successes, failures, tail) for tail in (0.025, 0.975))
    return low.astype(np.float64), high.astype(np.float64)


def beta_relevance(value: Floats, strength: Floats, effective: Floats) -> Relevance:
    """Relevance whose posterior is Beta(value · strength, (1 - value) · strength).

    A posterior known by its mode and curvature on the logit scale is matched by the Beta
    distribution that has the same: its mode there is the mean, its curvature strength · value ·
    (1 - value). Unlike a normal distribution it keeps its shape where clicks are few.
    """
    from scipy.special import digamma, zeta

    successes = np.maximum(value * strength, _LEAST)
    failures = np.maximum((1 - value) * strength, _LEAST)
    return Relevance(
        value,
        *beta_interval(successes, failures),
        logit=digamma(successes) - digamma(failures),
        logit_se=np.sqrt(zeta(2, successes) + zeta(2, failures)),  # trigamma
        effective=effective,
    )


def counted_relevance(query: Integers, prior: Prior, clicked: Floats, looked: Floats) -> Relevance:
    """Relevance that is clicks over impressions.

    Args:
        query: Number of the query of each pair.
        prior: Of each pair; it counts as 2 impressions.
        clicked: Clicks of each pair.
        looked: Impressions that count, of each pair.
    """
    hits, _ = prior_counts(query, prior, clicked, looked)
    return beta_relevance((clicked + hits) / (looked + 2), looked + 2, looked)


def product_relevance(
    first: tuple[Floats, Floats], second: tuple[Floats, Floats], effective: Floats
) -> Relevance:
    """Relevance that is the product of two independent Beta variables, matched by its moments."""
    value, square = np.ones_like(effective), np.ones_like(effective)
    for successes, failures in (first, second):
        mean = successes / (successes + failures)
        value = value * mean
        square = square * mean * (successes + 1) / (successes + failures + 1)
    strength = value * (1 - value) / (square - value**2) - 1
    return beta_relevance(value, strength, effective)
