"""Logs of clicks with a known truth: users look at a rank with its examination, and click what
attracts them (the position-based model).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from karat.experiments.interleaving import interleave

START = 20_700 * 86_400_000_000 + 9 * 3_600_000_000  # 2026-09-04 09:00 UTC
EXAMINATION = np.array([1, 0.7, 0.5, 0.35, 0.25])
DOCS = 8  # of each query
DEPTH = len(EXAMINATION)


def traffic(
    searches: int = 2000,
    *,
    queries: int = 6,
    random: float = 1.0,
    interleaved: float = 0.0,
    sharpness: float = 1.0,
    seed: int = 1,
) -> pl.DataFrame:
    """Searches with lists of results and clicks, each of a user of its own.

    Args:
        searches: Number of searches.
        queries: Number of queries.
        random: Share of searches in random order, with ``order=random``; the order of the others
            is fixed, the same for all searches for a query.
        interleaved: Share of searches with two interleaved rankings, and ``teams``.
        sharpness: Exponent of examination on phones; computers have 1.
        seed: Random seed.
    """
    rng = np.random.default_rng(seed)
    attraction = rng.beta(2, 4, (queries, DOCS))
    asked, kind = rng.integers(queries, size=searches), rng.random(searches)
    rows = []
    for number in range(searches):
        query = int(asked[number])
        names = [f"d{query}{place}" for place in range(DOCS)]
        order, teams = names, None
        if kind[number] < interleaved:
            # Documents change places within 1-2 and 3-4, or 2-3 and 4-5 after one that both have.
            other = [*names[: query % 2], *names[:0:-1], names[0]]
            drafted = interleave(names, other, k=DEPTH, seed=number)
            order, teams = list(drafted.doc_ids), drafted.mark
        elif kind[number] < interleaved + random:
            order = [names[place] for place in rng.permutation(DOCS)]
        phone = number % 2 == 0
        looks = EXAMINATION ** (sharpness if phone else 1)
        search = {
            "user_id": f"u{number}",
            "time_us": START + number * 60_000_000,
            "kind": "search",
            "query_id": f"s{number}",
            "query": f"Query {query}" if number % 3 else f"query {query}",
            "hits": order[:DEPTH],
            "attribute_device": "phone" if phone else "desk",
            "attribute_order": "random" if kind[number] >= interleaved and order != names else None,
            "attribute_teams": teams,
        }
        rows.append(search)
        for rank, doc in enumerate(order[:DEPTH]):
            if rng.random() < looks[rank] * attraction[query, int(doc[-1])]:
                click = {"kind": "click", "doc_id": doc, "position": rank + 1}
                same = {"user_id": search["user_id"], "query_id": search["query_id"]}
                rows.append(
                    {**same, **click, "time_us": search["time_us"] + (rank + 1) * 5_000_000}
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def research_form(events: pl.DataFrame, path: Path) -> Path:
    """The same log as pages of results, one search a line."""
    clicks = events.filter(pl.col("kind") == "click").group_by("user_id").agg(own=pl.col("doc_id"))
    pages = events.filter(pl.col("kind") == "search").join(clicks, on="user_id", how="left")
    lines = pages.sort("time_us").select(
        pl.concat_str(
            pl.col("query").str.to_lowercase(),
            pl.lit("\t"),
            pl.col("hits").list.join(","),
            pl.lit(" : "),
            pl.col("own").list.join(" , ").fill_null(""),
        )
    )
    path.write_text("\n".join(lines.to_series()) + "\n", encoding="utf-8")
    return path
