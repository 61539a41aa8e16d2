"""Drift: many small steps in one direction, none of which is visible on its own.

**Which noise.** All points of a stretch are means over the same queries with the same judgments.
The interval of each point measures the sampling error of these queries, which is nearly the same at
every point: it shifts the whole line and not the steps. So the standard errors are not the scatter
about the line, and a slope weighted by them has hardly any power. A slope tested by its residuals
finds slopes everywhere, as changes of code persist: the line is a random walk (Granger and Newbold
1974, J. Econometrics 2). What remains is the steps themselves, which are paired.

**The test.** Without drift, a step is as likely to go down as up by the same amount, whatever its
size and the steps before. So one can bet on its sign, knowing its size: the stake is
``tanh(θ |step| / s)`` (the best form for normal steps), where s is the median size of the steps so
far, this one included, which one large step does not move. The product of the returns is a
martingale of mean 1; so is its average over θ and over the step at which the drift began (weights
1 / (j (j + 1))); by Ville's inequality it ever reaches 1 / α with probability α at most, for any
number of looks and any length of the history. Steps of exactly 0 do not count.

**Stretches.** A history is cut into stretches, each tested from its own beginning; the k-th has the
level 6 α / (π² k²), and these add up to α. A drift is reported only while the fall persists
(``since_best``), which removes alarms and adds none.

Sources: Ville 1939; de la Peña 1999, Annals of Probability 27 (symmetric steps); Ramdas, Grünwald,
Vovk and Shafer 2023, Game-theoretic statistics and safe anytime-valid inference, Statistical
Science 38 (4). Several series: each has its share of α (Bonferroni).

``told_apart`` is different: it compares two values with both their intervals, at 5 % for this pair
only. Repeated every night it is not a valid test, and its result is never reported as drift.

If each point has independent noise (such as an index with random answers), a step down is followed
by one up: the test alarms less often than stated and has less power.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from statistics import NormalDist

LEVEL = 0.05
"""Highest probability that drift is ever reported for any series of a history without drift."""

BESIDE_LOOKS = 0.01
"""The same if values by query are tested as well (``karat.stats.looks``), at the rest."""

_STEEPNESS = (0.5, 1.0, 2.0)  # mean steps that are bet on, in units of their median size
_HIGHEST_STAKE = 0.95  # one step up, however large, leaves at least a twentieth of the evidence
_ENOUGH = 1e300
_Z = NormalDist().inv_cdf(0.975)


def evidence(steps: Sequence[float]) -> tuple[float, float]:
    """Evidence of drift downwards and of drift upwards, after the last step.

    Args:
        steps: Differences between neighbours, oldest first; finite.

    Returns:
        The values of two martingales of mean 1, above 0: each ever reaches 20 in at most one of
        twenty histories without drift, checked after every step. 1 without steps.
    """
    # For each θ, the sum over beginnings so far of weight times product.
    down, up = [0.0] * len(_STEEPNESS), [0.0] * len(_STEEPNESS)
    waiting = 1.0
    sizes: list[float] = []
    for place, step in enumerate((step for step in steps if step != 0), start=1):
        insort(sizes, abs(step))
        size = abs(step) / _middle(sizes)
        begun = 1 / (place * (place + 1))
        waiting = 1 / (place + 1)
        won, lost = (down, up) if step < 0 else (up, down)
        for index, theta in enumerate(_STEEPNESS):
            stake = min(math.tanh(theta * size), _HIGHEST_STAKE)
            won[index] = min((won[index] + begun) * (1 + stake), _ENOUGH)
            lost[index] = (lost[index] + begun) * (1 - stake)
    return math.fsum(down) / len(down) + waiting, math.fsum(up) / len(up) + waiting


def needed(series: int, stretch: int, level: float = LEVEL) -> float:
    """Evidence from which drift is reported.

    Args:
        series: Number of series tested; 1 or more.
        stretch: Number of the stretch in its series, from 1; each has a share of the level.
        level: Of all series and stretches together.

    Returns:
        ``series`` π² ``stretch``² / (6 · ``level``).
    """
    return series * math.pi**2 * stretch**2 / (6 * level)


def since_best(values: Sequence[float]) -> tuple[int, bool]:
    """Where a fall begins, and whether it persists.

    Args:
        values: Oldest first, one or more; higher is better.

    Returns:
        The index of the best value that has a neighbour at least as good (the first of several;
        this ignores single outliers); and whether the last value is below it, and not above
        the median of the values from there on.
    """
    sustained = []
    for place, value in enumerate(values):
        neighbours = [*values[max(place - 1, 0) : place], *values[place + 1 : place + 2]]
        sustained.append(min(value, max(neighbours, default=value)))
    best = sustained.index(max(sustained))
    last = values[-1]
    return best, last < values[best] and last <= _middle(sorted(values[best:]))


def _middle(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    # Neither overflows for large steps nor becomes 0 for small ones.
    return ordered[half - 1] + (ordered[half] - ordered[half - 1]) / 2


def standard_error(value: float | None, low: float | None, high: float | None) -> float | None:
    """Standard error behind a 95 % interval, by the normal distribution; None without one.

    Uses the end farther from the value, as the other may be cut at the range of the measure.
    For Student's t of few queries it is slightly too large, which is conservative.
    """
    if value is None or low is None or high is None:
        return None
    return max(high - value, value - low) / _Z


def told_apart(
    before: float, after: float, errors: tuple[float | None, float | None]
) -> bool | None:
    """Whether two values are significantly different by their intervals; None without intervals.

    If one has none (as all its queries have the same value), that of the other is used for it.

    The two are treated as independent. They share their queries, so their difference varies
    less: True is reliable, False is not. ``karat compare`` of the two runs is more exact.

    Args:
        before: The earlier value.
        after: The later one.
        errors: Their standard errors, 0 or more; None where not known.
    """
    known = [error for error in errors if error is not None]
    if not known:
        return None
    reach = _Z * math.hypot(known[0], known[-1])
    return bool(abs(after - before) > reach)  # not a NumPy bool
