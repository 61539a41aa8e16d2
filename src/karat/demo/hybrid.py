"""The third search system: what the other two found, fused by reciprocal rank.

A document that both systems rank well comes before one that only one of them knows. How a
BM25 score compares with a cosine need not be known, for only ranks count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from karat.fusion import reciprocal_rank
from karat.tables import Run

DEPTH = 100

Ranking = Mapping[str, Sequence[tuple[str, float]]]


def rank(rankings: Iterable[Ranking], depth: int = DEPTH) -> dict[str, list[tuple[str, float]]]:
    """Fuse rankings as the systems of the demo return them: query_id → (doc_id, score), best first.

    Returns:
        query_id → at most `depth` (doc_id, score), best first, out of the best `depth` of each
        ranking: the numbers of `karat.fusion.reciprocal_rank` (k = 60). A query for which no
        ranking has a document has an empty list.
    """
    runs = [
        Run.from_dict({query_id: dict(found) for query_id, found in ranking.items()})
        for ranking in rankings
    ]
    fused = reciprocal_rank(runs, depth=depth).to_dict()
    return {query_id: list(found.items()) for query_id, found in fused.items()}
