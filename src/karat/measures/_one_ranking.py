"""Measures of a single ranking as plain functions of lists; equal to ``karat.evaluate``.

A query without relevant documents has no recall, average precision or nDCG (0 divided by 0): the
value is None, not 0, so a mean over queries cannot hide it. ``karat.evaluate`` leaves such a query
out of every mean, including precision and reciprocal rank.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from numbers import Integral
from typing import Any

import numpy as np

from karat.errors import UsageError
from karat.measures.evidence import Floats
from karat.measures.parameters import gain_of


def recall_at_k(
    retrieved: Iterable[Hashable], relevant: Iterable[Hashable], k: int
) -> float | None:
    """Recall: the relevant documents among the first k, divided by all relevant documents.

    Args:
        retrieved: Ids, best first. An id that is listed more than once counts at its first place,
            and those after it move up.
        relevant: Ids of the relevant documents, in any order.
        k: Cutoff, a whole number from 1.

    Returns:
        A number from 0 to 1; None if there are no relevant documents.

    Raises:
        UsageError: a k that is not a whole number from 1, or retrieved ids without an order.

    >>> recall_at_k(["a", "x", "b"], {"a", "b", "c"}, k=2)  # a of a, b, c: 1/3
    0.3333333333333333
    >>> recall_at_k(["a", "x"], set(), k=2) is None
    True
    """
    ranks, total = _ranks(retrieved, relevant)
    _check_cutoff(k)
    return sum(rank <= k for rank in ranks) / total if total else None


def precision_at_k(retrieved: Iterable[Hashable], relevant: Iterable[Hashable], k: int) -> float:
    """Precision: the relevant documents among the first k, divided by k.

    The divisor is k even if fewer documents were retrieved.

    Args:
        retrieved: As in ``recall_at_k``.
        relevant: As in ``recall_at_k``.
        k: Cutoff, a whole number from 1.

    Returns:
        A number from 0 to 1; 0 if there are no relevant documents.

    Raises:
        UsageError: as in ``recall_at_k``.

    >>> precision_at_k(["a", "x", "b"], {"a", "b", "c"}, k=2)  # a of a, x: 1/2
    0.5
    >>> precision_at_k(["a"], {"a"}, k=5)  # one of five places: 1/5
    0.2
    """
    ranks, _ = _ranks(retrieved, relevant)
    _check_cutoff(k)
    return sum(rank <= k for rank in ranks) / k


def reciprocal_rank(retrieved: Iterable[Hashable], relevant: Iterable[Hashable]) -> float:
    """Reciprocal rank: 1 divided by the rank of the first relevant document; its mean is MRR.

    Args:
        retrieved: As in ``recall_at_k``.
        relevant: As in ``recall_at_k``.

    Returns:
        A number from 0 to 1; 0 if no relevant document was retrieved. For a cutoff, cut the
        ranking: ``reciprocal_rank(retrieved[:10], relevant)`` is RR@10.

    Raises:
        UsageError: as in ``recall_at_k``.

    >>> reciprocal_rank(["x", "a", "b"], {"a", "b"})  # a is second: 1/2
    0.5
    """
    ranks, _ = _ranks(retrieved, relevant)
    return 1 / ranks[0] if ranks else 0.0


def average_precision(retrieved: Iterable[Hashable], relevant: Iterable[Hashable]) -> float | None:
    """Average precision: precision at the rank of each relevant document, divided by all relevant.

    A relevant document that was not retrieved adds 0. The mean over queries is MAP.

    Args:
        retrieved: As in ``recall_at_k``.
        relevant: As in ``recall_at_k``.

    Returns:
        A number from 0 to 1; None if there are no relevant documents.

    Raises:
        UsageError: as in ``recall_at_k``.

    >>> average_precision(["a", "x", "b"], {"a", "b"})  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    ranks, total = _ranks(retrieved, relevant)
    precisions = math.fsum(count / rank for count, rank in enumerate(ranks, 1))
    return precisions / total if total else None


