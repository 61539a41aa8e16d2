"""One query in each stage of a stored run: ranks, scores and what they are made of, and times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.diagnosis.waterfall import SERVED
from karat.tables.diagnosis.results import Road
from karat.tables.diagnosis.traces import Trace
from karat.tables.workspace import RunRow
from karat.workflows.workspace.run_stages import Choice
from karat.workflows.workspace.stored_runs import file_of, trace_of
from karat.workflows.workspace.stored_views import grades_now
from karat.workflows.workspace.workspace import Workspace

DEEP = 10  # documents that are served


@dataclass(frozen=True)
class QueryStage:
    stage: str
    ranks: Mapping[str, int]  # by document
    scores: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of the scores
    latency_us: int | None = None
    parse: str | None = None  # the query as the stage understood it
    error: str | None = None


def query_stages(
    opened: Workspace, row: RunRow, stages: Sequence[Choice], query_id: str
) -> list[QueryStage]:
    """The stages of a run for one query, and what was served as the last."""
    found = [_of_run(opened, each.row, each.stage, query_id) for each in stages]
    if not stages:
        found = list(_of_trace(opened, row, query_id))
    served = _of_run(opened, row, SERVED, query_id)
    top = {doc: rank for doc, rank in served.ranks.items() if rank <= DEEP}
    return [*found, QueryStage(SERVED, top)]


def other_roads(
    opened: Workspace, query_id: str, roads: Sequence[Road], stages: Sequence[QueryStage]
) -> list[Road]:
    """What was served and is not among the relevant documents, by rank."""
    relevant = {road.doc_id for road in roads}
    grades = dict(grades_now(opened, query_id).select("doc_id", "grade").iter_rows())
    names = list(roads[0].ranks) if roads else [each.stage for each in stages if each.ranks]
    by_name = {each.stage: each.ranks for each in stages}
    served = stages[-1].ranks
    return [
        Road(doc, grades.get(doc), {n: by_name.get(n, {}).get(doc) for n in names}, None, 0.0)
        for doc in sorted(served, key=lambda doc: served[doc])
        if doc not in relevant
    ]


def roads_in(stages: Sequence[QueryStage], roads: Sequence[Road]) -> list[Road]:
    """The same documents through other stages, the last of which serves."""
    ranks = {each.stage: each.ranks for each in stages if each.ranks}
    served = stages[-1].ranks
    return [
        Road(
            road.doc_id, road.grade, {name: each.get(road.doc_id) for name, each in ranks.items()},
            None if road.doc_id in served else SERVED, 0.0,
        )
        for road in roads
    ]  # fmt: skip


def _of_run(opened: Workspace, row: RunRow, stage: str, query_id: str) -> QueryStage:
    try:
        frame = pl.scan_parquet(file_of(opened, row)).filter(query_id=query_id).collect()
    except (OSError, pl.exceptions.PolarsError):
        return QueryStage(stage, {})
    answer = frame.row(0, named=True) if frame.height else {}
    rows = frame.filter(pl.col("doc_id").is_not_null())
    return QueryStage(
        stage,
        dict(rows.select("doc_id", "rank").iter_rows()),
        dict(rows.select("doc_id", "score").iter_rows()),
        latency_us=answer.get("latency_us"),
        error=answer.get("error"),
    )


def _of_trace(opened: Workspace, row: RunRow, query_id: str) -> Iterator[QueryStage]:
    try:
        frame = pl.scan_parquet(trace_of(file_of(opened, row))).filter(query_id=query_id).collect()
    except (OSError, pl.exceptions.PolarsError):
        return
    by_stage = {each["stage"]: each for each in frame.iter_rows(named=True)}
    for stage in Trace(frame).stages:
        own: dict[str, Any] = by_stage[stage.name]
        doc_ids = own["doc_ids"] or []
        parts = zip(doc_ids, own["parts"] or [], strict=False)
        yield QueryStage(
            stage.name,
            dict(zip(doc_ids, own["ranks"] or [], strict=True)),
            dict(zip(doc_ids, own["scores"] or [], strict=False)),
            {doc: made for doc, text in parts if text and (made := json.loads(text))},
            own["latency_us"],
            own["parse"],
            own["error"],
        )
