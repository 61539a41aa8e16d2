"""Do two measures, or two sets of judgments, order systems alike: tau-b, tau_AP and Spearman."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from karat.errors import UsageError
from karat.stats.averages import Floats
from karat.stats.correlation import outcome


@dataclass(frozen=True, slots=True)
class OrderAgreement:
    """How far two orders of the same systems agree; each from -1 (reversed) over 0 to 1."""

    n: int  # systems that have both values
    # tau-b: concordant less discordant pairs, over those untied in each; or None
    kendall: float | None
    tau_ap: float | None  # Tau_AP: as tau, with more weight to the top of the second order; or None
    spearman: float | None  # correlation of midranks; or None
    reason: str = ""  # why there is none; empty if there is


def order_agreement(reference: Floats, estimated: Floats) -> OrderAgreement:
    """Agreement of two orders of systems, each by a value of which more is better.

    Args:
        reference: One for each system, such as its mean by the full judgments; NaN where there
            is none; shape (s,).
        estimated: The values whose order is in question; shape (s,). Systems that lack either
            are left out. Tau_AP weighs the top of this order, and changes if the two are
            exchanged; the others do not.

    Raises:
        UsageError: the two are not of one length.

    Source: as ``karat.stats.correlation.outcome`` and ``tau_ap``.
    """
    if reference.shape != estimated.shape or reference.ndim != 1:
        raise UsageError(
            f"the values of systems are of shapes {reference.shape} and {estimated.shape}",
            fix="give one value for each system, in the same order of systems",
        )
    both = ~(np.isnan(reference) | np.isnan(estimated))
    x, y = reference[both], estimated[both]
    reason = _no_order(x, y)
    if reason:
        return OrderAgreement(len(x), None, None, None, reason)
    found = outcome(x, y)
    return OrderAgreement(len(x), found.kendall, tau_ap(x, y), found.spearman)


def tau_ap(reference: Floats, estimated: Floats) -> float:
    """AP rank correlation, -1 to 1: at each rank but the first, the share above that belongs there.

    tau_AP = 2 / (s - 1) * sum over ranks i = 2 .. s of C(i) / (i - 1), less 1, where C(i) counts
    the systems above rank i of the estimated order that the reference too has above that system.

    Ties are taken as not knowing: the value is the mean of tau_AP over all ways to break them, in
    both orders, worked out and not drawn. An order with ties thus has less than 1 with itself.

    Args:
        reference: More is better, no NaN; shape (s,), s at least 2.
        estimated: Likewise, of the same systems; shape (s,).

    Source: Yilmaz, Aslam & Robertson 2008, doi:10.1145/1390334.1390435; for ties Urbano &
    Marrero 2017, doi:10.1145/3121050.3121106 (tau_AP,a), here in the reference as well.
    """
    s = len(reference)
    order = np.argsort(-estimated, kind="stable")
    truth, shown = reference[order], estimated[order]
    first = np.searchsorted(-shown, -shown, side="left")  # systems above the tie
    size = np.searchsorted(-shown, -shown, side="right") - first
    right = (truth[:, None] > truth) + 0.5 * (truth[:, None] == truth)  # row above column
    above = np.arange(s)[:, None] < first
    concordant = (right * above).sum(axis=0)
    # Any member of the tie may have any of its ranks, and any two members either order.
    mean_concordant = np.bincount(first, concordant, minlength=s)[first] / size
    ahead = np.arange(s)  # systems above, tied ones included
    expected = mean_concordant + (ahead - first) / 2
    return float(2 * (expected[1:] / ahead[1:]).sum() / (s - 1) - 1)


def _no_order(x: Floats, y: Floats) -> str:
    if len(x) < 2:
        return "no two systems have both values"
    if (x == x[0]).all() or (y == y[0]).all():
        return "all systems are equal in one of the orders"
    return ""
