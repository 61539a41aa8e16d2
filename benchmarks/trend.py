"""How often karat trend raises a false alarm in a year of nights, and what it finds.

    python benchmarks/trend.py FOLDER [--repetitions N] [--queries N …] [--size X]

FOLDER is a BEIR folder (Cranfield, say): documents, queries, judgments. BM25 answers its queries,
and nDCG@10 of each is where every history starts. 365 nights follow, of which nothing got worse:

- fresh: each night the values of some queries are moved, for this night only (an index that answers
  by chance);
- churn: each night one query in thirty gets another deviation, which it keeps (documents come and
  go);
- releases: each second week one query in ten changes for good, as likely up as down (a random
  walk).

Counted is how many histories are ever said to be worse: query by query (``karat.stats.looks``), by
the intervals of two points (what is left for histories without values by query), and by drift. Then
a loss: the differences of BM25 and of BM25 without its first hits, query by query, moved and scaled
to the mean and the standard deviation asked for (by default those of which karat compare says p
.025 with 76 queries), all at once or in nine nights, a ninth of the queries in each; and 30 nights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import karat
from karat.demo import bm25
from karat.formats import read_documents, read_qrels, read_queries
from karat.stats import drift, looks
from karat.stats.intervals import t_interval

Floats = NDArray[np.float64]
NIGHTS = 365
CHANGED, SIZE = 0.1, 0.05
"""Share of the queries that chance moves, and the standard deviation of a move."""
ONSET, SPREAD = 60, 0.089
"""The night of a loss, and the standard deviation of its differences."""


def values_of(folder: Path) -> tuple[Floats, Floats]:
    """nDCG@10 of BM25, and the same without each query's first hit; shape (queries,) each."""
    texts = dict(
        read_queries(folder / "queries.jsonl").frame.select("query_id", "text").iter_rows()
    )
    documents = read_documents(folder / "corpus.jsonl").frame.select("doc_id", "title", "text")
    whole = {query: dict(found) for query, found in bm25.rank(documents, texts).items()}
    less = {
        query: {doc: score for doc, score in found.items() if score < max(found.values())}
        for query, found in whole.items()
    }
    qrels = read_qrels(folder)
    both = []
    for run in (whole, less):
        found = karat.evaluate(qrels, karat.Run.from_dict(run), "nDCG@10", bounds=False)
        both.append(next(iter(found.scores.values())).values["nDCG@10"])
    return both[0], both[1]


def moved(rng: np.random.Generator, n: int) -> Floats:
    """By how much chance moves each query: most not at all, the others up or down alike."""
    drawn: Floats = rng.laplace(0, SIZE / np.sqrt(2), n) * (rng.random(n) < CHANGED)
    return drawn


def fresh(rng: np.random.Generator, base: Floats) -> Iterator[Floats]:
    """Chance of its own each night."""
    for _ in range(NIGHTS):
        yield base + moved(rng, len(base))


def churn(rng: np.random.Generator, base: Floats) -> Iterator[Floats]:
    """Deviations that last a month on average."""
    away = moved(rng, len(base))
    for _ in range(NIGHTS):
        redrawn = rng.random(len(base)) < 1 / 30
        away = np.where(redrawn, moved(rng, len(base)), away)
        yield base + away


def releases(rng: np.random.Generator, base: Floats) -> Iterator[Floats]:
    """Changes for good, each second week."""
    away = np.zeros(len(base))
    for night in range(NIGHTS):
        if night % 14 == 13:
            away = away + moved(rng, len(base))
        yield base + away


def still(_rng: np.random.Generator, base: Floats) -> Iterator[Floats]:
    """Nothing changes at all."""
    for _ in range(NIGHTS):
        yield base


WORLDS: dict[str, Callable[[np.random.Generator, Floats], Iterator[Floats]]] = {
    "fresh": fresh,
    "churn": churn,
    "releases": releases,
}


def alarms(nights: Sequence[Floats], start: int = 0) -> tuple[bool, bool, bool]:
    """Whether the nights from ``start`` on are ever said to be worse: by query, interval, drift."""
    states = [nights[0]]
    late = 0  # the first state of the nights asked for
    for night, values in enumerate(nights):
        if night == start:
            late = len(states) - 1
        if not np.array_equal(values, states[-1]):
            states.append(values)
    paired = any(found.look > late for found in looks.findings(states))
    means = [float(night.mean()) for night in nights]
    spans = [t_interval(night) for night in nights]
    errors = [drift.standard_error(span.low, span.high) for span in spans]
    unpaired = any(
        means[at] < means[other]
        and drift.told_apart(means[other], means[at], (errors[other], errors[at]))
        for at in range(max(start, 1), len(nights))
        for other in (0, at - 1)
    )
    steps = [b - a for a, b in pairwise(means)]
    needed = drift.needed(1, 1, drift.BESIDE_LOOKS)
    drifts = any(drift.evidence(steps[:at])[0] >= needed for at in range(14, len(steps) + 1, 14))
    return paired, unpaired, drifts


def shares(found: Sequence[tuple[bool, bool, bool]]) -> str:
    """Percentages, as a row of a table."""
    return " | ".join(f"{100 * np.mean(column):5.1f}" for column in zip(*found, strict=True))


def simulate(whole: Floats, less: Floats, n: int, repetitions: int, size: float) -> None:
    """Print the table of one number of queries."""
    print(f"\n{n} queries, {repetitions} histories of {NIGHTS} nights; ever said to be worse, %\n")
    print("| nights | by query | by intervals | drift |\n| --- | ---: | ---: | ---: |")
    change = less - whole
    change = (change - change.mean()) / change.std() * SPREAD - size
    for name, world in WORLDS.items():
        rng, found = np.random.default_rng(1), []
        for _ in range(repetitions):
            drawn = rng.choice(len(whole), n, replace=n > len(whole))
            found.append(alarms(list(world(rng, whole[drawn]))))
        print(f"| {name}, nothing got worse | {shares(found)} |", flush=True)
    for name, world in {"still": still, **WORLDS}.items():
        for spread, how in ((1, "at once"), (9, "in nine nights")):
            rng, found = np.random.default_rng(2), []
            for _ in range(max(repetitions // 4, 1)):
                drawn = rng.choice(len(whole), n, replace=n > len(whole))
                nights = list(world(rng, whole[drawn]))[: ONSET + 30]
                queries = rng.permutation(n)
                for night in range(ONSET, len(nights)):
                    gone = queries[: round(n * min(night - ONSET + 1, spread) / spread)]
                    nights[night] = nights[night].copy()
                    nights[night][gone] += change[drawn][gone]
                found.append(alarms(nights, ONSET))
            print(f"| {name}, −{size:g} {how} | {shares(found)} |", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Read the folder and print a table for each number of queries."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--queries", type=int, nargs="+", default=[76, 225])
    parser.add_argument("--size", type=float, default=0.023)
    asked = parser.parse_args(arguments)
    whole, less = values_of(asked.folder)
    for n in asked.queries:
        simulate(whole, less, n, asked.repetitions, asked.size)


if __name__ == "__main__":
    main(sys.argv[1:])
