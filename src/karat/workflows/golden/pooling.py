"""Pooling: documents to judge, chosen from what runs returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats import read_pairs, read_run
from karat.golden import pooling
from karat.golden.aggregation import grades
from karat.store.sql import imports, judgments, pairs, queries
from karat.tables import Pairs, Run
from karat.tables.engines import EngineConfig
from karat.tables.judgments import Judgments
from karat.workflows.golden.engine_documents import (
    declared_engines,
    fetch_documents,
    fetched_notes,
)
from karat.workflows.workspace.known_queries import following_all
from karat.workflows.workspace.stored_runs import keep_in
from karat.workflows.workspace.workspace import Workspace

Method = Literal["depth", "rr", "rbp", "mtf"]
METHODS: tuple[Method, ...] = ("depth", "rr", "rbp", "mtf")


@dataclass(frozen=True)
class Pooled:
    chosen: int  # number of pairs chosen
    added: int  # number of these that are new in the queue
    queries: int  # number of queries of the chosen pairs
    lacking: list[str]  # queries of the golden set for which no run returned anything
    waiting: int  # number of judgments that the whole queue needs
    notes: list[str]  # notes on the runs and the queue


def pool(
    opened: Workspace,
    given: Sequence[str | Path | Run],
    *,
    now: int,
    method: Method = "depth",
    k: int = 10,
    p: float = 0.8,
    budget: int | None = None,
    per_query: int | None = None,
    bands: int = 1,
    engines: Sequence[EngineConfig] | None = None,
) -> Pooled:
    """Choose unjudged pairs from runs and put them into the queue.

    Documents that the store lacks come from ``engines``; if None, from the declared ones that
    answered the runs.
    """
    read = [run if isinstance(run, Run) else read_run(run) for run in given]
    engines = declared_engines(opened, read) if engines is None else engines
    golden = opened.golden
    with opened.store.read() as connection:
        ids = queries.frame(connection, golden.id)["query_id"].to_list()
        known = judgments.current(connection, golden.id)
        aliases = imports.aliases(connection, golden.id)
    if not ids:
        fix = "choose queries from a log, or import them"
        raise UsageError("the golden set has no queries yet", fix=fix)
    query_ids = set(ids)
    systems, run_notes = following_all(read, query_ids, aliases, "the golden set")
    answered = {query for run in systems for query in run.query_ids}
    if systems and not answered & query_ids:
        raise InputError(
            f"none of its queries is in the golden set, which has {', '.join(ids[:3])}, …",
            file=systems[0].source,
            fix="ask the search with the query ids of an export of the golden set",
        )
    if method == "mtf" and (budget is not None or per_query is not None or bands != 1):
        raise UsageError(
            "move to front takes one document per query: it has no budget and no bands",
            fix="pool again when they are judged",
        )
    limit = pooling.Budget(total=budget, per_query=per_query)
    pooled = _pooled(systems, known, ids, method, k, p, golden.salt, budget=limit, bands=bands)
    with opened.store.begin() as connection:
        run_notes = [*keep_in(connection, opened, read, now=now).notes, *run_notes]
    silent = [query for query in ids if query not in answered]
    return _queued(opened, pooled.frame, silent, run_notes, now, engines)


def _pooled(
    systems: Sequence[Run],
    known: Judgments,
    ids: list[str],
    method: Method,
    k: int,
    p: float,
    salt: str,
    **limits: Any,  # `budget` and `bands`
) -> Pairs:
    if method == "mtf":
        graded: dict[str, dict[str, float | None]] = {}
        for query, doc in known.frame.select("query_id", "doc_id").iter_rows():
            graded.setdefault(query, {})[doc] = None  # judged; None if it could not be graded
        for query, doc, grade in grades(known).select("query_id", "doc_id", "grade").iter_rows():
            graded[query][doc] = grade
        return pooling.move_to_front(systems, graded, depth=k, salt=salt, queries=ids)
    limits |= {"queries": ids, "judged": known.frame.select("query_id", "doc_id").unique()}
    if method == "depth":
        return pooling.depth_pool(systems, k, **limits)
    if method == "rr":
        return pooling.reciprocal_rank_pool(systems, k, **limits)
    return pooling.rbp_pool(systems, k, p=p, **limits)


def enqueue(opened: Workspace, path: str | Path | Pairs, *, now: int) -> Pooled:
    """Put the pairs of a file into the queue, such as ``karat compare --judge-file`` writes.

    They are judged in the order of the file. Pairs with a ``gold_grade`` test the raters. The
    column ``chosen_by`` says why they were chosen; without it, the name of the file does. Documents
    that the store lacks come from the declared engines.
    """
    engines = declared_engines(opened)
    listed = path if isinstance(path, Pairs) else read_pairs(path)
    names = [name for name in ("gold_grade", "chosen_by") if name in listed.frame.columns]
    keys = listed.frame.select("query_id", "doc_id", *names).unique(
        ["query_id", "doc_id"], keep="first", maintain_order=True
    )
    if "chosen_by" not in names:
        keys = keys.with_columns(chosen_by=pl.lit(None, pl.String))
    ranked = keys.with_columns(
        pl.col("chosen_by").cast(pl.String, strict=False).fill_null(listed.source),
        priority=pl.int_range(1, pl.len() + 1, dtype=pl.Int64),
    )
    return _queued(opened, ranked, [], [], now, engines)


def _queued(
    opened: Workspace,
    frame: pl.DataFrame,
    silent: list[str],
    notes: list[str],
    now: int,
    engines: Sequence[EngineConfig],
) -> Pooled:
    columns = ("query_id", "doc_id", "priority", "chosen_by", "chance", "gold_grade")
    chosen = frame.select(name for name in columns if name in frame.columns)
    golden = opened.golden
    with opened.store.begin() as connection:
        put = pairs.put(connection, golden.id, chosen, golden.raters, now)
        waiting = int(pairs.frame(connection, golden.id)["open"].sum())
    if put.golds:
        were = "queued pair has" if put.golds == 1 else "queued pairs have"
        notes = [*notes, f"{put.golds:,} {were} a new gold grade"]
    if engines:
        notes = [*notes, *fetched_notes(fetch_documents(opened, engines, now=now))]
    queries = chosen["query_id"].n_unique()
    return Pooled(chosen.height, put.added, queries, silent, waiting, notes)
