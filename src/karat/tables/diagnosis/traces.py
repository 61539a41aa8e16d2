"""Traces: what each stage of a search pipeline returned for each query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal, get_args

import polars as pl

from karat.errors import InputError, check_known
from karat.tables.incoming import refuse_rows
from karat.tables.run import Run

StageKind = Literal["rewrite", "retrieve", "filter", "fuse", "rerank", "serve"]
KINDS: tuple[StageKind, ...] = get_args(StageKind)

COLUMNS: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "stage": pl.String(),
    "kind": pl.String(),
    "parents": pl.List(pl.String()),
    "state": pl.String(),
    "started_us": pl.Int64(),
    "latency_us": pl.Int64(),
    "parameters": pl.String(),
    "parse": pl.String(),
    "error": pl.String(),
    "doc_ids": pl.List(pl.String()),
    "ranks": pl.List(pl.UInt32()),
    "scores": pl.List(pl.Float64()),
    "parts": pl.List(pl.String()),
}
"""Columns of a trace: one row for each query and stage, its candidates in lists of equal length.

``parameters`` is a JSON object, ``parts`` holds a JSON object for each candidate; ``scores`` and
``parts`` are null where the stage has none.
"""

_SAME = 0.99  # share of a stage's documents that come from the stages before it


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the pipeline."""

    name: str  # its name
    kind: StageKind  # what it does
    parents: tuple[str, ...]  # the stages whose output it takes; none for a retriever
    depth: int  # the longest list that it returned


class Trace:
    """The stages of a search pipeline, query by query.

    Args:
        frame: ``COLUMNS``; the candidates of each stage by rank, from 1.
        source: Name of the trace in error messages.

    Raises:
        InputError: an unknown kind, a duplicate stage or document, an unknown parent, or
            stages in a circle.
    """

    def __init__(self, frame: pl.DataFrame, source: str = "trace") -> None:
        self.source = source
        self.frame = _checked(frame.select(list(COLUMNS)).cast(COLUMNS), source)  # type: ignore[arg-type]

    @cached_property
    def query_ids(self) -> list[str]:
        """The traced queries, in order of first appearance."""
        return self.frame["query_id"].unique(maintain_order=True).to_list()

    @cached_property
    def stages(self) -> list[Stage]:
        """The stages, each after its parents; the union over the queries."""
        by_stage = self.frame.group_by("stage", maintain_order=True).agg(
            pl.col("kind").first(),
            pl.col("parents").explode().drop_nulls().unique(maintain_order=True),
            pl.col("doc_ids").list.len().max().alias("depth"),
        )
        rows = {
            name: (kind, parents, depth or 0) for name, kind, parents, depth in by_stage.iter_rows()
        }
        for name, (_, parents, _) in rows.items():
            for parent in parents:
                if parent not in rows:
                    raise InputError(
                        f"stage {name} has the parent {parent!r}, which is not a stage",
                        file=self.source,
                        fix=f"one of {', '.join(rows)}",
                    )
        graph = TopologicalSorter({name: parents for name, (_, parents, _) in rows.items()})
        try:
            order = list(graph.static_order())
        except CycleError as error:
            circle = " → ".join(error.args[1])
            raise InputError(f"the stages {circle} are in a circle", file=self.source) from None
        place = {name: at for at, name in enumerate(rows)}
        level: dict[str, int] = {}
        for name in order:
            level[name] = 1 + max((level[parent] for parent in rows[name][1]), default=-1)
        order.sort(key=lambda name: (level[name], place[name]))
        return [Stage(n, rows[n][0], tuple(rows[n][1]), rows[n][2]) for n in order]

    def stage(self, name: str) -> Stage:
        """One of them; raises UsageError with the nearest name if there is none."""
        by_name = {stage.name: stage for stage in self.stages}
        check_known(name, by_name, f"the trace has no stage {name!r}", "{}")
        return by_name[name]

    def candidates(
        self, name: str, query_ids: Collection[str] | None = None, most: int | None = None
    ) -> pl.DataFrame:
        """What a stage returned: ``query_id``, ``doc_id``, ``rank``, ``score`` (null for none).

        Args:
            name: The stage.
            query_ids: Only of these queries; of all if None.
            most: Only ranks up to this; all if None.
        """
        rows = self.frame.filter(pl.col("stage") == name, pl.col("doc_ids").list.len() > 0)
        if query_ids is not None:
            rows = rows.filter(pl.col("query_id").is_in(list(query_ids)))
        nothing = pl.lit(None, pl.Float64).repeat_by(pl.col("doc_ids").list.len())
        scores = pl.when(pl.col("scores").is_null()).then(nothing).otherwise("scores")
        lists = rows.select("query_id", doc_id="doc_ids", rank="ranks", score=scores)
        if most is not None:  # there are at most as many documents as ranks
            lists = lists.with_columns(pl.col("doc_id", "rank", "score").list.head(most))
        found = lists.explode("doc_id", "rank", "score")
        return found if most is None else found.filter(pl.col("rank") <= most)

    def ranks(self, name: str, pairs: pl.DataFrame) -> pl.Series:
        """The rank of each pair of ``query_id`` and ``doc_id`` in a stage; 0 if it is not there."""
        rows = self.frame.filter(pl.col("stage") == name, pl.col("doc_ids").list.len() > 0)
        # By a hash of both ids: comparing the texts of millions of pairs takes ten times as long.
        every = (
            rows.select(pl.col("query_id").hash(1), doc_id="doc_ids", rank="ranks")
            .explode("doc_id", "rank")
            .select("rank", key=pl.col("query_id") ^ pl.col("doc_id").hash(2))
        )
        wanted = pairs.select(key=pl.col("query_id").hash(1) ^ pl.col("doc_id").hash(2))
        there = every.filter(pl.col("key").is_in(wanted["key"].implode()))
        found = wanted.join(there, on="key", how="left", maintain_order="left")
        return found["rank"].fill_null(0)

    def run(self, name: str) -> Run:
        """What a stage returned, as a run, without scores by rank."""
        rows = self.candidates(name)
        if rows["score"].null_count():
            rows = rows.with_columns(score=-pl.col("rank").cast(pl.Float64))
        asked = self.frame.filter(pl.col("stage") == name).select("query_id", "state")
        answers = asked.filter(pl.col("state") != "ok")
        return Run.from_batches(name, [rows], answers=answers, source=f"{self.source}, {name}")

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return f"<Trace {self.source}: {len(self.stages)} stages of {len(self.query_ids)} queries>"


