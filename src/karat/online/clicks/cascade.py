"""The cascade model, and the simplified dynamic Bayesian network: both count."""

from __future__ import annotations

import numpy as np

from karat.online.clicks.counts import Floats, Pages, queries_of
from karat.online.clicks.entry import (
    ClickModel,
    Estimate,
    Estimated,
    OfPages,
    Settings,
    Values,
    prior_counts,
)
from karat.online.clicks.posterior import beta_interval, counted_relevance, product_relevance
from karat.online.clicks.reading import Layout, Reading

_SATISFIED = 1 - 1e-6  # in the cascade model, which has no second click: one in a million has


def _cascade(pages: Pages, settings: Settings) -> Estimated:
    """Clicks over impressions down to the first click."""
    layout = Layout(pages)
    first = np.where(layout.last >= 0, layout.clicked.argmax(axis=0), len(layout.docs))
    looked = layout.by_pair((layout.ranks <= first) & layout.shown)
    clicked = layout.by_pair(layout.ranks == first)
    relevance = counted_relevance(queries_of(pages.pairs), settings.prior, clicked, looked)
    reading = _cascade_reading({"attraction": relevance.value}, pages)
    return Estimated({"attraction": relevance.parameter()}, relevance, reading.rows())


def _cascade_reading(values: Values, pages: Pages) -> Reading:
    satisfaction = np.full(len(pages.pairs), _SATISFIED)
    return Reading.of(Layout(pages), values["attraction"], satisfaction, 1.0)


def _simplified(pages: Pages, settings: Settings) -> Estimated:
    """Clicks over impressions down to the last click; last clicks over clicks.

    On a page without a click every document counts as looked at. The counts are exact where users
    who are not satisfied always click again, for example on the next page of results, if that is
    the last entry of a page. Where users give up silently, their last click counts as satisfied,
    and pages without a click as read to the end: with users who continue with probability 0.8,
    satisfaction is overrated by 0.15 on average and attraction underrated by 0.25; with users who
    read every page to its end, both are overrated (0.05 and 0.025; tests/online/clicks).
    """
    layout = Layout(pages)
    certain = (layout.ranks <= layout.last) | (layout.last < 0)
    looked = layout.by_pair(certain & layout.shown)
    clicked = layout.by_pair(layout.clicked)
    final = layout.by_pair(layout.last >= 0)
    query = queries_of(pages.pairs)
    hits, misses = prior_counts(query, settings.prior, clicked, looked)
    attracts = (clicked + hits, looked - clicked + misses)
    hits, misses = prior_counts(query, settings.prior, final, clicked)
    satisfies = (final + hits, clicked - final + misses)
    parameters = {
        "attraction": _beta(*attracts),
        "satisfaction": _beta(*satisfies),
    }
    reading = _simplified_reading({k: each.value for k, each in parameters.items()}, pages)
    relevance = product_relevance(attracts, satisfies, looked)
    return Estimated(parameters, relevance, reading.rows())


def _beta(successes: Floats, failures: Floats) -> Estimate:
    low, high = beta_interval(successes, failures)
    return Estimate("pair", successes / (successes + failures), low, high)


def _simplified_reading(values: Values, pages: Pages) -> Reading:
    return Reading.of(Layout(pages), values["attraction"], values["satisfaction"], 1.0)


CASCADE = ClickModel(
    name="Cascade",
    title="cascade model",
    assumes="Users read from the top, click the first document that attracts, and stop.",
    parameters=("attraction of each document of a query",),
    blind="second clicks: a page with several clicks counts down to the first",
    source="Craswell, Zoeter, Taylor & Ramsey 2008, WSDM, doi:10.1145/1341531.1341545",
    compute=OfPages(_cascade, _cascade_reading),
)
SDBN = ClickModel(
    name="SDBN",
    title="simplified dynamic Bayesian network",
    assumes=(
        "Users read from the top, click what attracts, and stop only when a document satisfies: "
        "the last click satisfied."
    ),
    parameters=(
        "attraction of each document of a query",
        "satisfaction with each document of a query, once it is clicked",
    ),
    blind="users who give up: their last click counts as satisfied",
    source="Chapelle & Zhang 2009, WWW, doi:10.1145/1526709.1526711",
    compute=OfPages(_simplified, _simplified_reading),
)