def dcg_at_k(grades: Iterable[float], k: int, gain: str = "linear") -> float:
    """Discounted cumulative gain: the gain at each rank divided by log2(rank + 1), summed to k.

    Args:
        grades: The grade of each document of the ranking, from rank 1; 0 for documents without a
            judgment. A grade below 0 gains nothing.
        k: Cutoff, a whole number from 1.
        gain: ``linear`` (the grade) | ``exp`` (2^grade - 1).

    Returns:
        A number from 0.

    Raises:
        UsageError: a k that is not a whole number from 1, an unknown gain, or a grade that is not
            a finite number.

    >>> dcg_at_k([3, 0, 2], k=3)  # 3/log2(2) + 0/log2(3) + 2/log2(4) = 3 + 0 + 1
    4.0
    >>> dcg_at_k([3, 0, 2], k=3, gain="exp")  # 7/log2(2) + 0/log2(3) + 3/log2(4) = 7 + 0 + 1.5
    8.5
    """
    _check_cutoff(k)
    return _discounted(_gains(grades, "grades", gain), k)


def ndcg_at_k(
    grades: Iterable[float], ideal: Iterable[float], k: int, gain: str = "linear"
) -> float | None:
    """nDCG: the DCG of the ranking, divided by that of the best ranking the judgments allow.

    Args:
        grades: As in ``dcg_at_k``.
        ideal: The grades of all documents judged for the query, retrieved or not, in any order;
            they are sorted here.
        k: Cutoff of both, a whole number from 1.
        gain: ``linear`` (the grade) | ``exp`` (2^grade - 1).

    Returns:
        A number from 0 to 1; None if no judged document has a grade above 0.

    Raises:
        UsageError: as in ``dcg_at_k``; or ``ideal`` lacks a grade of the ranking.

    >>> ndcg_at_k([0, 3], ideal=[3, 2, 0], k=2)  # (3/log2(3)) / (3/1 + 2/log2(3)) = 1.8928 / 4.2619
    0.444...
    """
    _check_cutoff(k)
    ranked, judged = _gains(grades, "grades", gain), _gains(ideal, "ideal", gain)
    lacking = Counter(ranked[ranked > 0].tolist()) - Counter(judged.tolist())
    if lacking:
        raise UsageError(
            "ideal has fewer documents with a grade above 0 than the ranking",
            fix="give the grades of all documents judged for the query, retrieved or not",
        )
    best = _discounted(np.sort(judged)[::-1], k)
    return _discounted(ranked, k) / best if best > 0 else None


def _ranks(retrieved: Any, relevant: Any) -> tuple[list[int], int]:
    """Ranks of the relevant documents retrieved, from 1, and the number of relevant documents."""
    if isinstance(retrieved, AbstractSet | Mapping):
        raise UsageError(
            f"retrieved is a {type(retrieved).__name__}, which is not a ranking",
            fix='give a list of ids, best first: ["a", "b"]',
        )
    if isinstance(relevant, Mapping):
        raise UsageError(
            f"relevant is a {type(relevant).__name__}; expected the ids of relevant documents",
            fix="{doc for doc, grade in relevant.items() if grade >= 1}",
        )
    ranked, good = _ids(retrieved, "retrieved"), _ids(relevant, "relevant")
    texts = [{isinstance(doc, str) for doc in ids} for ids in (ranked, good)]
    if ranked and good and texts[0].isdisjoint(texts[1]):
        kinds = [type(next(iter(ids))).__name__ for ids in (ranked, good)]
        raise UsageError(
            f"retrieved has {kinds[0]} ids and relevant has {kinds[1]} ids, so none can match",
            fix="use the same type of id in both; for (id, score) pairs, give the ids",
        )
    return [rank for rank, doc in enumerate(ranked, 1) if doc in good], len(good)


def _ids(value: Any, name: str) -> dict[Hashable, None]:
    """Distinct ids, in order."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise UsageError(f"{name} is {value!r}, not a list of ids", fix=f'{name}=["a", "b"]')
    try:
        return dict.fromkeys(value)
    except TypeError as error:
        raise UsageError(f"{name} contains something other than ids: {error}") from None


def _check_cutoff(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise UsageError(f"k is {k!r}, not a whole number from 1", fix="k=10, for example")


def _gains(grades: Any, name: str, gain: str) -> Floats:
    if gain not in ("linear", "exp"):
        raise UsageError(f"unknown gain {gain!r}", nearest=("linear", "exp"))
    try:
        values = np.array(list(grades), dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([math.nan])
    if values.ndim != 1 or not np.isfinite(values).all():
        raise UsageError(f"{name} must be a list of finite numbers", fix=f"{name}=[3, 0, 2]")
    return gain_of(values, gain)


def _discounted(gains: Floats, k: int) -> float:
    return math.fsum(
        gain / math.log2(rank + 1) for rank, gain in enumerate(gains[: int(k)].tolist(), 1)
    )
