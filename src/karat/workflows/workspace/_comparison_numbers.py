"""The numbers of a comparison as they are kept: what ``kept.json`` says, and its tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from karat.diagnosis.document_slices import of_documents
from karat.errors import UsageError
from karat.measures import DEFAULTS, lower_is_better, parse_all
from karat.measures.difference import EXACT
from karat.stats.effects import TIED
from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.tables.comparison import Comparison
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.evaluation_plan import settle
from karat.workflows.workspace.stored_inputs import (
    heads,
    judged,
    memberships,
    read_kept,
    unanswered,
)
from karat.workflows.workspace.stored_views import content_of, drawn
from karat.workflows.workspace.workspace import Workspace

JUDGE_NEXT = 50
"""Pairs whose grades say most about the sign, as many as are kept."""
QUERIES: dict[str, Any] = {
    "candidate": pl.String,
    "measure": pl.String,
    "query_id": pl.String,
    "text": pl.String,
    "outcome": pl.String,
    "baseline_value": pl.Float64,
    "candidate_value": pl.Float64,
    "difference": pl.Float64,
    "share": pl.Float64,
    "slices": pl.List(pl.String),
    "counts": pl.Boolean,
}
"""What is kept of each query; ``counts`` is whether it does in numbers over all of them."""
OF_DIFFERENCES = [name for name in QUERIES if name not in {"outcome", "slices", "counts"}]
"""Of these, what a ``QueryDifference`` holds likewise."""


@dataclass(frozen=True)
class Computed:
    """What came out.

    Attributes:
        head: The numbers, as JSON can hold them.
        tables: ``queries``, ``states``, ``grades``, ``heads`` and ``only_found``.
        newest: Number of the newest judgment there was.
    """

    head: Mapping[str, Any]
    tables: Mapping[str, pl.DataFrame]
    newest: int


def computed(opened: Workspace, row: ComparisonRow, wanted: Sequence[RunRow]) -> Computed:
    """Compute a comparison.

    Args:
        opened: The workspace.
        row: What was asked.
        wanted: Its runs, the baseline first.

    Raises:
        UsageError: a run is not there any more, or there is no such edition, measure or attribute.
        InputError: nothing is judged yet, or a run cannot be read.
    """
    settings = row.settings
    by = list(settings["by"])
    given = judged(opened, settings["edition"], with_documents=of_documents(by))
    read = [read_kept(opened, each) for each in wanted]
    if len(read) != len(row.runs):
        raise UsageError("a run of the comparison is not in the workspace any more")
    shared: dict[str, Any] = {"queries": given.queries, "documents": given.documents}
    first = parse_all(settings["measures"] or DEFAULTS)[0]  # of others no single pair is known
    found = compare(
        given.qrels,
        read[0],
        read[1:],
        settings["measures"] or None,
        by=by,
        margin=settings["margin"],
        judge_next=JUDGE_NEXT if first.entry.symbol in EXACT and first.entry.ours else 0,
        **shared,
    )
    names = list(dict.fromkeys(each.measure for each in found.differences))
    called = [found.baseline, *dict.fromkeys(each.candidate for each in found.differences)]
    read = [run.named(name) for run, name in zip(read, called, strict=True)]
    results = evaluate(given.qrels, read, names, per_query=True, **shared)
    content = content_of(results, found, called, found.settings.rel, opened.golden.scale)
    whole = {name: value for name, value in found.to_dict().items() if name != "queries"}
    only = pl.DataFrame([asdict(each) for each in found.only_found], infer_schema_length=None)
    head = {
        "comparison": whole | {"only_found": []},
        "results": [asdict(each) for each in results.results],
        "runs": called,
        "drawn": drawn(content).to_dict(),
        "scale": list(opened.golden.scale),
        "clock": given.clock,
    }
    return Computed(
        head,
        {
            "queries": _queries(
                found, settle(given.qrels, read, names, **shared).rules.zero_weight
            ),
            "states": unanswered(results.per_query, names[0]),
            "grades": given.qrels.frame.select("query_id", "doc_id", "grade").sort("query_id"),
            "heads": heads(read),
            "only_found": only,
        },
        given.newest,
    )


def _queries(found: Comparison, zero_weight: Collection[str]) -> pl.DataFrame:
    """``QUERIES``, the largest contribution of each candidate and measure first.

    Args:
        found: The comparison; its queries of weight 0 stand after all others.
        zero_weight: Queries of weight 0.
    """
    rows = []
    for each in found.queries:
        gain = each.difference * (-1 if lower_is_better(each.measure) else 1)
        outcome = "better" if gain > TIED else "worse" if gain < -TIED else "same"
        held = {name: getattr(each, name) for name in OF_DIFFERENCES}
        own = {"outcome": outcome, "slices": memberships(each.slices)}
        rows.append(held | own | {"counts": each.query_id not in zero_weight})
    frame = pl.DataFrame(rows, schema=QUERIES)
    return frame.sort(pl.col("share").abs(), descending=True, maintain_order=True)
