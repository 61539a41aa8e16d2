"""The dynamic Bayesian network: users read from the top, and may give up at any rank.

With few pages for each document, the priors of documents move continuation by more than its
interval says: with 4,000 pages and 50 documents, all of 20 simulated intervals contained it, with
240 documents 15 of them. Intervals of documents are not affected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from karat.online.clicks import em
from karat.online.clicks._information import Uncertainty, uncertainty
from karat.online.clicks._pyclick import dbn_step
from karat.online.clicks.counts import Floats, Pages, queries_of
from karat.online.clicks.entry import (
    ClickModel,
    Estimate,
    Estimated,
    OfPages,
    Relevance,
    Settings,
    Values,
    prior_counts,
)
from karat.online.clicks.posterior import Z95, beta_relevance
from karat.online.clicks.reading import Layout, Reading


@dataclass(frozen=True)
class Likelihood:
    """A log with its priors; parameters are attraction and satisfaction of pairs, continuation."""

    layout: Layout
    clicked: Floats  # clicks of each pair
    hits: Floats  # successes that the prior of each parameter adds, of 2

    @classmethod
    def of(cls, pages: Pages) -> Likelihood:
        """With flat priors."""
        layout = Layout(pages)
        return cls(layout, layout.by_pair(layout.clicked), np.ones(2 * len(pages.pairs) + 1))

    def reading(self, values: Floats) -> Reading:
        """The pages under parameters."""
        pairs = len(self.clicked)
        return Reading.of(self.layout, values[:pairs], values[pairs:-1], float(values[-1]))

    def expected(self, values: Floats) -> tuple[Floats, Floats]:
        """Expected successes and trials of each parameter, without the priors."""
        layout, reading = self.layout, self.reading(values)
        count, examined = layout.pages.count, reading.examined
        continued = examined[1:].sum(axis=0)
        trials = np.where(layout.ranks < layout.length - 1, examined, 0).sum(axis=0)
        trials -= np.where(layout.last < layout.length - 1, reading.satisfied, 0)
        satisfied = layout.by_pair(reading.satisfied)
        looked = layout.by_pair(examined)
        return (
            np.concatenate([self.clicked, satisfied, [(count * continued).sum()]]),
            np.concatenate([looked, self.clicked, [(count * trials).sum()]]),
        )

    def step(self, values: Floats) -> Floats:
        """An iteration of EM."""
        successes, trials = self.expected(values)
        return (successes + self.hits) / (trials + 2)

    def objective(self, values: Floats) -> float:
        """The log-likelihood with the priors."""
        likelihood = (self.reading(values).log_likelihood() * self.layout.pages.count).sum()
        prior = self.hits * np.log(values) + (2 - self.hits) * np.log1p(-values)
        return float(likelihood + prior.sum())

    def of_queries(self, values: Floats) -> Likelihood:
        """With priors of documents that have the means of their queries."""
        query, pairs = queries_of(self.layout.pages.pairs), len(self.clicked)
        successes, trials = self.expected(values)
        hits = [
            prior_counts(query, "query", successes[part], trials[part])[0]
            for part in (slice(pairs), slice(pairs, 2 * pairs))
        ]
        return replace(self, hits=np.concatenate([*hits, [1.0]]))


def _estimate(pages: Pages, settings: Settings) -> Estimated:
    likelihood = Likelihood.of(pages)
    values = np.full(len(likelihood.hits), 0.5)
    if settings.compat:
        iterations = em.COMPAT
        for _ in range(iterations):
            values = dbn_step(likelihood.layout, values)
    else:
        values, iterations = em.climb(likelihood.step, likelihood.objective, values)
        if settings.prior == "query":
            likelihood = likelihood.of_queries(values)
            values, more = em.climb(likelihood.step, likelihood.objective, values)
            iterations += more
    reading, pairs = likelihood.reading(values), len(likelihood.clicked)
    _, trials = likelihood.expected(values)
    spread = uncertainty(reading, values, trials)
    logit, far = np.log(values[-1] / (1 - values[-1])), Z95 * np.sqrt(spread.continuation)
    low, high = (np.array([1 / (1 + np.exp(-(logit + sign * far)))]) for sign in (-1, 1))
    parameters = {
        "attraction": _of_pairs(values[:pairs], spread.attraction),
        "satisfaction": _of_pairs(values[pairs:-1], spread.satisfaction),
        "continuation": Estimate("log", values[-1:], low, high),
    }
    relevance = _relevance(values[:pairs], values[pairs:-1], spread, trials[:pairs])
    return Estimated(parameters, relevance, reading.rows(), iterations)


def _of_pairs(value: Floats, variance: Floats) -> Estimate:
    """With the interval of the Beta distribution that has this mode and curvature as a logit."""
    return beta_relevance(value, 1 / (variance * value * (1 - value)), value).parameter()


def _relevance(
    attraction: Floats, satisfaction: Floats, spread: Uncertainty, looked: Floats
) -> Relevance:
    """Attraction x satisfaction; the variance of its logarithm by the delta method."""
    value, a, s = attraction * satisfaction, 1 - attraction, 1 - satisfaction
    variance = a**2 * spread.attraction + s**2 * spread.satisfaction + 2 * a * s * spread.both
    return beta_relevance(value, (1 - value) / (value * variance), looked)


def _reading(values: Values, pages: Pages) -> Reading:
    return Reading.of(
        Layout(pages),
        values["attraction"],
        values["satisfaction"],
        float(values["continuation"][0]),
    )


DBN = ClickModel(
    name="DBN",
    title="dynamic Bayesian network",
    assumes=(
        "Users read from the top, click what attracts, and stop when a document satisfies; those "
        "not satisfied continue to the next rank with a fixed probability."
    ),
    parameters=(
        "attraction of each document of a query",
        "satisfaction with each document of a query, once it is clicked",
        "one continuation probability",
    ),
    blind="users who skip documents or go back up; that some are more patient than others",
    source="Chapelle & Zhang 2009, WWW, doi:10.1145/1526709.1526711",
    compute=OfPages(_estimate, _reading),
)
