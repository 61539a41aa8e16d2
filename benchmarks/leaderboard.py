"""How often a leaderboard of eight systems that are equally good finds a difference.

    python benchmarks/leaderboard.py [--sets N] [--resamples N] FOLDER

FOLDER holds ``qrels.*`` and ``input.*`` of TREC's Robust track of 2003. Eight systems are made of
its runs: five runs and three variants of one of them (each document's rank moved by chance), or two
runs and six variants of a third. Their AP, less each system's mean, is that of all queries:
systems of equal means, and of as unequal spread as they have. Or the systems' values are exchanged
within each query drawn, so that the systems are exchangeable. Queries are drawn with replacement,
and counted is in how many sets any of the 28 pairs has a corrected p of at most 5 %:

* all pairs: karat's test (studentised bootstrap, smallest p-values)
* exchanged: the largest range of means when systems are exchanged within queries (Carterette 2012)
* signs: the largest t when the queries' differences change their signs together
* Holm: paired t tests, corrected by Holm
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import karat
from karat.measures import parse, reduce
from karat.stats._tukey import tukey
from karat.stats.averages import Floats
from karat.stats.multiplicity import holm
from karat.stats.paired import t_test
from karat.tables import Run

SIZES = (25, 50, 100)
LEFT, RIGHT = np.triu_indices(8, 1)


def main() -> None:
    """Print the share of sets with a finding, a line for each population and number of queries."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", type=int, default=2_000)
    parser.add_argument("--resamples", type=int, default=999)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    error = 100 * np.sqrt(0.05 * 0.95 / options.sets)
    print(f"{options.sets} sets each; a share of 5 % has a standard error of {error:.1f}\n")
    print(f"{'':44}{'n':>5}" + "".join(f"{name:>11}" for name in TESTS))
    for name, values in systems(options.folder).items():
        for population in ("equal means, unequal spread", "exchangeable"):
            for n in SIZES:
                rng = np.random.default_rng(options.seed)
                found = np.zeros(len(TESTS))
                for _ in range(options.sets):
                    drawn = draw(values, population, n, rng)
                    found += [test(drawn, options.resamples, rng) for test in TESTS.values()]
                shares = "".join(f"{100 * share:11.1f}" for share in found / options.sets)
                print(f"{f'{name}, {population}':44}{n:5}{shares}", flush=True)


def systems(folder: Path) -> dict[str, Floats]:
    """AP of eight systems for each query; shape (n, 8) each."""
    (judged,) = folder.glob("qrels.*")
    qrels = karat.read_qrels(judged)

    def ap(run: Run) -> Floats:
        return parse("AP")(reduce(run, qrels))

    def read(name: str) -> Run:
        (path,) = folder.glob(f"input.{name}*")
        return karat.read_run(path)

    names = ("uic0301", "aplrob03a", "NLPR03vb10", "SABIR03BASE", "rutcor03100")
    runs = {name: read(name) for name in names}
    sabir = [ap(variant(runs["SABIR03BASE"], seed)) for seed in range(3)]
    apl = [ap(variant(runs["aplrob03a"], seed)) for seed in range(6)]
    five = {name: ap(run) for name, run in runs.items()}
    return {
        "5 and 3": np.stack([*five.values(), *sabir], axis=1),
        "2 and 6": np.stack([five["uic0301"], five["rutcor03100"], *apl], axis=1),
    }


def variant(run: Run, seed: int) -> Run:
    """The run with each document's rank times a number near 1, drawn for it."""
    rows = run.frame().with_columns(
        pl.col("score").rank("ordinal", descending=True).over("query_id").log().alias("rank")
    )
    noise = pl.Series(np.random.default_rng(seed).normal(0, 0.3, len(rows)))
    moved = rows.with_columns((noise - pl.col("rank")).alias("score"))
    return Run.from_frame(moved.select("query_id", "doc_id", "score"))


def draw(values: Floats, population: str, n: int, rng: np.random.Generator) -> Floats:
    """A sample of queries from a world in which no system is better."""
    picked = rng.integers(0, len(values), n)
    if population == "exchangeable":
        return rng.permuted(values[picked], axis=1)
    return (values - values.mean(axis=0))[picked]


def all_pairs(values: Floats, resamples: int, rng: np.random.Generator) -> bool:
    """Karat's test."""
    return bool(tukey(values, rng, resamples=resamples).p_values.min() <= 0.05)


def exchanged(values: Floats, resamples: int, rng: np.random.Generator) -> bool:
    """Differences that are not standardised."""
    sums = np.zeros((resamples, values.shape[1]))
    for row in values:
        sums += rng.permuted(np.broadcast_to(row, sums.shape), axis=1)
    beyond = (np.ptp(sums, axis=1) >= np.ptp(values.sum(axis=0)) - 1e-9).sum()
    return bool((beyond + 1) / (resamples + 1) <= 0.05)


def signs(values: Floats, resamples: int, rng: np.random.Generator) -> bool:
    """The sum of squares does not change with the signs: it stands for the spread."""
    differences = values[:, LEFT] - values[:, RIGHT]
    standard = differences / np.sqrt((differences**2).sum(axis=0))
    sums = rng.choice([-1.0, 1.0], (resamples, len(values))) @ standard
    seen = np.abs(standard.sum(axis=0)).max()
    beyond = (np.abs(sums).max(axis=1) >= seen - 1e-9).sum()
    return bool((beyond + 1) / (resamples + 1) <= 0.05)


def holm_t(values: Floats, _resamples: int, _rng: np.random.Generator) -> bool:
    """Nothing is drawn."""
    tests = [t_test(column) for column in (values[:, LEFT] - values[:, RIGHT]).T]
    return any(p is not None and p <= 0.05 for p in holm([test.p for test in tests]))


TESTS: dict[str, Callable[[Floats, int, np.random.Generator], bool]] = {
    "all pairs": all_pairs,
    "exchanged": exchanged,
    "signs": signs,
    "Holm": holm_t,
}


if __name__ == "__main__":
    main()
