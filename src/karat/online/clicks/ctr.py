"""Click-through rates: global, by rank, by document, and corrected for the rank (COEC)."""

from __future__ import annotations

import numpy as np

from karat.online.clicks.counts import Cells, Floats, Integers, queries_of
from karat.online.clicks.entry import (
    ClickModel,
    Estimate,
    Estimated,
    OfCells,
    Relevance,
    Settings,
    Values,
)
from karat.online.clicks.posterior import beta_interval, counted_relevance

_LEAST = 1e-6  # a click is never less probable than this, and never certain
_BOOK = (
    "Chuklin, Markov & de Rijke 2015, Click Models for Web Search, "
    "doi:10.2200/S00654ED1V01Y201507ICR043"
)


def _rate(of: str, clicked: Floats, shown: Floats) -> Estimate:
    low, high = beta_interval(clicked + 1, shown - clicked + 1)
    return Estimate(of, (clicked + 1) / (shown + 2), low, high)  # type: ignore[arg-type]


def _global(cells: Cells, _: Settings) -> Estimated:
    clicked, shown = np.array([cells.clicked.sum()]), np.array([cells.shown.sum()])
    return Estimated({"ctr": _rate("log", clicked, shown)}, None)


def _by_rank(cells: Cells, _: Settings) -> Estimated:
    rate = _rate("place", cells.by_place(cells.clicked), cells.by_place(cells.shown))
    return Estimated({"ctr": rate}, None)


def _by_document(cells: Cells, settings: Settings) -> Estimated:
    clicked, shown = cells.by_pair(cells.clicked), cells.by_pair(cells.shown)
    relevance = counted_relevance(queries_of(cells.pairs), settings.prior, clicked, shown)
    return Estimated({"ctr": relevance.parameter()}, relevance)


def _coec(cells: Cells, settings: Settings) -> Estimated:
    """Clicks over expected clicks.

    The prior is Gamma(1, 1), or the query's mean with the same strength: one expected click.
    """
    from scipy.special import gammaincinv

    rate = _rate("place", cells.by_place(cells.clicked), cells.by_place(cells.shown))
    clicked = cells.by_pair(cells.clicked)
    expected = cells.by_pair(cells.shown * rate.value[cells.place])
    mean = np.ones(len(clicked))
    if settings.prior == "query":
        query = queries_of(cells.pairs)
        mean = ((1 + np.bincount(query, clicked)) / (1 + np.bincount(query, expected)))[query]
    low, high = (gammaincinv(clicked + mean, q) / (expected + 1) for q in (0.025, 0.975))
    effective = np.minimum(expected / rate.value[cells.anchor], cells.by_pair(cells.shown))
    value = (clicked + mean) / (expected + 1)
    relevance = Relevance(value, low, high, None, None, effective)
    return Estimated({"ctr": rate, "ratio": relevance.parameter()}, relevance)


def _of_log(values: Values, pair: Integers, _: Integers) -> Floats:
    return np.full(len(pair), values["ctr"][0])


def _of_place(values: Values, _: Integers, place: Integers) -> Floats:
    return values["ctr"][place]


def _of_pair(values: Values, pair: Integers, _: Integers) -> Floats:
    return values["ctr"][pair]


def _expected(values: Values, pair: Integers, place: Integers) -> Floats:
    return np.clip(values["ratio"][pair] * values["ctr"][place], _LEAST, 1 - _LEAST)


GCTR = ClickModel(
    name="GCTR",
    title="global click-through rate",
    assumes="Every document shown is clicked with the same probability.",
    parameters=("one click-through rate",),
    blind="documents and ranks: it is a baseline that other models have to beat",
    source=_BOOK,
    compute=OfCells(_global, _of_log),
)
RCTR = ClickModel(
    name="RCTR",
    title="click-through rate by rank",
    assumes="Whether a document is clicked depends on its rank alone.",
    parameters=("click-through rate of each rank",),
    blind="documents: better ones at the top look like attention to the top",
    source=_BOOK,
    compute=OfCells(_by_rank, _of_place),
)
DCTR = ClickModel(
    name="DCTR",
    title="click-through rate by document",
    assumes="Whether a document is clicked depends on the query and the document alone.",
    parameters=("click-through rate of each document of a query",),
    blind="ranks: a document shown at the top is overrated",
    source=_BOOK,
    compute=OfCells(_by_document, _of_pair),
)
COEC = ClickModel(
    name="COEC",
    title="clicks over expected clicks",
    assumes=(
        "Documents of all ranks are equally relevant on average: the click-through rate of a rank "
        "is what its position is worth."
    ),
    parameters=("click-through rate of each rank", "clicks over expected clicks of each document"),
    blind=(
        "that rankings put better documents at the top: it corrects too much, and underrates "
        "what is always there"
    ),
    source="Zhang & Jones 2007, WWW workshop on query log analysis; Chapelle & Zhang 2009, WWW",
    compute=OfCells(_coec, _expected),
)
FAMILY = (GCTR, RCTR, DCTR, COEC)
