"""Examination of places relative to the anchor, whatever the documents shown there.

Where a stratum (a document of a query, or a query) was clicked C times in all, place r has an
expected share of n_r g_r / sum(n_s g_s) of them, n being impressions and g examination. This holds
however relevant the stratum is, so the score of the multinomial likelihood has mean 0 however few
clicks a stratum has. Joint estimates of documents and places are biased there: each document with
few clicks moves them a little in the same direction.

The variance is that of the estimating equation, with clicks as independent binomials (Godambe 1960;
McCullagh & Nelder 1989, 9.4, 7.2). If all strata have the same impressions at all ranks, g is the
plain ratio of click-through rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from karat.online.clicks.counts import Cells, Floats, Integers
from karat.online.clicks.posterior import Z95
from karat.tables.online.clicks import Examination

_STEPS = 100  # of Newton's method, at most
_CLOSE = 1e-9  # change of a logarithm, or relative one of the likelihood, at which it stops


@dataclass(frozen=True)
class Places:
    """Examination of each place relative to the anchor."""

    value: Floats
    covariance: Floats  # of the logarithms

    def rows(self, cells: Cells) -> list[Examination]:
        """The same as records."""
        shown = cells.by_place(cells.shown)
        factor = np.exp(Z95 * np.sqrt(np.diag(self.covariance)))
        return [
            Examination(
                rank=rank,
                value=float(self.value[place]),
                ci_low=None if place == cells.anchor else float(self.value[place] / factor[place]),
                ci_high=None if place == cells.anchor else float(self.value[place] * factor[place]),
                shown=float(shown[place]),
                presentation=presentation,
            )
            for place, (rank, presentation) in enumerate(place_keys(cells))
        ]


def place_keys(cells: Cells) -> list[tuple[int, str | None]]:
    """Rank and presentation of each place."""
    return list(cells.places.select("rank", "presentation").iter_rows())


def known_places(cells: Cells, known: Sequence[Examination] | None) -> list[int]:
    """Places whose examination is known."""
    given = {(each.rank, each.presentation) for each in known or ()}
    return [place for place, key in enumerate(place_keys(cells)) if key in given]


def relative(cells: Cells, known: Sequence[Examination] | None = None) -> Places:
    """Examination of the places of a log that connects them.

    Each place has one click in two impressions in addition, all of them as one stratum.

    Args:
        cells: The log; its pairs are the strata.
        known: Examination that is not estimated. Its uncertainty is part of the covariance, but not
            that places of one experiment share its first rank, which is unknown.
    """
    counts = _Counts.of(cells)
    value, log_variance, fixed = _given(cells, known)
    free = np.setdiff1d(np.arange(len(value)), fixed)
    for _ in range(_STEPS):
        slope, information, _ = counts.derivatives(value)
        step = np.linalg.solve(information[np.ix_(free, free)], slope[free])
        before = counts.likelihood(value)
        for length in 0.5 ** np.arange(30):
            new = value.copy()
            new[free] *= np.exp(length * step)
            if counts.likelihood(new) >= before - _CLOSE * abs(before):
                break
        value = new
        if np.abs(step).max(initial=0) < _CLOSE:
            break
    _, information, variance = counts.derivatives(value)
    inverse = np.linalg.inv(information[np.ix_(free, free)])
    moves = np.zeros_like(information)  # of all places, when fixed ones move
    moves[fixed, fixed] = 1
    moves[np.ix_(free, fixed)] = -inverse @ information[np.ix_(free, fixed)]
    covariance = moves @ np.diag(log_variance) @ moves.T
    covariance[np.ix_(free, free)] += inverse @ variance[np.ix_(free, free)] @ inverse
    return Places(value, covariance)


@dataclass(frozen=True)
class _Counts:
    """Impressions and clicks by stratum and place."""

    stratum: Integers
    place: Integers
    shown: Floats
    clicked: Floats
    shape: tuple[int, int]

    @classmethod
    def of(cls, cells: Cells) -> _Counts:
        strata, places = len(cells.pairs), len(cells.places)
        row = np.append(cells.pair, np.full(places, strata))
        column = np.append(cells.place, np.arange(places))
        key, which = np.unique(row * places + column, return_inverse=True)
        shown, clicked = (
            np.bincount(which, np.append(values, np.full(places, prior))).astype(np.float64)
            for values, prior in ((cells.shown, 2.0), (cells.clicked, 1.0))
        )
        return cls(key // places, key % places, shown, clicked, (strata + 1, places))

    def likelihood(self, value: Floats) -> float:
        """The multinomial log-likelihood, up to a constant."""
        expected = self.shown * value[self.place]
        share = expected / np.bincount(self.stratum, expected)[self.stratum]
        return float((self.clicked * np.log(share)).sum())

    def derivatives(self, value: Floats) -> tuple[Floats, Floats, Floats]:
        """The score in the logarithms of examination, its negative derivative, its variance."""
        from scipy.sparse import csr_array

        _, places = self.shape
        expected = self.shown * value[self.place]
        share = expected / np.bincount(self.stratum, expected)[self.stratum]
        clicks = np.bincount(self.stratum, self.clicked)
        expected = clicks[self.stratum] * share
        slope = np.bincount(self.place, self.clicked - expected, places).astype(np.float64)
        shares, by_clicks = (
            csr_array((values, (self.stratum, self.place)), self.shape)
            for values in (share, expected)
        )
        information = -(shares.T @ by_clicks).toarray()
        information += np.diag(np.bincount(self.place, expected, places))
        # That of a binomial, without bias; one impression alone does not show it, clicks bound it
        missed = self.shown - self.clicked
        noise = self.clicked * np.minimum(missed / np.maximum(self.shown - 1, 1e-300), 1)
        total = np.bincount(self.stratum, noise)[self.stratum]
        noises, by_total = (
            csr_array((values, (self.stratum, self.place)), self.shape)
            for values in (noise, total * share)
        )
        cross = (shares.T @ noises).toarray()
        variance = (shares.T @ by_total).toarray() - cross - cross.T
        variance += np.diag(np.bincount(self.place, noise, places))
        return slope, information, variance


def _given(cells: Cells, known: Sequence[Examination] | None) -> tuple[Floats, Floats, Integers]:
    """Values to start from, variances of known logarithms, and places that are not estimated."""
    clicked, shown = cells.by_place(cells.clicked) + 1, cells.by_place(cells.shown) + 2
    value = clicked / shown
    value /= value[cells.anchor]
    log_variance, fixed = np.zeros(len(value)), {cells.anchor}
    given = {(each.rank, each.presentation): each for each in known or ()}
    for place, key in enumerate(place_keys(cells)):
        if key in given:
            one = given[key]
            value[place] = one.value
            fixed.add(place)
            if one.ci_low and one.ci_high:
                log_variance[place] = (np.log(one.ci_high / one.ci_low) / (2 * Z95)) ** 2
    return value, log_variance, np.array(sorted(fixed), dtype=np.int64)
