"""Fitting, and what a model predicts of another log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, gamma
from tests.click_logs import Truth, pages_of, t12

from karat.errors import InputError, UsageError
from karat.online.clicks.counts import Cells, Pages
from karat.online.clicks.fitting import evaluated, fit
from karat.online.clicks.registry import MODELS

NAMES = [model.name for model in MODELS]


@pytest.fixture(scope="module")
def pages() -> Pages:
    """Three queries of six documents at four ranks."""
    random = np.random.default_rng(1)
    truth = Truth.at_random(random, queries=3, docs=6, ranks=4)
    return truth.reading(random, 600)


def test_pages_of_different_length() -> None:
    """GCTR, 2 of 4 documents clicked, so (2 + 1) / (4 + 2) = ½: every rank has perplexity 2.

    A mean over pages that have the rank: with all pages in the denominator rank 3 would have √2.
    """
    log = pages_of([("q", "abc", {0, 2}), ("q", "a", set())])
    result = evaluated(fit("GCTR", log), log)
    assert result.log_likelihood == pytest.approx(np.log(0.5))
    assert result.perplexity_by_rank == pytest.approx([2, 2, 2])
    assert result.by_query.row(0)[1:] == pytest.approx((2, 2))


def test_the_likelihood_is_a_mean_over_ranks_then_pages() -> None:
    """RCTR: rates 2/4 and 1/3; the first page has two ranks, the second one.

    Pages: (ln ½ + ln ⅔) / 2 and ln ½.
    """
    log = pages_of([("q", "ab", {0}), ("q", "a", set())])
    result = evaluated(fit("RCTR", log), log)
    pages = [(np.log(1 / 2) + np.log(2 / 3)) / 2, np.log(1 / 2)]
    assert result.log_likelihood == pytest.approx(np.mean(pages))
    assert result.perplexity_by_rank == pytest.approx([2, 1.5])
    assert result.perplexity == pytest.approx(1.75)


def test_an_unseen_document_has_the_mean_of_its_query_then_of_all() -> None:
    """DCTR, clicks + 1 over impressions + 2, weighted by impressions.

    Query q: a 3 of 3, b 0 of 1: (3 · 4/5 + 1 · 1/3) / 4 = 41/60. Query r: c 0 of 2, 1/4.
    All: (41/15 + 1/2) / 6 = 97/180.
    """
    log = pages_of([("q", "ab", {0}), ("q", "a", {0}), ("q", "a", {0}), ("r", "c", set()),
                    ("r", "c", set())])  # fmt: skip
    fitted = fit("DCTR", log)
    held = [("q", "x", {0}), ("s", "a", {0}), ("q", "a", {0})]
    chances = [41 / 60, 97 / 180, 4 / 5]
    for page, chance in zip(held, chances, strict=True):
        result = evaluated(fitted, pages_of([page]))
        assert result.log_likelihood == pytest.approx(np.log(chance))
        assert result.unseen == (chance != 4 / 5)
    assert evaluated(fitted, pages_of(held)).unseen == 2


def test_an_unseen_rank_has_the_value_of_the_deepest_one() -> None:
    """RCTR: rank 2 has (0 + 1) / (1 + 2)."""
    fitted = fit("RCTR", pages_of([("q", "ab", {0})]))
    result = evaluated(fitted, pages_of([("q", "abcd", {3})]))
    assert result.perplexity_by_rank[1:] == pytest.approx([1.5, 1.5, 3])


@pytest.mark.parametrize("name", NAMES)
def test_a_model_predicts_its_own_log_better_than_chance(name: str, pages: Pages) -> None:
    fitted = fit(name, pages)
    result = evaluated(fitted, pages)
    assert result.unseen == 0
    assert 1 < result.perplexity < 2
    assert result.by_query["query"].to_list() == ["q00000", "q00001", "q00002"]
    assert result.by_query["pages"].sum() == pytest.approx(600)
    assert (fitted.relevance["value"].null_count() == 0) == (name not in {"GCTR", "RCTR"})
    if name not in {"GCTR", "RCTR", "DCTR", "COEC"}:
        assert fitted.examination is not None
        assert fitted.examination[0].value == 1
        assert fitted.examination[0].ci_low is None
        for each in fitted.examination[1:]:
            assert each.ci_low is not None
            assert each.ci_high is not None
            assert 0 < each.ci_low < each.value < each.ci_high


@pytest.mark.parametrize("name", ["GCTR", "RCTR", "DCTR", "COEC", "PBM"])
def test_counts_by_cell_are_enough(name: str, pages: Pages) -> None:
    results = [evaluated(fit(name, counts), counts) for counts in (pages, pages.cells())]
    assert results[0].log_likelihood == results[1].log_likelihood
    assert results[0].perplexity_by_rank == results[1].perplexity_by_rank


@pytest.mark.parametrize("name", ["Cascade", "SDBN", "DBN"])
def test_reading_from_the_top_needs_pages(name: str, pages: Pages) -> None:
    with pytest.raises(UsageError, match=f"{name} needs the clicks of each page"):
        fit(name, pages.cells())


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_log_is_an_error(name: str) -> None:
    with pytest.raises(InputError, match="no page of results"):
        fit(name, pages_of([]))


def test_propensities_are_of_the_pbm(pages: Pages) -> None:
    known = fit("PBM", pages).examination
    with pytest.raises(UsageError, match="SDBN does not use propensities"):
        fit("SDBN", pages, propensities=known)
    assert known is not None
    deeper = [replace(each, rank=each.rank + 10) for each in known]
    with pytest.raises(UsageError, match="of other ranks"):
        fit("PBM", pages, propensities=deeper)


def test_the_posterior_of_a_rate_is_a_beta_distribution() -> None:
    """DCTR of a document with 3 clicks in 9 impressions: Beta(4, 7)."""
    log = pages_of([("q", "a", {0})] * 3 + [("q", "a", set())] * 6)
    row = fit("DCTR", log).relevance.row(0, named=True)
    posterior = beta(4, 7)
    assert (row["value"], row["shown"], row["clicked"]) == (pytest.approx(4 / 11), 9, 3)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(posterior.interval(0.95))
    draws = posterior.rvs(200_000, random_state=1)
    logits = np.log(draws / (1 - draws))
    assert row["logit"] == pytest.approx(logits.mean(), abs=0.01)
    assert row["logit_se"] == pytest.approx(logits.std(), abs=0.01)


def test_coec_is_clicks_over_expected_clicks() -> None:
    """Rates of ranks: 3/4 and 1/4 of two pages; document a: (2 + 1) / (1.5 + 1), b: 1 / 1.5."""
    log = pages_of([("q", "ab", {0}), ("q", "ab", {0})])
    relevance = fit("COEC", log).relevance
    assert relevance["value"].to_list() == pytest.approx([3 / 2.5, 1 / 1.5])
    expected = gamma(3, scale=1 / 2.5).interval(0.95)
    assert relevance.select("ci_low", "ci_high").row(0) == pytest.approx(expected)
    assert relevance["logit"].null_count() == 2


def test_the_cascade_model_counts_down_to_the_first_click() -> None:
    """a: looked at twice, clicked once; b: once and once, as it is below the first click else."""
    log = pages_of([("q", "ab", {0, 1}), ("q", "ab", {1})])
    fitted = fit("Cascade", log)
    assert fitted.relevance["value"].to_list() == pytest.approx([2 / 4, 2 / 3])
    assert fitted.relevance["effective"].to_list() == [2, 1]
    # The second click of a page has a chance of one in a million: attraction ½ · 1e-6 · ⅔
    first = evaluated(fitted, pages_of([("q", "ab", {0, 1})]))
    assert first.log_likelihood == pytest.approx(np.log(0.5 * 1e-6 * 2 / 3) / 2)


@pytest.mark.parametrize("name", ["DCTR", "COEC", "PBM", "Cascade", "SDBN", "DBN"])
def test_the_prior_of_the_query_shrinks_documents_to_it(name: str) -> None:
    """A document shown once without a click, in a query that is clicked often and one that is not.

    With a flat prior both are alike; with that of their query, they are apart. Attraction of the
    DBN, as the last click of a page of two says nothing of satisfaction there.
    """
    often = [("often", "ab", {0, 1}), ("often", "ba", {0, 1})] * 20
    seldom = [("seldom", "ab", {0}), ("seldom", "ba", set())] + [("seldom", "ab", set())] * 38
    rows = [*often, *seldom, ("often", "c", set()), ("seldom", "c", set())]

    def of_c(prior: str) -> list[float]:
        fitted = fit(name, pages_of(rows), prior=prior)  # type: ignore[arg-type]
        values = fitted.relevance["value"]
        if name == "DBN":
            values = pl.Series(fitted.parameters["attraction"].value)
        return values.filter(fitted.pairs["doc_id"] == "c").to_list()

    (flat_often, flat_seldom), (often_c, seldom_c) = of_c("flat"), of_c("query")
    assert flat_often == pytest.approx(flat_seldom, abs=0.06)
    assert often_c > flat_often
    assert seldom_c < flat_seldom


def test_effective_impressions_are_those_looked_at() -> None:
    random = np.random.default_rng(2)
    fitted = fit("PBM", Truth.at_random(random, queries=2, docs=6, ranks=6).positions(random, 500))
    assert fitted.examination is not None
    looks = {each.rank: each.value for each in fitted.examination}
    assert all(value <= 1 for value in looks.values())
    relevance = fitted.relevance
    assert (relevance["effective"] <= relevance["shown"]).all()
    expected = sum(looks[each.rank] * each.shown for each in fitted.examination)
    assert relevance["effective"].sum() == pytest.approx(expected)


def test_weights_of_pages_count() -> None:
    """Half the weight of every page is half the evidence: as wide as with half the pages."""
    log = t12()
    half = replace(log, count=log.count / 2)
    twice = replace(log, count=log.count * 2)
    widths = [
        (fitted.relevance["ci_high"] - fitted.relevance["ci_low"]).mean()
        for fitted in (fit("DCTR", half), fit("DCTR", log), fit("DCTR", twice))
    ]
    assert widths == sorted(widths, reverse=True)


def test_presentations_are_places(pages: Pages) -> None:
    """Odd documents have an image, whose click rates double: the anchor is the usual rank 1."""
    cells = pages.cells()
    places = pl.concat([cells.places, cells.places.with_columns(presentation=pl.lit("image"))])
    odd = np.random.default_rng(1).random(len(cells.pair)) < 0.5
    both = Cells(
        cells.pairs,
        places,
        np.concatenate([cells.pair, cells.pair[odd]]),
        np.concatenate([cells.place, cells.place[odd] + len(cells.places)]),
        *(
            np.concatenate([each, each[odd] * 0.5])
            for each in (cells.shown, cells.clicked, cells.satisfied_low, cells.satisfied_high,
                         cells.share, cells.share_clicked)
        ),
        cells.pages,
    )  # fmt: skip
    fitted = fit("PBM", both)
    assert fitted.examination is not None
    keys = [(each.rank, each.presentation) for each in fitted.examination]
    assert keys == [
        (1, None),
        (2, None),
        (3, None),
        (4, None),
        *((r, "image") for r in range(1, 5)),
    ]
    assert fitted.examination[0].ci_low is None
    assert fitted.examination[4].ci_low is not None
    # Of a presentation it never saw, the model takes the rank as it knows it
    unknown = replace(cells, places=cells.places.with_columns(presentation=pl.lit("video")))
    assert evaluated(fitted, unknown).perplexity == evaluated(fitted, cells).perplexity
