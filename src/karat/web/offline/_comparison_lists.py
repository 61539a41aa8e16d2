"""Lists of a comparison: its queries, with what each changes and adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import polars as pl

from karat.stats.effects import TIED
from karat.store.sql.comparisons import ComparisonRow
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.offline.stored_comparisons import axes
from karat.workflows.workspace.stored_comparisons import KeptComparison

WAYS = ("better", "same", "worse")
"""What became of a query under a measure."""


def list_of_queries(
    row: ComparisonRow,
    found: KeptComparison,
    own: pl.DataFrame,
    measure: str,
    candidate: str,
    ask: Ask,
) -> Listed:
    """A row for each query: its change under one measure, and under the others beside.

    Args:
        row: The comparison.
        found: Its numbers.
        own: Of ``found.frame`` the rows of the measure, the candidate, and perhaps a slice.
        measure: The measure of the list.
        candidate: The candidate of the list.
        ask: What is asked of the list.
    """
    measures = axes(found.comparison)[0]
    plain = ["query_id", "text", "outcome", "baseline_value", "candidate_value", "difference"]
    frame = own.select(*plain, "share", "counts")
    frame = frame.with_columns(query=pl.coalesce("text", "query_id"))
    others = [name for name in measures if name != measure]
    for name in others:
        beside = found.frame.filter(candidate=candidate, measure=name)
        beside = beside.select("query_id", pl.col("difference").alias(name))
        frame = frame.join(beside, on="query_id", how="left", maintain_order="left")
    said = {"measure": measure} if measure != measures[0] else {}
    tail = f"?{urlencode(said)}" if said else ""
    weighed = own.filter(pl.col("difference").abs() > TIED)
    ratio = weighed["share"] / weighed["difference"]
    unequal = weighed.height > 0 and float(ratio.max() or 0) > float(ratio.min() or 0) * 1.000001  # type: ignore[arg-type]

    def link(each: Mapping[str, Any]) -> str:
        return f"/comparisons/{row.id}/queries/{quote(each['query_id'], safe='')}{tail}"

    columns = [
        Column("query", "query", link=link, longest=90),
        Column("query_id", "id"),
        Column("outcome", "outcome", choices=True, vocabulary=WAYS),
        Column("counts", "counts", "flag", choices=True, shown=not own["counts"].all()),
        Column("baseline_value", "from", "number"),
        Column("candidate_value", "to", "number"),
        Column("difference", f"change, {measure}", "signed"),
        Column("share", "adds", "signed", shown=unequal),
        *(Column(name, name, "signed") for name in others),
        Column("text", "text", shown=False),
    ]
    return listed(frame, columns, ask, search=["query_id", "text"])
