"""Pool: what is to be judged, chosen from what systems returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from karat.errors import Advice, InputError, UsageError
from karat.formats import read_pairs, read_run
from karat.golden import pooling
from karat.golden.aggregation import grades
from karat.store.sql import imports, judgments, pairs, queries
from karat.tables import Pairs, Run
from karat.workflows.workspace.known_queries import following, lacking
from karat.workflows.workspace.stored_runs import keep_in
from karat.workflows.workspace.workspace import Workspace

Method = Literal["depth", "rr", "rbp", "mtf"]
METHODS: tuple[Method, ...] = ("depth", "rr", "rbp", "mtf")


@dataclass(frozen=True)
class Pooled:
    """What became of a pool.

    Attributes:
        chosen: Pairs that were chosen.
        added: Of these, new in the queue.
        queries: Queries they are of.
        lacking: Queries of the golden set for which no run returned anything.
        waiting: Judgments that the whole queue now waits for.
        notes: What a person should know of it, in sentences.
    """

    chosen: int
    added: int
    queries: int
    lacking: list[str]
    waiting: int
    notes: list[str]


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
) -> Pooled:
    """Choose pairs from runs and put them into the queue; pairs that were judged stay out.

    Args:
        opened: The workspace.
        given: Runs, which the workspace keeps as they are. An id of a query that the golden set
            lacks is followed where an import told what it is called here.
        now: Microseconds UTC.
        method: ``depth``: the top k of each · ``rr``: the best k by reciprocal rank fusion ·
            ``rbp``: the best k by what they can add to RBP · ``mtf``: move to front, the next
            document of each query, from the run that has lately done best.
        k: Depth, or documents of each query.
        p: Persistence of RBP.
        budget: The most pairs in all.
        per_query: The most pairs of a query.
        bands: Parts of each query's pool that are judged one after the other.

    Raises:
        UsageError: no runs, or a number out of range.
        InputError: a run cannot be read, or none of its queries is in the golden set.
    """
    read = [run if isinstance(run, Run) else read_run(run) for run in given]
    golden = opened.golden
    with opened.store.read() as connection:
        ids = queries.frame(connection, golden.id)["query_id"].to_list()
        known = judgments.current(connection, golden.id)
        aliases = imports.aliases(connection, golden.id)
    if not ids:
        fix = Advice("karat golden choose LOG", page="choose queries from a log, or import them")
        raise UsageError("the golden set has no queries yet", fix=fix)
    held, systems, said = set(ids), [], []
    for run in read:
        system, notes = following(run, held, aliases)
        systems.append(system)
        said += [*notes, *lacking(system, held)]
    answered = {query for run in systems for query in run.query_ids}
    if systems and not answered & held:
        raise InputError(
            f"none of its queries is in the golden set, which has {', '.join(ids[:3])}, …",
            file=systems[0].source,
            fix=Advice(
                "ask the search with the query ids that karat golden export FOLDER writes",
                page="ask the search with the query ids of an export of the golden set",
            ),
        )
    common: dict[str, Any] = {"queries": ids}
    if method == "mtf":
        if budget is not None or per_query is not None or bands != 1:
            raise UsageError(
                "move to front gives one document of each query, and takes no budget and no bands",
                fix="call it again when they are judged",
            )
        so_far: dict[str, dict[str, float | None]] = {}
        for query, doc in known.frame.select("query_id", "doc_id").iter_rows():
            so_far.setdefault(query, {})[doc] = None  # judged, and perhaps nobody could
        for query, doc, grade in grades(known).select("query_id", "doc_id", "grade").iter_rows():
            so_far[query][doc] = grade
        found = pooling.move_to_front(systems, so_far, depth=k, salt=golden.salt, **common)
    else:
        limit = pooling.Budget(total=budget, per_query=per_query)
        there = known.frame.select("query_id", "doc_id").unique()
        common |= {"judged": there, "budget": limit, "bands": bands}
        if method == "depth":
            found = pooling.depth_pool(systems, k, **common)
        elif method == "rr":
            found = pooling.reciprocal_rank_pool(systems, k, **common)
        else:
            found = pooling.rbp_pool(systems, k, p=p, **common)
    with opened.store.begin() as connection:
        said = [*keep_in(connection, opened, read, now=now).notes, *said]
    silent = [query for query in ids if query not in answered]
    return _queued(opened, found.frame, silent, said, now)


def enqueue(opened: Workspace, path: str | Path | Pairs, *, now: int) -> Pooled:
    """Put pairs of a file into the queue, such as ``karat compare --judge-file`` writes.

    Their order in the file is the order in which they are judged. A column ``gold_grade`` names
    pairs whose grade is known: they test raters.

    Raises:
        InputError: the file cannot be read, or a query is not in the golden set.
    """
    wanted = path if isinstance(path, Pairs) else read_pairs(path)
    names = [name for name in ("gold_grade",) if name in wanted.frame.columns]
    keys = wanted.frame.select("query_id", "doc_id", *names).unique(
        ["query_id", "doc_id"], keep="first", maintain_order=True
    )
    ranked = keys.with_columns(
        priority=pl.int_range(1, pl.len() + 1, dtype=pl.Int64), chosen_by=pl.lit(wanted.source)
    )
    return _queued(opened, ranked, [], [], now)


def _queued(
    opened: Workspace, frame: pl.DataFrame, silent: list[str], notes: list[str], now: int
) -> Pooled:
    kept = ("query_id", "doc_id", "priority", "chosen_by", "chance", "gold_grade")
    chosen = frame.select(name for name in kept if name in frame.columns)
    golden = opened.golden
    with opened.store.begin() as connection:
        put = pairs.put(connection, golden.id, chosen, golden.raters, now)
        waiting = int(pairs.frame(connection, golden.id)["open"].sum())
    if put.golds:
        were = "pair that was queued has" if put.golds == 1 else "pairs that were queued have"
        notes = [*notes, f"{put.golds:,} {were} another gold grade now"]
    queries = chosen["query_id"].n_unique()
    return Pooled(chosen.height, put.added, queries, silent, waiting, notes)
