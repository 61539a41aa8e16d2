"""Expectation maximisation, accelerated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from karat.online.clicks.counts import Floats

COMPAT = 50  # iterations of PyClick
_LEAST = 50  # iterations
_MOST = 5_000
_CLOSE = 1e-10  # relative gain of the objective in three iterations at which it stops
_EDGE = 30.0  # logit that counts as 0 or 1


def climb(
    step: Callable[[Floats], Floats], objective: Callable[[Floats], float], start: Floats
) -> tuple[Floats, int]:
    """Parameters at the optimum, and the number of iterations.

    Two iterations of EM are extrapolated (SQUAREM: Varadhan & Roland 2008, Scandinavian Journal of
    Statistics 35, scheme S3, here in logits); where that does not improve the objective, it is
    plain EM. The objective never falls.

    Args:
        step: An iteration of EM.
        objective: The penalised log-likelihood.
        start: Probabilities.
    """
    values, best, iterations = start, objective(start), 0
    while iterations < _MOST:
        first = step(values)
        second = step(first)
        values, reached = second, -np.inf
        far = _extrapolated(start, first, second)
        iterations += 2
        if far is not None:
            far = step(far)
            iterations += 1
            reached = objective(far)
            values = far if reached >= best else second
        if values is second:
            reached = objective(second)
        if iterations >= _LEAST and reached - best <= _CLOSE * abs(best):
            break
        start, best = values, reached
    return values, iterations


def _extrapolated(start: Floats, first: Floats, second: Floats) -> Floats | None:
    """Where two iterations lead; None if no further than the second."""
    logits = [np.log(each) - np.log1p(-each) for each in (start, first, second)]
    move = logits[1] - logits[0]
    bend = logits[2] - logits[1] - move
    length = np.sqrt((move**2).sum() / max(float((bend**2).sum()), 1e-300))
    if length <= 1:
        return None
    far = logits[0] + 2 * length * move + length**2 * bend
    return np.asarray(1 / (1 + np.exp(-np.clip(far, -_EDGE, _EDGE))))
