"""Laws of click models, on logs drawn at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.click_logs import pages_of

from karat.online.clicks import em, pbm
from karat.online.clicks.counts import Pages
from karat.online.clicks.dbn import Likelihood
from karat.online.clicks.fitting import evaluated, fit
from karat.online.clicks.registry import MODELS

NAMES = [model.name for model in MODELS]
ESTIMATED = ("PBM", "DBN")  # by EM, so that two ways to one optimum meet nearly


@st.composite
def logs(draw: st.DrawFn, deepest: int = 4) -> Pages:
    """Up to twelve pages of two queries."""
    page = st.tuples(
        st.sampled_from(["p", "q"]),
        st.permutations("abcde"),
        st.integers(1, deepest),
        st.sets(st.integers(0, deepest - 1)),
    )
    rows = draw(st.lists(page, min_size=1, max_size=12))
    return pages_of(
        [
            (query, docs[:length], {rank for rank in clicks if rank < length})
            for query, docs, length, clicks in rows
        ]
    )


@given(name=st.sampled_from(NAMES), log=logs(), seed=st.integers(0, 2**32))
def test_the_order_of_pages_and_the_names_of_documents_change_nothing(
    name: str, log: Pages, seed: int
) -> None:
    random = np.random.default_rng(seed)
    order = random.permutation(len(log.count))
    mixed = random.permutation(len(log.pairs))
    # New names, sorted as they must be: pair i becomes row mixed[i] of its query
    query = log.pairs["query"].to_numpy()
    row = np.lexsort((mixed, query))
    new = np.empty(len(row), dtype=np.int32)
    new[row] = np.arange(len(row))
    docs = np.where(log.docs >= 0, new[log.docs], -1).astype(np.int32)
    names = pl.DataFrame(
        {"query": query[row], "doc_id": [f"{number:03}" for number in range(len(row))]}
    )
    other = Pages(names, docs[order], log.clicked[order], log.count[order])
    first, second = fit(name, log), fit(name, other)
    close = 1e-4 if name in ESTIMATED else 1e-9
    for column in ("value", "ci_low", "effective"):
        values = second.relevance[column].to_numpy()[new]  # null, where there is none, as nan
        expected = pytest.approx(values, rel=close, nan_ok=True)
        assert first.relevance[column].to_numpy() == expected
    results = [evaluated(first, log), evaluated(second, other)]
    assert results[0].log_likelihood == pytest.approx(results[1].log_likelihood, rel=close)
    assert first.reason == second.reason


@given(name=st.sampled_from(["DCTR", "Cascade", "SDBN"]), log=logs())
def test_doubling_large_counts_changes_nothing(name: str, log: Pages) -> None:
    """Where the prior no longer counts, more of the same does not change values."""
    many, more = (replace(log, count=log.count * times) for times in (1e6, 2e6))
    values = [fit(name, each).relevance["value"].to_numpy() for each in (many, more)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


@given(log=logs())
def test_logs_without_swaps_are_not_identified(log: Pages) -> None:
    """Every document at the rank of its number."""
    docs = np.argsort(log.docs, axis=1)
    names = [(query, f"{rank}") for query in ("p", "q") for rank in range(docs.shape[1])]
    first = log.pairs["query"].to_numpy()[log.docs[:, 0]] == "q"
    shown = np.arange(docs.shape[1]) + np.where(first, docs.shape[1], 0)[:, None]
    fixed = Pages(
        pl.DataFrame(names, ["query", "doc_id"], orient="row"),
        np.where(log.docs >= 0, shown, -1).astype(np.int32),
        log.clicked,
        log.count,
    )
    for name in ("PBM", "SDBN"):
        fitted = fit(name, fixed)
        assert fitted.identified == (docs.shape[1] == 1)
        assert fitted.identified or fitted.examination is None
        assert bool(fitted.reason) != fitted.identified


@given(log=logs())
def test_em_never_lowers_the_likelihood(log: Pages) -> None:
    cells, likelihood = log.cells(), Likelihood.of(log)
    for step, objective, size in (
        (
            lambda values: pbm.em_step(cells, values),
            lambda values: pbm.objective(cells, values),
            len(cells.pairs) + len(cells.places),
        ),
        (likelihood.step, likelihood.objective, 2 * len(log.pairs) + 1),
    ):
        values = np.full(size, 0.5)
        reached = [objective(values)]
        for _ in range(20):
            values = step(values)
            reached.append(objective(values))
        assert np.diff(reached).min() > -1e-9
        best, _ = em.climb(step, objective, np.full(size, 0.5))
        assert objective(best) >= reached[-1] - 1e-9


@given(name=st.sampled_from(NAMES), log=logs(), held_out=logs(deepest=5))
def test_any_log_can_be_predicted(name: str, log: Pages, held_out: Pages) -> None:
    result = evaluated(fit(name, log), held_out)
    assert np.isfinite(result.log_likelihood)
    assert result.log_likelihood < 0
    assert all(value >= 1 for value in result.perplexity_by_rank)
    assert result.by_query["pages"].sum() == pytest.approx(held_out.count.sum())
