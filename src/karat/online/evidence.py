"""Evidence: the small tables that a log reduces to, and from which every online number is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

Cut = tuple[str, ...]
"""What a log is cut by: ``day``, ``hour``, ``arm``, ``query``, ``class``, or attributes; () is all.
"""


@dataclass(frozen=True)
class Evidence:
    """What a log reduced to.

    Attributes:
        moments: For each cut a row for each of its slices and each ``Ratio``: the cut's columns
            (String, null where the log does not say), ``metric`` (a name), ``term`` (value | least
            | most), ``users`` (those with a denominator above 0), ``numerator`` and
            ``denominator`` (sums), and of these sums by user: ``mean_numerator``,
            ``mean_denominator``, ``m2_numerator``, ``m2_denominator`` (centred sums of squares)
            and ``comoment``.
        histograms: For each cut a row for each bin: the cut's columns, ``name`` of the
            distribution, ``user_bucket``, ``bin_ms`` (Int64: milliseconds, cut off behind the
            third digit that counts), ``censored`` (0 or 1), ``count`` and ``sum_us``.
        positions: For each cut a row for each position clicked: the cut's columns, ``position``,
            ``clicks``.
        counts: What was counted on the way: ``events``, ``users``, ``sessions``, ``searches``,
            ``requests``, ``clicks``, ``unattributed_carts``, ``unattributed_purchases``,
            ``users_in_several_arms``, ``derived_items`` (searches whose items are what was
            returned), ``unknown_query_ids`` (events whose query_id names no request).
    """

    moments: Mapping[Cut, pl.DataFrame]
    histograms: Mapping[Cut, pl.DataFrame]
    positions: Mapping[Cut, pl.DataFrame]
    counts: Mapping[str, int]
