"""Makes the data of the benchmarks: an MS MARCO-sized run and its judgments.

6,980 queries x 1,000 documents, about 250 MB of TREC text, one relevant document a query, found
for 85 % of them. Seeded, so that two machines measure the same bytes.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np

QUERIES, DEPTH, CORPUS = 6_980, 1_000, 8_841_823


def generate(folder: Path) -> tuple[Path, Path]:
    """Write ``big.qrels`` and ``big.run`` into a folder, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    qrels, run = folder / "big.qrels", folder / "big.run"
    if qrels.exists() and run.exists():
        return qrels, run
    rng = np.random.default_rng(7)
    with run.with_suffix(".part").open("w") as run_file, qrels.open("w") as qrels_file:
        for query in rng.choice(1_200_000, QUERIES, replace=False):
            docs = rng.choice(CORPUS, DEPTH, replace=False)
            scores = np.sort(rng.gamma(5, 2, DEPTH))[::-1] + 5
            run_file.writelines(
                f"{query} Q0 {doc} {rank} {score:.6f} bm25\n"
                for rank, (doc, score) in enumerate(
                    zip(docs.tolist(), scores.tolist(), strict=True), 1
                )
            )
            found = rng.random() < 0.85
            place = min(int(rng.geometric(0.05)), DEPTH - 1)
            relevant = docs[place] if found else rng.integers(CORPUS)
            qrels_file.write(f"{query} 0 {relevant} 1\n")
    run.with_suffix(".part").rename(run)
    return qrels, run


def tied(folder: Path) -> Path:
    """Write ``tied.run``, the same run with scores to one decimal, so that nearly all tie."""
    _, run = generate(folder)
    rounded = folder / "tied.run"
    if not rounded.exists():
        with run.open() as lines, rounded.with_suffix(".part").open("w") as out:
            for line in lines:
                query, q0, doc, rank, score, tag = line.split(" ")
                out.write(f"{query} {q0} {doc} {rank} {float(score):.1f} {tag}")
        rounded.with_suffix(".part").rename(rounded)
    return rounded


def small(folder: Path) -> tuple[Path, Path]:
    """Write ``small.qrels`` and ``small.run``: the first 50 queries."""
    files = generate(folder)
    for file, lines in zip(files, (50, 50 * DEPTH), strict=True):
        with file.open() as whole:
            folder.joinpath(f"small{file.suffix}").write_text("".join(islice(whole, lines)))
    return folder / "small.qrels", folder / "small.run"


if __name__ == "__main__":
    print(*generate(Path(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/data")))
