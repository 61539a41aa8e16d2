"""Examination relative to the first rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.click_logs import Truth, pages_of

from karat.errors import InputError
from karat.online.clicks.counts import Cells
from karat.online.clicks.examination import relative
from karat.online.clicks.fitting import fit, propensities_of


def test_documents_at_all_ranks_equally_often_have_the_ratio_of_rates() -> None:
    """Ten pages in each order; 12 clicks at rank 1, 6 at rank 2, and one in two impressions each.

    Impressions are equal, so the shares are those of the clicks: (6 + 1) / (12 + 1).
    """
    cells = pages_of([("q", "ab", {0}), ("q", "ba", {1})]).cells()
    cells = replace(cells, shown=np.full(4, 10.0), clicked=np.array([8.0, 2.0, 4.0, 4.0]))
    places = relative(cells)
    assert places.value == pytest.approx([1, 7 / 13])


def test_the_variance_is_that_of_a_ratio_of_binomials() -> None:
    """One stratum: the variance of ln(c2 / c1) is (1 - p2) / c2 + (1 - p1) / c1 (delta method).

    With 30,000 and 20,000 clicks in 100,000 impressions the prior is nothing, and n - 1 is n.
    """
    cells = pages_of([("q", "a", {0}), ("q", "ba", {1})]).cells()
    keep = np.array([0, 1])  # document a at ranks 1 and 2
    cells = replace(
        cells,
        pair=cells.pair[keep],
        place=cells.place[keep],
        shown=np.full(2, 1e5),
        clicked=np.array([3e4, 2e4]),
    )
    places = relative(cells)
    assert places.value[1] == pytest.approx(2 / 3, rel=1e-3)
    assert places.covariance[1, 1] == pytest.approx(0.8 / 2e4 + 0.7 / 3e4, rel=1e-3)
    assert places.covariance[0] == pytest.approx(0)


def test_documents_with_few_clicks_do_not_bias_it() -> None:
    """Better documents are at the top, and each of 2,000 has 25 impressions (5,000 pages of ten).

    The prior of each document moves a joint estimate in the same direction. In standard errors,
    averaged over the nine ranks below the first.
    """
    random = np.random.default_rng(4)
    truth = Truth.at_random(random, queries=100, docs=20)
    truth = replace(truth, attraction=-np.sort(-truth.attraction, axis=1))
    fitted = fit("PBM", truth.positions(random, 5_000))
    assert fitted.examination is not None
    raw = fitted.parameters["examination"].value
    off, off_jointly = [], []
    for each in fitted.examination[1:]:
        assert each.ci_low is not None
        assert each.ci_high is not None
        error = np.log(each.ci_high / each.ci_low) / (2 * 1.96)
        true = truth.examination[each.rank - 1]
        off.append(np.log(each.value / true) / error)
        off_jointly.append(np.log(raw[each.rank - 1] / raw[0] / true) / error)
    assert abs(np.mean(off)) < 1
    assert abs(np.mean(off_jointly)) > 2


def _shuffled(random: np.random.Generator) -> tuple[Truth, Cells]:
    truth = Truth.at_random(random, queries=10, docs=6, ranks=6)
    return truth, truth.positions(random, 5_000, noise=1e6).cells()


def test_randomised_traffic_has_the_ratio_of_rates() -> None:
    """All pages have six documents: the plain ratio, but for one click in two impressions."""
    _, cells = _shuffled(np.random.default_rng(3))
    clicked = cells.by_place(cells.clicked)
    measured = propensities_of(cells, "randomised")
    assert measured[0].value == 1
    assert measured[0].ci_low is None
    assert [each.rank for each in measured] == [1, 2, 3, 4, 5, 6]
    assert [each.value for each in measured] == pytest.approx(
        ((clicked + 1) / (clicked[0] + 1)).tolist(), rel=1e-6
    )
    assert [each.shown for each in measured] == [5_000] * 6


def test_intervals_of_randomised_traffic_cover_the_truth() -> None:
    """Five ranks of 40 logs: 179 or fewer of 200 would be 1 in 860 (binomial with 95 %)."""
    random, inside = np.random.default_rng(8), 0
    for _ in range(40):
        truth, cells = _shuffled(random)
        for each in propensities_of(cells, "randomised")[1:]:
            assert each.ci_low is not None
            assert each.ci_high is not None
            inside += each.ci_low <= truth.examination[each.rank - 1] <= each.ci_high
    assert 180 <= inside <= 199


def test_interleaved_traffic_is_a_model_of_its_own() -> None:
    random = np.random.default_rng(3)
    cells = Truth.at_random(random, queries=5, docs=6, ranks=6).positions(random, 3_000).cells()
    assert propensities_of(cells, "interleaved") == fit("PBM", cells).examination


def test_traffic_that_does_not_compare_ranks_is_refused() -> None:
    cells = pages_of([("q", "abc", {0, 1})]).cells()
    with pytest.raises(InputError, match="interleaved traffic does not compare all ranks"):
        propensities_of(cells, "interleaved")


def test_known_examination_is_not_estimated() -> None:
    """Its uncertainty widens the intervals of relevance, and other ranks are estimated with it."""
    random = np.random.default_rng(3)
    truth, cells = _shuffled(random)
    known = propensities_of(cells, "randomised")
    exact = [replace(each, ci_low=each.value, ci_high=each.value) for each in known]
    wide = fit("PBM", cells, propensities=known)
    narrow = fit("PBM", cells, propensities=exact)
    assert wide.examination is not None
    assert [each.value for each in wide.examination] == [each.value for each in known]
    assert wide.relevance["value"].to_list() == pytest.approx(narrow.relevance["value"].to_list())
    widths = [
        (each.relevance["ci_high"] - each.relevance["ci_low"]).to_numpy() for each in (wide, narrow)
    ]
    assert (widths[0] > widths[1]).all()
    half = fit("PBM", cells, propensities=exact[:3])
    assert half.examination is not None
    assert [each.value for each in half.examination[:3]] == [each.value for each in exact[:3]]
    for each in half.examination[3:]:
        assert each.value == pytest.approx(truth.examination[each.rank - 1], rel=0.1)
