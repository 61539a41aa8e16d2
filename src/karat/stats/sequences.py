"""Confidence sequences: intervals that may be read at any time, every day, and stay valid.

**Means.** An asymptotic sequence needs no distribution; a boundary that mixes over effects is
narrowest at a planned number of observations (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024,
Annals of Statistics, arXiv:2103.06476, Theorem 2.2 and eq. 31). **Shares** of successes in
independent trials have an exact one, by a mixture over a beta distribution (Howard, Ramdas,
McAuliffe & Sekhon 2021, Annals of Statistics, Proposition 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable

LEAST = 100  # observations (per arm) below which the asymptotic sequence is not to be shown
_TUNED = 0.05  # level at which the exact sequence is narrowest at the planned number


def tuning(planned: float, alpha: float) -> float:
    """The parameter that makes the sequence narrowest at a planned number of observations."""
    return math.sqrt((-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / planned)


def reach(error: float, n: float, planned: float, alpha: float = 0.05) -> float:
    """Half the width of the confidence sequence of a mean or difference of means.

    Args:
        error: Standard error of the estimate from these observations.
        n: Observations so far (users of both arms), 1 or more.
        planned: Number of observations at which it is to be narrowest.
        alpha: Share of experiments whose sequence ever misses the true value.
    """
    rho2 = tuning(planned, alpha) ** 2
    grown = n * rho2 + 1
    return error * math.sqrt(2 * grown / (n * rho2) * math.log(math.sqrt(grown) / alpha))


def reach_one_sided(error: float, n: float, planned: float, alpha: float = 0.05) -> float:
    """The distance of a one-sided confidence sequence from the estimate; arguments as ``reach``.

    Source: arXiv:2103.06476, appendix B.1 (one-sided boundary).
    """
    rho2 = tuning(planned, 2 * alpha) ** 2
    grown = n * rho2 + 1
    return error * math.sqrt(2 * grown / (n * rho2) * math.log(1 + math.sqrt(grown) / (2 * alpha)))


def share(successes: int, trials: int, planned: int, alpha: float = 0.05) -> tuple[float, float]:
    """Confidence sequence of the share of successes in independent trials.

    Args:
        successes: So far.
        trials: So far; 0 gives (0, 1).
        planned: Number of trials at which it is to be narrowest.
        alpha: Share of experiments whose sequence ever misses the true share.
    """
    if not trials:
        return 0.0, 1.0
    observed = successes / trials

    def refuted(p: float) -> bool:
        return _evidence(p, successes, trials - successes, planned) >= -math.log(alpha)

    low = _edge(refuted, 0.0, observed) if observed > 0 else 0.0
    high = _edge(refuted, 1.0, observed) if observed < 1 else 1.0
    return low, high


def _evidence(p: float, successes: int, failures: int, planned: int) -> float:
    """Log of the martingale, a mixture over a beta distribution, that refutes a share of ``p``."""
    spread = p * (1 - p)
    weight = max(planned * spread / (tuning(1, _TUNED) ** 2) - spread, 1e-3 * spread)
    failing, succeeding = weight / p, weight / (1 - p)
    return (
        _log_beta(failing + failures, succeeding + successes)
        - _log_beta(failing, succeeding)
        - successes * math.log(p)
        - failures * math.log1p(-p)
    )


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _edge(refuted: Callable[[float], bool], outside: float, inside: float) -> float:
    """The share between two at which the evidence refutes it."""
    for _ in range(60):
        middle = (outside + inside) / 2
        if 0 < middle < 1 and not refuted(middle):
            inside = middle
        else:
            outside = middle
    return (outside + inside) / 2
