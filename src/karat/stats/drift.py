"""Drift: many small steps in one direction, none of which shows by itself.

**Which noise.** All points of a stretch are means over the same queries with the same judgments.
The interval of each point measures the luck of having drawn these queries and not others, and that
is nearly the same luck at every point: it moves the whole line up or down and leaves the steps
alone. So the standard errors are not the scatter about the line, and a slope weighed by them is
nearly blind. A slope tested by its residuals sees slopes everywhere, as changes of code stay: the
line is a random walk (Granger and Newbold 1974, J. Econometrics 2). What is left is the steps
themselves, paired as they are.

**The test.** Without drift, a step is as likely to go down as up by the same amount, whatever its
size and whatever came before. So one can bet on its sign, knowing its size: the stake is
``tanh(θ |step| / s)`` (the form that is best for normal steps), s being the median size of the
steps so far, this one among them, which one great step does not move. The product of the returns
is a martingale of mean 1; so is its average over θ and over the step at which the drift began
(weights 1 / (j (j + 1))); and by Ville's inequality it ever reaches 1 / α with a chance of α at
most: however often one looks, however long the history is. Steps of exactly 0 count for nothing.

**Begun anew.** A history is cut into stretches, and each is tested from its own beginning; so the
k-th of them is given 6 α / (π² k²), which add up to α over as many as there may be. That it ever
leaned is no state of now: a drift is called one while the fall still stands (``since_best``), which
takes alarms away and adds none.

Sources: Ville 1939; de la Peña 1999, Annals of Probability 27 (symmetric steps); Ramdas, Grünwald,
Vovk and Shafer 2023, Game-theoretic statistics and safe anytime-valid inference, Statistical
Science 38 (4). Several series: each has its share of α (Bonferroni).

``told_apart`` is another thing: two values held against both their intervals, at 5 % for these two
and no other. Looked at night after night it is no test, and what it says is never called drift.

If each point has noise of its own that the next does not keep (an index that answers by chance), a
step down is followed by one up: the test alarms less often than stated, and sees less.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from statistics import NormalDist

LEVEL = 0.05
"""Most chance that any series of a history without drift is ever said to drift."""

BESIDE_LOOKS = 0.01
"""The same where values query by query are tested too (``karat.stats.looks``), at the rest."""

_STEEPNESS = (0.5, 1.0, 2.0)
"""Means of the steps that are bet on, in units of their median size."""
_HIGHEST_STAKE = 0.95
"""One step for the better, however large, leaves a twentieth of the evidence."""
_ENOUGH = 1e300
_Z = NormalDist().inv_cdf(0.975)


def evidence(steps: Sequence[float]) -> tuple[float, float]:
    """Evidence that steps lean downwards, and that they lean upwards, after the last of them.

    Args:
        steps: Differences between neighbours, oldest first; finite.

    Returns:
        The values of two martingales of mean 1, above 0: each reaches 20 or more in at most one
        history of twenty without drift, looked at after every step. 1 without steps.
    """
    # For each θ, the sum over beginnings of weight times product, of those begun so far.
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
    """Evidence from which steps are said to lean.

    Args:
        series: So many are tested; 1 or more.
        stretch: Which stretch of a series it is, counted from 1; each has a share of the level.
        level: Of all series and stretches together.

    Returns:
        ``series`` π² ``stretch``² / (6 · ``level``).
    """
    return series * math.pi**2 * stretch**2 / (6 * level)


def since_best(values: Sequence[float]) -> tuple[int, bool]:
    """From where a fall is counted, and whether it still stands.

    Args:
        values: Oldest first, one or more; higher is better.

    Returns:
        The place of the best value, of those with a neighbour that is as good (of several the
        first; so that one odd night is none); and whether the last value is below it, and not above
        the median of the values from there on.
    """
    held = []
    for place, value in enumerate(values):
        beside = [*values[max(place - 1, 0) : place], *values[place + 1 : place + 2]]
        held.append(min(value, max(beside, default=value)))
    best = held.index(max(held))
    last = values[-1]
    return best, last < values[best] and last <= _middle(sorted(values[best:]))


def _middle(ordered: Sequence[float]) -> float:
    """The median of what is in order already."""
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    # Neither the sum of two great steps nor the half of a small one is a number to divide by.
    return ordered[half - 1] + (ordered[half] - ordered[half - 1]) / 2


def standard_error(value: float | None, low: float | None, high: float | None) -> float | None:
    """Standard error behind a 95 % interval, by the normal distribution; None without one.

    By the end farther from the value: the other may have been cut at the range of the measure.
    For Student's t of few queries it is a little too large, which errs on the side of silence.
    """
    if value is None or low is None or high is None:
        return None
    return max(high - value, value - low) / _Z


def told_apart(
    before: float, after: float, errors: tuple[float | None, float | None]
) -> bool | None:
    """Whether two values differ by more than both their intervals allow; None without intervals.

    Where one has none (as all its queries have the same value), that of the other is taken for it.

    The two are taken for independent. They share their queries, so that their difference varies
    less than this: yes can be relied on, no cannot. ``karat compare`` of the two runs tells more.

    Args:
        before: The earlier value.
        after: The later one.
        errors: Their standard errors, 0 or more; None where not known.
    """
    known = [error for error in errors if error is not None]
    if not known:
        return None
    reach = _Z * math.hypot(known[0], known[-1])
    return bool(abs(after - before) > reach)  # of NumPy, too
