"""Simulated users of a search whose order misleads: documents rank by a factor, not by relevance.

A user looks at rank r with probability 1 / r^0.8, by itself, and clicks what is looked at with the
probability of its relevance. The order follows a factor that has nothing to do with relevance, so
the click rate of a document is mostly that of its place.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

RANKS = 10
EXAMINATION = 1 / np.arange(1, RANKS + 1) ** 0.8


def write_pages(path: Path, *, pages: int, queries: int, swaps: float, seed: int = 0) -> np.ndarray:
    """A log in the research form; the true relevance of document ``d{j}`` of query ``q{i}``.

    Args:
        path: Of the log.
        pages: Result pages, evenly over queries.
        queries: Their number.
        swaps: Share of pages on which two documents change places.
        seed: Of everything.
    """
    rng = np.random.default_rng(seed)
    relevance = rng.beta(0.8, 1.6, (queries, RANKS))
    order = np.argsort(rng.random((queries, RANKS)), axis=1)  # by the factor
    query = np.arange(pages) % queries
    shown = order[query]
    rows = np.flatnonzero(rng.random(pages) < swaps)
    two = np.argsort(rng.random((len(rows), RANKS)), axis=1)[:, :2]
    shown[rows[:, None], two] = shown[rows[:, None], two[:, ::-1]]
    clicked = rng.random((pages, RANKS)) < EXAMINATION * relevance[query[:, None], shown]
    lines: dict[int, list[str]] = {i: [] for i in range(queries)}
    for page, number in enumerate(query.tolist()):
        docs = [f"d{doc}" for doc in shown[page].tolist()]
        clicks = [docs[rank] for rank in np.flatnonzero(clicked[page]).tolist()]
        lines[number].append(f"q{number}\t{','.join(docs)}:{','.join(clicks)}")
    path.write_text("".join(f"{';'.join(each)}\n" for each in lines.values()), encoding="utf-8")
    return relevance
