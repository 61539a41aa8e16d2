"""The trace of a search: the stages of an engine, each asked alone and deeper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from karat.clients.search_function import ask
from karat.engines.search.stages import EngineStage, stages_of
from karat.errors import KaratError, UsageError
from karat.formats.own.traces import write_trace
from karat.reports.phrases.numbers import counted
from karat.tables import Queries, Run
from karat.tables.diagnosis.traces import COLUMNS, Trace, stage_rows
from karat.tables.engines import EngineConfig, EngineQuery
from karat.tables.searched import Searched
from karat.workflows.engines.live import engine_queries, manner_for, open_live
from karat.workflows.engines.search import reasons_of, run_of, shown_progress

DEEPER = 5  # documents asked of each stage by default, for one of the run
DEEPEST = 10_000
SUFFIXES = (".jsonl", ".ndjson", ".parquet", ".pq")


_Parts = dict[str, dict[str, str]]  # of scores, as JSON, by query and document


@dataclass(frozen=True)
class _Asking:
    ids: Sequence[str]
    queries: Sequence[EngineQuery]
    calls: Mapping[str, int]
    progress: bool

    def ask(self, config: EngineConfig, name: str, size: int) -> tuple[Run, _Parts]:
        """What a stage returns, to a depth of ``size``, and what its scores are made of."""
        parts: _Parts = {}
        with (
            open_live(config, depth=size, explain=True) as engine,
            shown_progress(len(self.ids), shown=self.progress) as tick,
        ):
            engine.prepare([query.text for query in self.queries])

            def call(place: int) -> Any:
                found = engine.call(self.queries[place])
                if config.kind != "python":
                    explained = {hit["id"]: hit["parts"] for hit in found if hit["parts"]}
                    parts[self.ids[place]] = {
                        doc_id: json.dumps(made) for doc_id, made in explained.items()
                    }
                return found

            manner = manner_for(config, **self.calls)
            replies = ask(call, range(len(self.ids)), manner, tick=tick)
        reasons = reasons_of(self.ids, replies)
        if sum(reason.queries for reason in reasons) == len(replies):
            queries = counted(len(replies), "query", "queries")
            raise KaratError(
                f"the stage {name} of {config.name} answered none of {queries}, and no trace was "
                f"written: {reasons[0].error}",
                fix="ask it by itself: check its request",
            )
        return run_of(self.ids, replies, name, {}).to_depth(size), parts


def check_trace(config: EngineConfig, file: str | Path, depth: int | None) -> None:
    """Refuse what cannot be traced, before any query is sent."""
    if Path(file).suffix.lower() not in SUFFIXES:
        raise UsageError(f"the trace {file} is neither .jsonl nor .parquet", fix="trace.parquet")
    if depth is not None and not 1 <= depth <= DEEPEST:
        raise UsageError(f"the depth of a trace must be from 1 to {DEEPEST:,}, got {depth}")
    if config.kind == "python" and not config.stages:
        raise UsageError(
            f"{config.where}: stages of a Python function are not known",
            fix='declare them, stages = { bm25 = "module:function" }, or use karat.trace in it',
        )


def trace_search(
    queries: Queries,
    config: EngineConfig,
    found: Searched,
    file: str | Path,
    *,
    depth: int | None = None,
    progress: bool = True,
    **calls: int,
) -> Searched:
    """Ask the stages of an engine one by one, and write the trace of its run."""
    check_trace(config, file, depth)
    served = int(found.run.about.get("depth", config.depth))
    size = min(DEEPEST, served * DEEPER) if depth is None else depth
    stages, kind = stages_of(config, size)
    ids = queries.frame["query_id"].to_list()
    asking = _Asking(ids, engine_queries(queries), calls, progress)
    frames = [_rows(asking, stage, size) for stage in stages]
    if kind is not None:
        taken = {parent for stage in stages for parent in stage.parents}
        ends = [stage.name for stage in stages if stage.name not in taken]
        rows = stage_rows(config.name, found.run, kind, ends)
        if config.kind != "python":
            rows = _with_parts(rows, asking.ask(config, config.name, served)[1])
        frames.append(rows)
    write_trace(Trace(pl.concat(frames), str(file)), file)
    names = ", ".join(frame["stage"][0] for frame in frames)
    note = f"{file} has the trace: {names}; each asked alone, for {size:,} documents"
    return replace(found, trace=str(file), notes=[*found.notes, note])


def _rows(asking: _Asking, stage: EngineStage, size: int) -> pl.DataFrame:
    run, parts = asking.ask(stage.config, stage.name, size)
    return _with_parts(stage_rows(stage.name, run, stage.kind, list(stage.parents)), parts)


def _with_parts(rows: pl.DataFrame, parts: _Parts) -> pl.DataFrame:
    """Rows of a stage with what the scores of their documents are made of."""
    if not any(parts.values()):
        return rows
    lists = []
    for query_id, doc_ids in rows.select("query_id", "doc_ids").iter_rows():
        own = parts.get(query_id)
        lists.append([own.get(doc_id) for doc_id in doc_ids] if own else None)
    return rows.with_columns(parts=pl.Series(lists, dtype=COLUMNS["parts"]))
