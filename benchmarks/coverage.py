"""How often intervals of a mean difference hold the truth, and tests find what is not there.

    python benchmarks/coverage.py [--runs A B] [--repetitions N] FOLDER

FOLDER holds ``qrels.*`` and ``input.*`` of one TREC track. The differences of two of its runs,
query by query, stand for all queries there are: samples of them are drawn with replacement, an
interval is made of each, and counted is how often it holds the mean of them all. Two made-up
populations lean to one side more than these do. For the tests each drawn difference gets a sign
by the toss of a coin, so that no run is better; counted is how often p is at most 5 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import karat
from karat.measures import parse_all, reduce
from karat.stats.averages import Floats
from karat.stats.intervals import Interval, bca_intervals, resample, t_interval
from karat.stats.paired import bootstrap, randomisation, t_test

MEASURES = ("nDCG@10", "P@10", "AP", "RR")
SIZES = (20, 50, 200)
RESAMPLES = 2_000
TOGETHER = 100
"""Samples that share their resamples: few enough that luck with these evens out."""


class Population(NamedTuple):
    """Where differences come from, and the mean they have there."""

    name: str
    draw: Callable[[np.random.Generator, int, int], Floats]
    mean: float
    shape: str


def main() -> None:
    """Print coverage and levels, a line for each population and number of queries."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", nargs=2, default=["uic0301", "aplrob03a"], metavar="RUN")
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    populations = [*_real(options.folder, *options.runs), *_made_up()]
    rng = np.random.default_rng(options.seed)
    error = 100 * np.sqrt(0.95 * 0.05 / options.repetitions)
    print(
        f"{options.repetitions} samples each; a share of 95 % has a standard error of {error:.2f}"
    )
    for population in populations:
        print(f"\n{population.name}: mean {population.mean:.4f}, {population.shape}")
        print(f"{'n':>5}{'t holds':>9}{'(low, high, none)':>20}{'BCa holds':>11}", end="")
        print(f"{'(low, high, none)':>20}{'level: randomisation':>22}{'bootstrap':>11}{'t':>6}")
        for n in SIZES:
            print(f"{n:5}" + _line(population, n, options.repetitions, rng), flush=True)


def _real(folder: Path, one: str, other: str) -> list[Population]:
    (judged,) = folder.glob("qrels.*")
    qrels = karat.read_qrels(judged)
    values = []
    for name in (one, other):
        (path,) = folder.glob(f"input.{name}*")
        evidence = reduce(karat.read_run(path), qrels)
        values.append({str(m): m(evidence) for m in parse_all(MEASURES)})
    differences = {m: values[1][m] - values[0][m] for m in MEASURES}

    def drawer(difference: Floats) -> Callable[[np.random.Generator, int, int], Floats]:
        return lambda rng, n, count: rng.choice(difference, (n, count))

    return [
        Population(f"{other} - {one}, {m}", drawer(of), float(of.mean()), _shape(of))
        for m, of in ((m, of[~np.isnan(of)]) for m, of in differences.items())
    ]


def _made_up() -> list[Population]:
    def heavy(rng: np.random.Generator, n: int, count: int) -> Floats:
        return rng.lognormal(0, 1, (n, count))

    def few(rng: np.random.Generator, n: int, count: int) -> Floats:
        return np.where(rng.random((n, count)) < 0.1, rng.random((n, count)), 0.0)

    many = np.random.default_rng(0)
    return [
        Population("lognormal", heavy, float(np.exp(0.5)), _shape(heavy(many, 10**6, 1)[:, 0])),
        Population(
            "one query in ten differs, by 0 to 1", few, 0.05, _shape(few(many, 10**6, 1)[:, 0])
        ),
    ]


def _shape(values: Floats) -> str:
    centred = values - values.mean()
    skew = float((centred**3).mean() / (centred**2).mean() ** 1.5)
    ties = float((values == 0).mean())
    return f"standard deviation {values.std():.3f}, skewness {skew:.1f}, {ties:.0%} ties"


def _line(population: Population, n: int, repetitions: int, rng: np.random.Generator) -> str:
    spans: dict[str, list[Interval]] = {"t": [], "bca": []}
    p_values: dict[str, list[float]] = {"randomisation": [], "bootstrap": [], "t": []}
    for start in range(0, repetitions, TOGETHER):
        count = min(TOGETHER, repetitions - start)
        values = population.draw(rng, n, count)
        spans["t"] += [t_interval(column) for column in values.T]
        spans["bca"] += bca_intervals(values, resample(n, RESAMPLES, rng))
        null = population.draw(rng, n, count) * rng.choice([-1.0, 1.0], (n, count))
        # With 1,999 and the one seen, 5 % are a whole number of arrangements.
        drawn = {"resamples": 1_999, "seed": rng}
        p_values["randomisation"] += randomisation(null, **drawn).tolist()
        p_values["bootstrap"] += bootstrap(null, **drawn).tolist()
        p_values["t"] += [np.nan if (p := t_test(c).p) is None else p for c in null.T]
        if sys.stderr.isatty():
            print(f"  {n} queries: {start + count}", end="\r", file=sys.stderr)
    cells = [_held(spans["t"], population.mean), _held(spans["bca"], population.mean)]
    levels = [100 * float((np.array(found) <= 0.05).mean()) for found in p_values.values()]
    return "".join(cells) + f"{levels[0]:22.1f}{levels[1]:11.1f}{levels[2]:6.1f}"


def _held(spans: list[Interval], truth: float) -> str:
    """Share of intervals that hold the truth; that lie below it, above it, or do not exist."""
    ends = np.array([(np.nan, np.nan) if s.low is None else (s.low, s.high) for s in spans])
    low, high = ends.T
    below, above, none = high < truth, low > truth, np.isnan(low)
    shares = [100 * float(which.mean()) for which in (below, above, none)]
    inside = f"({shares[0]:.1f}, {shares[1]:.1f}, {shares[2]:.1f})"
    return f"{100 - sum(shares):9.1f}{inside:>20}"


if __name__ == "__main__":
    main()
