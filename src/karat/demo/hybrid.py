"""The third search system: the results of the other two, fused by reciprocal rank.

A document that both systems rank well comes before one that only one of them returns. Only ranks
count, so scores need not be comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from karat.fusion import reciprocal_rank
from karat.tables import Run

DEPTH = 100

Ranking = Mapping[str, Sequence[tuple[str, float]]]


def rank(rankings: Iterable[Ranking], depth: int = DEPTH) -> dict[str, list[tuple[str, float]]]:
    """Fuse rankings of the demo's systems, best first, out of the best ``depth`` of each.

    The numbers are those of `karat.fusion.reciprocal_rank` (k = 60).
    """
    runs = [
        Run.from_dict({query_id: dict(scores) for query_id, scores in ranking.items()})
        for ranking in rankings
    ]
    fused = reciprocal_rank(runs, depth=depth).to_dict()
    return {query_id: list(scores.items()) for query_id, scores in fused.items()}
