"""How often intervals of agreement hold the truth, where raters read whole queries differently.

    python benchmarks/agreement_coverage.py [--repetitions N] [--resamples N] [--seed N]

Two raters grade 15 documents of each query from 0 to 3. Each sees the document's relevance with an
error of their own, and reads each query a little stricter or laxer, most queries hardly so and a
few much; documents of one query therefore hang together. The true figure is that of 40,000
queries. Printed is how often each interval holds it, by number of queries, how often it lies
wholly above it (which lets raters pass that should not), and how long it is on average.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from karat.stats.agreement import (
    Ratings,
    Sums,
    ac1,
    agreement_interval,
    alpha,
    mean_kappa,
    mean_share_equal,
)
from karat.stats.averages import Floats
from karat.stats.intervals import resample
from karat.stats.student import t_quantile

FIGURES: dict[str, Callable[[Ratings], Sums]] = {
    "κ, quadratic weights": lambda ratings: mean_kappa(ratings, "quadratic"),
    "κ, no weights": lambda ratings: mean_kappa(ratings, "none"),
    "α, ordinal": lambda ratings: alpha(ratings, "ordinal"),
    "AC1": lambda ratings: ac1(ratings, 4),
    "share equal": mean_share_equal,
}
SIZES = (10, 20, 50)
DOCUMENTS = 15
CUTS = (0.3, 1.0, 1.7)
Span = tuple[float, float]


class Raters(NamedTuple):
    """How two raters differ: document by document, and query by query."""

    name: str
    noise: float
    shift: float


POPULATIONS = (
    Raters("no query is read differently", 0.5, 0.0),
    Raters("a few are", 0.5, 0.6),
    Raters("many are", 0.5, 1.2),
    Raters("a few are, and raters are else careful", 0.25, 0.4),
)


def main() -> None:
    """Print the coverage of each interval, a line for each population and number of queries."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    error = 100 * math.sqrt(0.95 * 0.05 / options.repetitions)
    print(f"each share has a standard error of about {error:.1f}; (above the truth; length)")
    for raters in POPULATIONS:
        rng = np.random.default_rng(options.seed)
        many = draw(rng, 40_000, raters)
        truth = {name: make(many).whole for name, make in FIGURES.items()}
        print(f"\n{raters.name}: noise {raters.noise}, shift {raters.shift}")
        for name, make in FIGURES.items():
            print(f"  {name}: {truth[name]:.3f}")
            for size in SIZES:
                spans: dict[str, list[Span]] = {}
                for _ in range(options.repetitions):
                    sums = make(draw(rng, size, raters))
                    for kind, span in intervals(sums, options.resamples, rng).items():
                        spans.setdefault(kind, []).append(span)
                cells = [f"{kind} {_held(found, truth[name])}" for kind, found in spans.items()]
                print(f"  {size:4}  " + "  ".join(cells), flush=True)


def draw(rng: np.random.Generator, queries: int, raters: Raters) -> Ratings:
    """Two raters' grades of every document."""
    centre = rng.normal(0, 0.7, (queries, 1))
    relevance = centre + rng.normal(0, 1, (queries, DOCUMENTS))
    contested = rng.lognormal(-0.5, 0.7, (queries, 1))
    levels = []
    for _ in range(2):
        own = raters.noise * rng.normal(size=relevance.shape)
        read = raters.shift * contested * rng.normal(size=(queries, 1))
        levels.append(np.digitize(relevance + own + read, CUTS).ravel())
    n = queries * DOCUMENTS
    return Ratings(
        np.tile(np.repeat(np.arange(queries), DOCUMENTS), 2),
        np.tile(np.arange(n), 2),
        np.repeat([0, 1], n),
        np.concatenate(levels).astype(np.int64),
        np.arange(4.0),
        queries,
    )


def intervals(sums: Sums, resamples: int, rng: np.random.Generator) -> dict[str, Span]:
    """The interval that karat gives, and those it could have given."""
    value, n, normal = sums.whole, len(sums.table), NormalDist()
    drawn = resample(n, resamples, rng)
    totals = drawn @ sums.table
    values = sums.value(totals)
    held = ~np.isnan(values)
    values, totals, drawn = values[held], totals[held], drawn[held]
    without = sums.without()
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    reach = t_quantile(0.975, n - 1)

    below = float(np.mean(values < value) + np.mean(values == value) / 2)
    bias = normal.inv_cdf(min(max(below, 1e-4), 1 - 1e-4))
    pull = without.mean() - without
    lean = float((pull**3).sum() / (6 * (pull**2).sum() ** 1.5)) if error > 0 else 0.0
    ends = [bias + normal.inv_cdf(p) for p in (0.025, 0.975)]
    adjusted = [normal.cdf(bias + z / (1 - lean * z)) for z in ends]
    expanded = normal.cdf(-reach * math.sqrt(n / (n - 1)))

    slopes = _slopes(sums.value, np.vstack([totals, sums.table.sum(axis=0)]))
    pulls = slopes @ sums.table.T
    weight = np.vstack([drawn, np.ones(n)])
    centred = pulls - (weight * pulls).sum(axis=1, keepdims=True) / n
    errors = np.sqrt((weight * centred**2).sum(axis=1) * n / (n - 1))
    with np.errstate(all="ignore"):
        t = (values - value) / errors[:-1]
    low, high = np.quantile(t[np.isfinite(t)], [0.025, 0.975])

    ours = agreement_interval(sums)
    return {
        "karat": (_number(ours.low), _number(ours.high)),
        "jackknife-t": (value - reach * error, value + reach * error),
        "percentile": _between(values, 0.025, 0.975),
        "expanded percentile": _between(values, expanded, 1 - expanded),
        "BCa": _between(values, *adjusted),
        "bootstrap-t": (value - float(high) * errors[-1], value - float(low) * errors[-1]),
    }


def _number(end: float | None) -> float:
    return math.nan if end is None else end


def _between(values: Floats, low: float, high: float) -> Span:
    found = np.quantile(values, [low, high])
    return float(found[0]), float(found[1])


def _slopes(value: Callable[[Floats], Floats], sums: Floats) -> Floats:
    """By central differences, at each row."""
    slopes = np.empty_like(sums)
    for column in range(sums.shape[1]):
        step = np.zeros_like(sums)
        step[:, column] = 1e-4 * np.maximum(1.0, np.abs(sums[:, column]))
        rise = value(sums + step) - value(sums - step)
        slopes[:, column] = rise / (2 * step[:, column])
    return np.nan_to_num(slopes)


def _held(spans: list[Span], truth: float) -> str:
    low, high = np.array(spans).T
    inside = 100 * np.mean((low <= truth) & (truth <= high))
    return f"{inside:5.1f} ({100 * np.mean(low > truth):.1f}; {np.nanmean(high - low):.3f})"


if __name__ == "__main__":
    main()
