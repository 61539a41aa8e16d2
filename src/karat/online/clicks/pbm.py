"""The position-based model: a click needs a document that attracts and a place that is looked at.

A cell is clicked with probability attraction x examination. The likelihood depends on products
alone; in the logarithms of the parameters it is concave, and so are the priors, so there is one
optimum. Its parameters predict clicks. Their scale is set by the priors, and documents with few
clicks bias them, so what is reported is estimated without them: examination relative to the anchor
(``examination.relative``), then, given that, relevance: the probability of a click at the anchor.
"""

from __future__ import annotations

import numpy as np

from karat.online.clicks import em
from karat.online.clicks.counts import Cells, Floats, Integers, queries_of
from karat.online.clicks.entry import (
    ClickModel,
    Estimate,
    Estimated,
    OfCells,
    Prior,
    Relevance,
    Settings,
    Values,
    prior_counts,
)
from karat.online.clicks.examination import Places, relative
from karat.online.clicks.posterior import beta_relevance

_HIGHEST = 1 - 1e-6  # probability of a click
_STEPS = 200  # of Newton's method, at most
_CLOSE = 1e-10  # relative change at which it stops


def em_step(cells: Cells, values: Floats) -> Floats:
    """An iteration of EM: attraction of each pair, then examination of each place."""
    pairs = len(cells.pairs)
    attraction, examination = values[:pairs][cells.pair], values[pairs:][cells.place]
    clicks = attraction * examination
    missed = (cells.shown - cells.clicked) / (1 - clicks)
    attracted = cells.by_pair(cells.clicked + missed * (attraction - clicks))
    examined = cells.by_place(cells.clicked + missed * (examination - clicks))
    shown = np.concatenate([cells.by_pair(cells.shown), cells.by_place(cells.shown)])
    return np.asarray((np.concatenate([attracted, examined]) + 1) / (shown + 2))


def objective(cells: Cells, values: Floats) -> float:
    """The log-likelihood with the priors."""
    pairs = len(cells.pairs)
    clicks = values[:pairs][cells.pair] * values[pairs:][cells.place]
    hits = cells.clicked * np.log(clicks)
    misses = (cells.shown - cells.clicked) * np.log1p(-clicks)
    return float((hits + misses).sum() + (np.log(values) + np.log1p(-values)).sum())


def _estimate(cells: Cells, settings: Settings) -> Estimated:
    pairs, known = len(cells.pairs), settings.propensities
    places = relative(cells, known) if settings.identified else None
    if known is not None and places is not None:
        attraction, _ = _attraction(cells, places.value, "flat")
        examination, iterations = places.value / _top(places.value), 0
    else:
        values = np.full(pairs + len(cells.places), 0.5)
        if settings.compat:
            iterations = em.COMPAT
            for _ in range(iterations):
                values = em_step(cells, values)
        else:
            values, iterations = em.climb(
                lambda values: em_step(cells, values),
                lambda values: objective(cells, values),
                values,
            )
        attraction, examination = values[:pairs], values[pairs:]
    return Estimated(
        {
            "attraction": Estimate("pair", attraction),
            "examination": Estimate("place", examination),
        },
        None if places is None else _relevance(cells, places, settings.prior),
        None if places is None else places.rows(cells),
        iterations,
    )


def _top(value: Floats) -> float:
    """The examination at which attraction is counted: attraction x it is a click at the anchor."""
    return max(1.0, float(value.max()))


def _attraction(cells: Cells, value: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Attraction of each pair given the examination of places, and information on its logarithm.

    The slope in the logarithm is concave and falls, so Newton's method from above never crosses 0.
    """
    examination = value[cells.place] / _top(value)
    clicked, missed = cells.by_pair(cells.clicked), cells.shown - cells.clicked
    examined = cells.by_pair(cells.shown * examination)
    hits, misses = prior_counts(queries_of(cells.pairs), prior, clicked, examined)
    attraction = (clicked + hits) / (clicked + hits + misses)
    for _ in range(_STEPS):
        clicks = attraction[cells.pair] * examination
        odds, own = clicks / (1 - clicks), attraction / (1 - attraction)
        slope = clicked + hits - cells.by_pair(missed * odds) - misses * own
        information = cells.by_pair(missed * odds / (1 - clicks)) + misses * own / (1 - attraction)
        step = slope / information
        attraction = attraction * np.exp(step)
        if np.abs(step).max() < _CLOSE:
            break
    return attraction, information


def _relevance(cells: Cells, places: Places, prior: Prior) -> Relevance:
    """Relevance, and its uncertainty with that of examination (the delta method).

    Given examination, pairs are independent; when the logarithm of examination of a place moves,
    that of relevance moves by -(information of its clicks there) / (information of the pair).
    """
    from scipy.sparse import csr_array

    attraction, information = _attraction(cells, places.value, prior)
    value = attraction / _top(places.value)
    clicks = value[cells.pair] * places.value[cells.place]
    weight = (cells.shown - cells.clicked) * clicks / (1 - clicks) ** 2 / information[cells.pair]
    moves = csr_array((weight, (cells.pair, cells.place)), (len(value), len(places.value)))
    spread = np.asarray(moves @ places.covariance)[cells.pair, cells.place]
    variance = 1 / information + cells.by_pair(weight * spread)
    looked = cells.by_pair(cells.shown * places.value[cells.place])
    effective = np.minimum(looked, cells.by_pair(cells.shown))
    return beta_relevance(value, (1 - value) / (value * variance), effective)


def _clicks(values: Values, pair: Integers, place: Integers) -> Floats:
    return np.minimum(values["attraction"][pair] * values["examination"][place], _HIGHEST)


PBM = ClickModel(
    name="PBM",
    title="position-based model",
    assumes=(
        "A document is clicked if its place is looked at and the document attracts; the two are "
        "independent, and do not depend on other documents or clicks."
    ),
    parameters=("attraction of each document of a query", "examination of each place"),
    blind=(
        "that users stop when they are satisfied: a document below a good one is underrated; it "
        "needs documents that were shown at several ranks"
    ),
    source=(
        "Craswell, Zoeter, Taylor & Ramsey 2008, WSDM, doi:10.1145/1341531.1341545; Richardson, "
        "Dominowska & Ragno 2007, WWW, doi:10.1145/1242572.1242643"
    ),
    compute=OfCells(_estimate, _clicks),
)
