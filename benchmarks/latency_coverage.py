"""How often the interval of an increase of the 95th percentile holds the truth.

    python benchmarks/latency_coverage.py [--repetitions N]

Pairs of times are drawn from six made-up populations: log-normal ones whose queries are slow in
both runs or in neither, a heavy tail, caches that miss, and times in whole milliseconds. The true
increase is that of 400,000 pairs. Counted is how often the interval of n pairs holds it, and how
often it lies wholly above it (a gate would call a search slower than it is).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from karat.stats.averages import Floats
from karat.stats.quantiles import quantile_change

SIZES = (100, 225, 1000)
TRUTH = 400_000
Pairs = tuple[Floats, Floats]
Draw = Callable[[np.random.Generator, int], Pairs]


def main() -> None:
    """Print a line for each population and number of queries."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print("| population | true increase | n | holds the truth | wholly above it |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, draw in POPULATIONS.items():
        truth = p95(draw(rng, TRUTH))
        for n in SIZES:
            held, above = covered(draw, truth, n, options.repetitions, rng)
            print(
                f"| {name} | {100 * truth:+.0f} % | {n:,} | {held:.1%} | {above:.1%} |", flush=True
            )


def p95(pairs: Pairs) -> float:
    """The increase of the 95th percentile of many pairs."""
    before, after = (np.quantile(times, 0.95, method="inverted_cdf") for times in pairs)
    return float(after / before - 1)


def covered(
    draw: Draw, truth: float, n: int, repetitions: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Shares of samples of n pairs whose interval holds the truth, and lies above it."""
    held = above = 0
    for seed in range(repetitions):
        found = quantile_change(*draw(rng, n), seed).increase
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
        above += found.low > truth
    return held / repetitions, above / repetitions


def lognormal(spread: float, shared: float) -> Draw:
    """Times whose logarithms share a part of their variance; the second run is 1.3 times slower."""

    def draw(rng: np.random.Generator, n: int) -> Pairs:
        query, one, other = rng.normal(size=(3, n))
        own = np.sqrt(1 - shared)
        before = np.exp(spread * (np.sqrt(shared) * query + own * one))
        return before, 1.3 * np.exp(spread * (np.sqrt(shared) * query + own * other))

    return draw


def cached(misses: float, *, same: bool) -> Draw:
    """Times that are 8 times longer where a cache misses, for the same queries in both or not."""

    def draw(rng: np.random.Generator, n: int) -> Pairs:
        one, other = rng.random((2, n)) < misses
        noise = np.exp(0.3 * rng.normal(size=(2, n)))
        return noise[0] * np.where(one, 8, 1), 1.3 * noise[1] * np.where(
            one if same else other, 8, 1
        )

    return draw


def whole(rng: np.random.Generator, n: int) -> Pairs:
    """Times of a few milliseconds, rounded to whole ones; neither run is slower."""
    query, one, other = rng.normal(size=(3, n))
    before, after = (np.maximum(np.round(10 * np.exp(0.35 * (query + z))), 1) for z in (one, other))
    return before, after


POPULATIONS: dict[str, Draw] = {
    "log-normal, four fifths of the variance shared": lognormal(0.7, 0.8),
    "log-normal, nothing shared": lognormal(0.7, 0.0),
    "heavy tail, half shared": lognormal(1.5, 0.5),
    "a cache misses 10 %, the same queries": cached(0.10, same=True),
    "a cache misses 6 %, other queries": cached(0.06, same=False),
    "whole milliseconds": whole,
}

if __name__ == "__main__":
    main()
