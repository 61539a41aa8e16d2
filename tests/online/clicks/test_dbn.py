"""The dynamic Bayesian network against sums over all that users may have done."""

from __future__ import annotations

import numpy as np
import pytest
from tests.click_logs import pages_of

from karat.online.clicks import em
from karat.online.clicks._information import uncertainty
from karat.online.clicks.counts import Floats, Pages
from karat.online.clicks.dbn import Likelihood


@pytest.fixture
def pages() -> Pages:
    """Two queries, pages of two to four documents, clicks at random."""
    random = np.random.default_rng(5)
    rows = []
    for _ in range(60):
        query, length = random.choice(["a", "b"]), random.integers(2, 5)
        docs = random.permutation(list("vwxyz"))[:length]
        clicks = {rank for rank in range(length) if random.random() < 0.35}
        rows.append((str(query), [str(doc) for doc in docs], clicks))
    return pages_of(rows)


def _probability(docs: list[int], clicked: list[bool], values: Floats) -> float:
    """Of the clicks of a page, by following every user."""
    pairs = len(values) // 2

    def follow(rank: int, *, reads: bool) -> float:
        if rank == len(docs):
            return 1.0
        stopped = follow(rank + 1, reads=False)
        if not reads:
            return 0.0 if clicked[rank] else stopped
        attraction, satisfaction = values[docs[rank]], values[pairs + docs[rank]]
        more = values[-1] * follow(rank + 1, reads=True) + (1 - values[-1]) * stopped
        if not clicked[rank]:
            return float((1 - attraction) * more)
        return float(attraction * (satisfaction * stopped + (1 - satisfaction) * more))

    return follow(0, reads=True)


def _log_likelihoods(pages: Pages, values: Floats) -> Floats:
    return np.array(
        [
            np.log(_probability(docs[docs >= 0].tolist(), clicked.tolist(), values))
            for docs, clicked in zip(pages.docs, pages.clicked, strict=True)
        ]
    )


def test_the_likelihood_is_the_sum_over_all_users(pages: Pages) -> None:
    values = np.random.default_rng(1).uniform(0.1, 0.9, 2 * len(pages.pairs) + 1)
    likelihood = Likelihood.of(pages).reading(values).log_likelihood()
    assert likelihood == pytest.approx(_log_likelihoods(pages, values), rel=1e-12)


def test_the_optimum_is_flat_and_its_curvature_the_information(pages: Pages) -> None:
    """Central differences of the likelihood by brute force, in logits."""
    likelihood = Likelihood.of(pages)
    start = np.full(2 * len(pages.pairs) + 1, 0.5)
    values, _ = em.climb(likelihood.step, likelihood.objective, start)
    for _ in range(300):
        values = likelihood.step(values)
    logits, size, near = np.log(values / (1 - values)), len(values), 1e-3

    def objective(point: Floats) -> float:
        at = 1 / (1 + np.exp(-point))
        prior = np.log(at).sum() + np.log1p(-at).sum()
        return float(_log_likelihoods(pages, at).sum() + prior)

    moves = np.eye(size) * near
    slope = [objective(logits + move) - objective(logits - move) for move in moves]
    assert np.abs(slope).max() / (2 * near) < 1e-4
    spread = uncertainty(likelihood.reading(values), values, likelihood.expected(values)[1])
    curvature = np.empty((size, size))
    for i in range(size):
        for j in range(i, size):
            a, b = moves[i], moves[j]
            second = objective(logits + a + b) - objective(logits + a - b)
            second -= objective(logits - a + b) - objective(logits - a - b)
            curvature[i, j] = curvature[j, i] = -second / (4 * near**2)
    covariance, pairs = np.linalg.inv(curvature), size // 2
    assert spread.attraction == pytest.approx(np.diag(covariance)[:pairs], rel=1e-4)
    assert spread.satisfaction == pytest.approx(np.diag(covariance)[pairs:-1], rel=1e-4)
    assert spread.both == pytest.approx(np.diag(covariance, pairs)[:pairs], abs=1e-5)
    assert spread.continuation == pytest.approx(covariance[-1, -1], rel=1e-4)


def test_clicks_before_any_is_known(pages: Pages) -> None:
    """The probability of a click at a rank is the sum over all clicks at the others."""
    values = np.random.default_rng(2).uniform(0.1, 0.9, 2 * len(pages.pairs) + 1)
    docs = [0, 2, 1]
    one = Pages(
        pages.pairs,
        np.array([docs], dtype=np.int32),
        np.zeros((1, 3), dtype=np.bool_),
        np.ones(1),
    )
    expected = np.zeros(3)
    for number in range(8):
        clicked = [bool(number >> rank & 1) for rank in range(3)]
        expected += _probability(docs, clicked, values) * np.array(clicked)
    clicks = Likelihood.of(one).reading(values).clicks()
    assert clicks[:, 0] == pytest.approx(expected, rel=1e-12)