def _checked(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """The frame with the states of its stages; raises InputError as ``Trace`` does."""

    def refuse(wrong: pl.Expr, what: str, fix: str | None = None) -> None:
        bad = frame.select(wrong.fill_null(value=False)).to_series()
        refuse_rows(frame, bad, what, source, fix)

    for name in ("query_id", "stage"):
        refuse(pl.col(name).is_null() | (pl.col(name) == ""), f"a stage without {name}")
    refuse(
        ~pl.col("kind").is_in(KINDS) | pl.col("kind").is_null(),
        "unknown kind {kind!r} of a stage",
        f"one of {', '.join(KINDS)}",
    )
    refuse(pl.struct("query_id", "stage").is_duplicated(), "the stage {stage} appears twice")
    kinds = frame.group_by("stage").agg(pl.col("kind").n_unique()).filter(pl.col("kind") > 1)
    refuse(pl.col("stage").is_in(kinds["stage"].implode()), "stage {stage} has several kinds")
    frame = frame.with_columns(
        state=pl.when(pl.col("state").is_not_null())
        .then("state")
        .when(pl.col("error").is_not_null())
        .then(pl.lit("failed"))
        .when((pl.col("doc_ids").list.len() == 0) & (pl.col("kind") != "rewrite"))
        .then(pl.lit("empty"))
        .otherwise(pl.lit("ok"))
    )
    known = pl.col("state").is_in(["ok", "empty", "failed"])
    refuse(~known, "state {state!r} of a stage", "ok, empty or failed")
    size = pl.col("doc_ids").list.len()
    refuse(
        (pl.col("ranks").list.len() != size) | (pl.col("doc_ids").list.n_unique() != size),
        "stage {stage} returns a document twice",
    )
    refuse(
        (pl.col("ranks").list.diff().list.min() < 1) | (pl.col("ranks").list.min() < 1),
        "ranks of stage {stage} do not ascend from 1",
        "list the documents of a stage by rank",
    )
    return frame


def from_runs(runs: Mapping[str, Run], kinds: Mapping[str, StageKind]) -> Trace:
    """The trace of a pipeline of which each stage was written as a run.

    A stage whose documents all come from the stages before it takes these; any other one is a
    retriever. Given kinds go before what the documents say.

    Args:
        runs: Stage → run, in the order of the pipeline.
        kinds: Stage → kind, for some or all.
    """
    ends: list[str] = []
    parts = []
    for name, run in runs.items():
        kind = kinds.get(name) or _kind_of(run, [runs[end] for end in ends])
        parents = [] if kind in {"retrieve", "rewrite"} else list(ends)
        parts.append(stage_rows(name, run, kind, parents))
        ends = [name] if parents else [*ends, name]
    return Trace(pl.concat(parts), "stages")


def _kind_of(run: Run, before: Sequence[Run]) -> StageKind:
    if not before or not len(run):
        return "retrieve"
    pairs = pl.concat([each.frame().select("query_id", "doc_id") for each in before]).unique()
    known = run.frame().join(pairs, on=["query_id", "doc_id"], how="semi").height
    if known < _SAME * len(run):
        return "retrieve"
    return "fuse" if len(before) > 1 else "rerank"


def stage_rows(name: str, run: Run, kind: StageKind, parents: list[str]) -> pl.DataFrame:
    """Rows of ``COLUMNS`` for a stage whose documents are those of a run."""
    lists = (
        run.frame()
        .group_by("query_id", maintain_order=True)
        .agg(
            pl.col("doc_id").alias("doc_ids"),
            pl.col("rank").cast(pl.UInt32).alias("ranks"),
            pl.col("score").alias("scores"),
        )
    )
    answers = run.answers
    for column in ("latency_us", "error"):
        if column not in answers.columns:
            answers = answers.with_columns(pl.lit(None, COLUMNS[column]).alias(column))
    frame = answers.join(lists, on="query_id", how="left", maintain_order="left")
    filled = {
        "stage": pl.lit(name),
        "kind": pl.lit(kind),
        "parents": pl.lit(parents, pl.List(pl.String)),
        "doc_ids": pl.col("doc_ids").fill_null([]),
        "ranks": pl.col("ranks").fill_null([]),
        "scores": pl.col("scores").fill_null([]),
    }
    absent = {
        column: pl.lit(None, dtype)
        for column, dtype in COLUMNS.items()
        if column not in filled and column not in frame.columns
    }
    return frame.with_columns(**filled, **absent).select(list(COLUMNS))
