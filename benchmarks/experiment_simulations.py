"""Experiments on simulated users with a known truth: how often karat is wrong, what it sees.

    python benchmarks/experiment_simulations.py [--experiments N] [--users N]

Users differ in how often they come (log-normal, a few make most searches) and in how often they
click (beta). They come back over 60 days. Printed: false positives of the fixed interval at the
end and of looking at it every day, of the confidence sequence looked at every day, with a window
of 7 days and without; coverage of lifts; the variance that the period before removes; the power of
the sample-ratio tests; and how many searches interleaving and an A/B test need for the same
difference. tea-tasting and GrowthBook publish no such numbers.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np

from karat.experiments.interleaving import credit, interleave
from karat.stats import sequences
from karat.stats.arms import ArmMoments, Floats, arm, contrast, cuped
from karat.stats.sample_ratio import mismatch, sequential_mismatch

DAYS, WINDOW, ALPHA = 60, 7, 0.05


@dataclass(frozen=True)
class Users:
    """One row for each user."""

    treated: np.ndarray
    first: np.ndarray  # day of the first exposure
    searches: np.ndarray  # by day, from the first exposure on; shape (users, days)
    clicks: np.ndarray
    before: Floats  # clicks and searches before; shape (users, 2)


def simulate(rng: np.random.Generator, users: int, lift: float) -> Users:
    """Users of one experiment; ``lift`` multiplies the click probability of the treated."""
    often = np.minimum(rng.lognormal(-1.2, 1.0, users), 5.0)
    likes = rng.beta(4.0, 6.0, users)
    treated = rng.random(users) < 0.5
    first = rng.integers(0, DAYS, users)
    age = np.arange(DAYS)[None, :] - first[:, None]
    searches = np.where(age >= 0, rng.poisson(often[:, None], (users, DAYS)), 0)
    searches[np.arange(users), first] += 1  # the exposure itself
    probability = np.minimum(likes * np.where(treated, 1 + lift, 1.0), 1.0)
    clicks = rng.binomial(searches, probability[:, None])
    earlier = rng.poisson(often * 14)
    return Users(
        treated, first, searches, clicks,
        np.stack([rng.binomial(earlier, likes), earlier], axis=1).astype(float),
    )  # fmt: skip


def moments(values: Floats) -> ArmMoments:
    """Of users: clicks, searches, and both before."""
    far = values - values.mean(axis=0)
    return ArmMoments(len(values), values.mean(axis=0), far.T @ far)


def at_day(users: Users, day: int, window: int | None) -> list[ArmMoments]:
    """Both arms as seen at the end of a day."""
    age = np.arange(DAYS)[None, :] - users.first[:, None]
    seen = np.arange(DAYS)[None, :] <= day
    if window is None:
        there, counted = users.first <= day, seen
    else:  # only users whose window is closed, and what they did in it
        there, counted = users.first + window <= day + 1, (age >= 0) & (age < window)
    y, d = (users.clicks * counted).sum(axis=1), (users.searches * counted).sum(axis=1)
    values = np.column_stack([y, d, users.before]).astype(float)
    return [moments(values[there & (users.treated == side)]) for side in (False, True)]


def false_positives(rng: np.random.Generator, experiments: int, users: int) -> None:
    """Under no effect, at the end and by looking on each of 60 days."""
    for window in (WINDOW, None):
        end = peeked = sequence = 0
        for _ in range(experiments):
            sample = simulate(rng, users, 0.0)
            any_fixed = any_sequence = False
            for day in range(WINDOW + 3, DAYS):
                control, treatment = at_day(sample, day, window)
                n = control.users + treatment.users
                if min(control.users, treatment.users) < 100:
                    continue
                both = contrast(arm(control), arm(treatment))
                any_fixed |= both.p is not None and both.p < ALPHA
                reach = sequences.reach(both.error, n, users, ALPHA)
                any_sequence |= abs(both.difference) > reach
            end += both.p is not None and both.p < ALPHA
            peeked += any_fixed
            sequence += any_sequence
        name = "no window" if window is None else f"window of {window} days"
        print(
            f"no effect, {name}: at the end {_share(end, experiments)}, looking every day "
            f"{_share(peeked, experiments)}, sequence {_share(sequence, experiments)}"
        )


def coverage(rng: np.random.Generator, experiments: int, users: int) -> None:
    """Whether intervals of difference and lift hold the truth, and what CUPED removes."""
    for lift in (0.0, 0.05, 0.2):
        # The truth: the ratio over very many users.
        large = simulate(rng, 200_000, lift)
        control, treatment = (arm(each).value for each in at_day(large, DAYS - 1, WINDOW))
        truth = control * (1 + lift) / control - 1 if lift else 0.0
        held = held_relative = 0
        kept = []
        for _ in range(experiments):
            arms = at_day(simulate(rng, users, lift), DAYS - 1, WINDOW)
            theta, before = cuped(arms[0], arms[1])
            plain, adjusted = (
                contrast(*(arm(each, t, before) for each in arms)) for t in (0.0, theta)
            )
            assert adjusted.low is not None
            assert adjusted.high is not None
            held += adjusted.low <= control * truth <= adjusted.high
            if adjusted.relative_low is not None and adjusted.relative_high is not None:
                held_relative += adjusted.relative_low <= truth <= adjusted.relative_high
            kept.append((adjusted.error / plain.error) ** 2)
        print(
            f"lift {100 * lift:.0f} % ({treatment / control - 1:+.3f} over many users): difference "
            f"covered {_share(held, experiments)}, lift {_share(held_relative, experiments)}; the "
            f"period before removes {100 * (1 - np.mean(kept)):.0f} % of the variance"
        )


def sample_ratio(rng: np.random.Generator, experiments: int) -> None:
    """Power to see that 2 % of the users of one arm are lost."""
    for users in (10_000, 50_000, 200_000):
        once = daily = 0
        for _ in range(experiments):
            counts = rng.binomial(users // 2, 1.0), rng.binomial(users // 2, 0.98)
            once += mismatch(counts, (1, 1)) < 0.001
            daily += sequential_mismatch(counts, (1, 1), users) < 0.001
        print(
            f"2 % of one arm lost, {users:,} users: seen once {_share(once, experiments)}, by the "
            f"test for every day {_share(daily, experiments)}"
        )


def interleaving(rng: np.random.Generator, experiments: int) -> None:
    """Two rankings, one with two neighbours swapped three times: searches for the same power."""
    documents = [str(number) for number in range(10)]
    relevant = np.linspace(0.45, 0.05, 10)
    worse = documents[:]
    for at in (0, 2, 4):
        worse[at], worse[at + 1] = worse[at + 1], worse[at]
    looks = 0.85 ** np.arange(10)

    def click(ranking: tuple[str, ...]) -> list[int]:
        """Until satisfied: users leave after a click with probability .5."""
        clicked = []
        for place, doc in enumerate(ranking):
            if rng.random() > looks[place] / (looks[place - 1] if place else 1.0):
                break
            if rng.random() < relevant[int(doc)]:
                clicked.append(place)
                if rng.random() < 0.5:
                    break
        return clicked

    for searches in (250, 1000, 4000):
        found = [0, 0]
        for trial in range(experiments):
            score = []
            for number in range(searches):
                made = interleave(worse, documents, seed=f"{trial}-{number}")
                a, b = credit(made.teams, click(made.doc_ids))
                score.append(float(np.sign(b - a)))
            found[0] += np.mean(score) / (np.std(score, ddof=1) / math.sqrt(searches)) > 1.96
            rr = [
                [
                    1 / (places[0] + 1) if (places := click(tuple(r))) else 0.0
                    for _ in range(searches // 2)
                ]
                for r in (worse, documents)
            ]
            error = math.sqrt(sum(np.var(each, ddof=1) / len(each) for each in rr))
            found[1] += (np.mean(rr[1]) - np.mean(rr[0])) / error > 1.96
        print(
            f"{searches:,} searches: interleaving finds the better ranking in "
            f"{_share(found[0], experiments)}, MRCR of two arms in {_share(found[1], experiments)}"
        )


def _share(part: float, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def main() -> None:
    """Print everything; 1,000 experiments take about 20 minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--users", type=int, default=2000)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    false_positives(rng, given.experiments, given.users)
    coverage(rng, given.experiments, given.users)
    sample_ratio(rng, given.experiments)
    interleaving(rng, min(given.experiments, 200))


if __name__ == "__main__":
    main()
