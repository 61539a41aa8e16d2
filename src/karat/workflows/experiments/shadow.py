"""Shadow traffic: compare what a baseline and a candidate answered to the same requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from karat import formats
from karat.diagnosis.slices import sliceable, slices_of_queries
from karat.errors import InputError, UsageError
from karat.experiments.shadow import analyze, limits_text, queries_of
from karat.formats.own.shadow_log import is_shadow_log, read_limits, read_shadow_log
from karat.golden.traffic import folded
from karat.measures.evidence import Mask
from karat.reports.phrases.numbers import counted
from karat.tables import Qrels, Queries, Run
from karat.tables.comparison import Comparison
from karat.tables.documents import Pairs
from karat.tables.experiments.shadow import (
    COLD,
    REQUESTS,
    SIDES,
    Observed,
    ShadowLimits,
    ShadowResult,
    Side,
)
from karat.workflows.offline.compare import compare
from karat.workflows.workspace.fingerprints import fingerprint


def compare_shadow(
    files: Sequence[str | Path],
    *,
    k: int = 10,
    queries: Queries | None = None,
    limits: str | Path | None = None,
    **how: Any,
) -> ShadowResult:
    """Whether a candidate passes: a shadow log, or runs of baseline, candidate and baseline again.

    Args:
        files: One shadow log, or two or three runs.
        k: Depth of the top.
        queries: As in ``compare_observed``.
        limits: A TOML file with ``[shadow]``; the defaults if None.
        how: Other arguments of ``compare_observed``.

    Raises:
        UsageError: another number of files, or an unknown attribute.
        InputError: a file that cannot be read, or that is neither a shadow log nor a run.
    """
    if k < 1:
        raise UsageError(f"k is {k}, not a depth of 1 or more", fix="-k 10")
    observed, runs = _read(files, queries)
    read = None if limits is None else read_limits(limits)
    return compare_observed(observed, runs, k=k, queries=queries, limits=read, **how)


def compare_observed(
    observed: Observed,
    runs: Sequence[Run] = (),
    *,
    k: int = 10,
    qrels: Qrels | None = None,
    queries: Queries | None = None,
    by: Sequence[str] = (),
    limits: ShadowLimits | None = None,
    explained: str = "",
    judge_next: int = 0,
    most: int = 20,
) -> ShadowResult:
    """As ``compare_shadow``, of requests that are in memory; ``runs`` are those of files.

    Args:
        qrels: Judgments, for the difference of nDCG and to leave judged documents out.
        queries: Texts and attributes, to find the ids of a log's queries and to slice.
        by: Attributes to slice by.
        explained: Why answers differ as much as they do.
        judge_next: Number of unjudged documents of changed queries to list.
        most: Number of changed queries to list.
    """
    observed = _with_ids(observed, queries)
    chosen = ShadowLimits() if limits is None else limits
    judged = () if qrels is None else qrels.rows.select("query_id", "doc_id").iter_rows()
    found = analyze(
        observed,
        chosen,
        k=k,
        slices=[*_slices(observed, queries, by)],
        explained=explained,
        judged=set(judged),
        most=most,
        judge_next=judge_next,
    )
    notes = [*found.notes]
    if limits is None:
        notes.append(f"the default limits: {limits_text(chosen)}")
    comparison = None
    if qrels is not None:
        comparison = _quality(observed, runs, qrels, queries, k, by, notes)
    return replace(
        found,
        quality=None if comparison is None else comparison.differences[0],
        quality_slices=[] if comparison is None else comparison.slices,
        hashes=found.hashes | {"judgments": fingerprint(qrels)},
        runs={side: fingerprint(run) for side, run in zip(SIDES[:2], runs, strict=False)},
        notes=notes,
    )


def to_judge(found: ShadowResult, known: Queries | None = None) -> Pairs:
    """The pairs to judge, for the queue of a golden set that has the queries ``known``."""
    ids = None if known is None else set(known.frame["query_id"].to_list())
    rows = [
        (pair.query_id, pair.doc_id, "shadow")
        for pair in found.judge_next
        if pair.query_id is not None and (ids is None or pair.query_id in ids)
    ]
    schema = {"query_id": pl.String, "doc_id": pl.String, "chosen_by": pl.String}
    return Pairs(pl.DataFrame(rows, schema=schema, orient="row"), "shadow")


def _read(files: Sequence[str | Path], queries: Queries | None) -> tuple[Observed, Sequence[Run]]:
    if len(files) == 1:
        if not is_shadow_log(files[0]):
            raise InputError(
                "one file is a shadow log, and this is not one",
                file=str(files[0]),
                fix="name two runs, or a log that karat shadow run or karat.Shadow wrote",
            )
        return read_shadow_log(files[0]), ()
    if len(files) not in {2, 3}:
        raise UsageError(
            f"expected one shadow log, or two or three runs; got {len(files)} files",
            fix="karat shadow compare BASELINE CANDIDATE [BASELINE AGAIN]",
        )
    runs = [formats.read_run(path) for path in files]
    return of_runs(runs, queries), runs


def of_runs(runs: Sequence[Run], queries: Queries | None = None) -> Observed:
    """Runs of baseline, candidate, and perhaps the baseline again, as requests: one a query."""
    asked = [run.answers["query_id"].to_list() for run in runs]
    ids = list(dict.fromkeys([*asked[0], *asked[1]]))
    texts = {} if queries is None else queries.texts()
    requests = pl.DataFrame(
        {
            "id": ids,
            "query": [texts.get(each) or each for each in ids],
            "query_id": ids,
            "phase": ["warm"] * len(ids),
            "late_us": [0] * len(ids),
        },
        schema=REQUESTS,
    )
    sides: Sequence[Side] = SIDES[: len(runs)]
    by_side = dict(zip(sides, runs, strict=True))
    notes = []
    for run, other in ((0, 1), (1, 0)):
        only = len(set(asked[run]) - set(asked[other]))
        if only:
            notes.append(f"{counted(only, 'query', 'queries')} only in {runs[run].name}")
    return Observed(
        requests, by_side, {side: run.about for side, run in by_side.items()},
        {side: run.name for side, run in by_side.items()}, len(ids), 0, notes,
    )  # fmt: skip


def _with_ids(observed: Observed, queries: Queries | None) -> Observed:
    """The requests with the ids of the queries whose text they have."""
    if queries is None or "text" not in queries.frame.columns:
        return observed
    rows = queries.frame.select("query_id", "text").drop_nulls().rows()
    ids = dict(zip(folded([text for _, text in rows]), (query for query, _ in rows), strict=True))
    texts = observed.requests["query"].unique().to_list()
    by_text = dict(zip(texts, map(ids.get, folded(texts)), strict=True))
    found = pl.Series([by_text[text] for text in observed.requests["query"]], dtype=pl.String)
    requests = observed.requests.with_columns(query_id=pl.coalesce("query_id", found))
    return replace(observed, requests=requests)


def _slices(
    observed: Observed, queries: Queries | None, by: Sequence[str]
) -> Iterator[tuple[str, str, Mask]]:
    """The slices of the queries of the requests, for which no judgments are needed."""
    if not by:
        return
    frame = queries_of(observed)
    keys = frame.select(
        pl.int_range(pl.len()).cast(pl.String).alias("query_id"),
        text="query",
        own="query_id",
        frequency="requests",
    )
    if queries is not None:
        more = queries.frame.drop("text", "frequency", strict=False).rename({"query_id": "own"})
        keys = keys.join(more, on="own", how="left", maintain_order="left")
    table = Queries(keys.drop("own"))
    for attribute in dict.fromkeys(by):
        for value, chosen in slices_of_queries(table, attribute):
            yield attribute, value, chosen


def _quality(
    observed: Observed,
    runs: Sequence[Run],
    qrels: Qrels,
    queries: Queries | None,
    k: int,
    by: Sequence[str],
    notes: list[str],
) -> Comparison | None:
    """The difference of nDCG on the judged queries; None with a note if no query is judged."""
    pair = list(runs[:2]) or _by_query(observed)
    asked = [set(run.answers["query_id"].to_list()) for run in pair]
    both = asked[0] & asked[1] & set(qrels.query_ids)
    if not both:
        notes.append("none of the queries is judged, so the change of nDCG is unknown")
        return None
    if pair[0].name == pair[1].name:
        pair = [pair[0].named("baseline"), pair[1].named("candidate")]
    known = [name for name in by if sliceable(name, queries, None)]
    judged = qrels.only(both)
    return compare(judged, pair[0], pair[1], f"nDCG@{k}", queries=queries, by=known)


def _by_query(observed: Observed) -> list[Run]:
    """Both sides' answers to the first request of each query that has an id, cold ones left out."""
    first = (
        observed.requests.filter((pl.col("phase") != COLD) & pl.col("query_id").is_not_null())
        .group_by("query_id", maintain_order=True)
        .agg(pl.col("id").first())
    )
    ids = dict(zip(first["id"].to_list(), first["query_id"].to_list(), strict=True))
    runs = []
    for side in SIDES[:2]:
        run = observed.runs[side].only(ids)
        frames = (
            frame.with_columns(pl.col("query_id").replace_strict(ids, return_dtype=pl.String))
            for frame in (run.frame().select("query_id", "doc_id", "score"), run.answers)
        )
        rows, answers = frames
        runs.append(Run.from_batches(observed.names[side], [rows], answers=answers))
    return runs
