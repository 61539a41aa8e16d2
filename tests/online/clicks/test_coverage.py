"""How often 95 % intervals contain the parameters of simulated users."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.click_logs import Truth

from karat.online.clicks.counts import Floats
from karat.online.clicks.fitting import Fitted, fit

Inside = list[bool]
QUERIES, DOCS = 10, 12


def _within(low: Floats | None, high: Floats | None, true: Floats) -> Inside:
    assert low is not None
    assert high is not None
    return list((low <= true) & (true <= high))


def _parameters(fitted: Fitted, **true: Floats) -> Inside:
    estimates = {name: fitted.parameters[name] for name in true}
    return [
        inside
        for name, each in estimates.items()
        for inside in _within(each.ci_low, each.ci_high, true[name])
    ]


def _pbm(random: np.random.Generator) -> Inside:
    """Examination relative to rank 1, and the probability of a click there."""
    truth = Truth.at_random(random, QUERIES, DOCS)
    fitted = fit("PBM", truth.positions(random, 4_000))
    assert fitted.examination is not None
    inside = []
    for each in fitted.examination[1:]:
        assert each.ci_low is not None
        assert each.ci_high is not None
        inside.append(each.ci_low <= truth.examination[each.rank - 1] <= each.ci_high)
    low, high = (fitted.relevance[name].to_numpy() for name in ("ci_low", "ci_high"))
    return inside + _within(low, high, truth.attraction.ravel())


def _sdbn(random: np.random.Generator) -> Inside:
    """Users who are not satisfied always click the last entry, which is left out."""
    truth = Truth.at_random(random, QUERIES, DOCS + 1)
    fitted = fit("SDBN", truth.reading(random, 4_000, continuation=1.0, next_page=True))
    keep = np.tile(np.arange(DOCS + 1) < DOCS, QUERIES)
    inside = []
    for name, true in (("attraction", truth.attraction), ("satisfaction", truth.satisfaction)):
        each = fitted.parameters[name]
        inside += list(np.array(_within(each.ci_low, each.ci_high, true.ravel()))[keep])
    return inside


def _dbn(random: np.random.Generator) -> Inside:
    truth = Truth.at_random(random, QUERIES, DOCS)
    fitted = fit("DBN", truth.reading(random, 8_000))
    return _parameters(
        fitted,
        attraction=truth.attraction.ravel(),
        satisfaction=truth.satisfaction.ravel(),
        continuation=np.array([truth.continuation]),
    )


def _all(simulate: Callable[[np.random.Generator], Inside], logs: int) -> Iterator[bool]:
    for seed in range(logs):
        yield from simulate(np.random.default_rng(seed))


@pytest.mark.parametrize("simulate", [_pbm, _sdbn, _dbn], ids=["PBM", "SDBN", "DBN"])
def test_intervals_contain_the_truth(
    simulate: Callable[[np.random.Generator], Inside], *, deep: bool
) -> None:
    """Of 200 logs 25,800 parameters of the PBM, 48,000 of the SDBN, 48,200 of the DBN.

    Of three logs 387 at least: fewer than 91 % of them, or more than 98.5 %, happens to correct
    intervals once in a thousand (binomial).
    """
    inside = list(_all(simulate, 200 if deep else 3))
    share = np.mean(inside)
    assert (0.93 if deep else 0.91) <= share <= (0.97 if deep else 0.985)


@pytest.mark.parametrize(
    ("continuation", "attraction", "satisfaction"), [(1.0, 0.025, 0.05), (0.8, -0.25, 0.15)]
)
def test_the_bias_of_the_sdbn_by_users_who_give_up(
    continuation: float, attraction: float, satisfaction: float
) -> None:
    """Users who read to the end of the page, and users who continue with 0.8 after a document.

    Their last click counts as satisfied. A page without a click counts as read to the end, so
    documents that were not looked at lower attraction.
    """
    random = np.random.default_rng(1)
    truth = Truth.at_random(random, QUERIES, DOCS)
    fitted = fit("SDBN", truth.reading(random, 20_000, continuation=continuation))
    bias = {
        name: float(np.mean(fitted.parameters[name].value - true.ravel()))
        for name, true in (("attraction", truth.attraction), ("satisfaction", truth.satisfaction))
    }
    expected = {"attraction": attraction, "satisfaction": satisfaction}
    assert bias == pytest.approx(expected, abs=0.05)
