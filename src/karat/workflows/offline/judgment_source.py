"""Whose judgments count: people's, machines', those of clicks, or imported ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, KaratError, MissingExtra, check_known
from karat.formats.own import golden
from karat.formats.own.workspace import NAME
from karat.formats.tables.detect import own_kind
from karat.formats.tables.reading import holds_queries, read_pairs, read_qrels
from karat.formats.tables.source import Source
from karat.golden.query import PERSON, GoldenQuery, judgment_frame, query_frame, without_relevant
from karat.reports.phrases.sources import whose
from karat.tables import Qrels, Queries
from karat.tables.judgments import SOURCES
from karat.tables.provenance import Provenance
from karat.workflows.offline import inputs

_FIX = "name a workspace, a golden set with sources, or grades of karat clicks judge"


def is_workspace(value: Any, source: str | None = None) -> bool:
    """Whether a value is the folder of a workspace.

    One that is a BEIR folder too is read as such, unless a source of judgments is asked for.
    """
    if not isinstance(value, str | Path) or str(value) == "-":
        return False
    return (Path(value) / NAME).is_file() and (source is not None or not holds_queries(value))


def checked_source(source: str) -> None:
    """Raise UsageError for an unknown source of judgments."""
    check_known(source, SOURCES, f"unknown source of judgments {source!r}")


def judged_by(
    qrels: Any, source: str | None, qrels_format: str | None = None
) -> tuple[Any, Queries | None]:
    """The judgments of a source, and the queries that come with them.

    Args:
        qrels: As ``evaluate`` accepts them.
        source: ``human``, ``llm``, ``clicks`` or ``import``. If None, all judgments of a file; of a
            workspace those of people, and imported ones where people gave none.
        qrels_format: Of a file.

    Raises:
        UsageError: an unknown source, or none of its judgments.
    """
    if source is not None:
        checked_source(source)
    if is_workspace(qrels, source):
        return _of_workspace(Path(qrels), source)
    if source is None:
        return qrels, None
    if (golden_set := inputs.golden_set(qrels)) is not None:
        name, file = golden_set.name, golden_set.qrels.file
        return _of_golden(list(golden_set), source, name, golden_set.scale, file)
    if isinstance(qrels, str | Path) and str(qrels) != "-" and _is_golden(Path(qrels)):
        read = golden.read(qrels)
        return _of_golden(read.queries, source, str(qrels), read.scale, str(qrels))
    path = isinstance(qrels, str | Path)
    found = read_qrels(qrels, qrels_format) if path else inputs.qrels(qrels)
    if path and found.provenance is None:
        found = _of_column(found, str(qrels), source)
    known = None if found.provenance is None else found.provenance.sources
    if known == source:
        return found, None
    name = whose(source)
    if known is not None:
        what = f"the judgments are of {whose(known)}, not of {name}"
        raise InputError(what, file=found.source, fix=f"--judgments {known}")
    raise InputError(
        f"the judgments do not say whose they are, and those of {name} were asked for",
        file=found.source,
        fix=_FIX,
    )


def _of_column(found: Qrels, path: str, source: str) -> Qrels:
    """The judgments of a source in a file with a column ``source``; all of another file."""
    try:
        pairs = read_pairs(path).frame
    except KaratError:  # the format has no further columns, or no names of columns
        return found
    if "source" not in pairs.columns:
        return found
    pairs = pairs.select("query_id", "doc_id", pl.col("source").cast(pl.String))
    chosen = pairs.filter(pl.col("source") == source)
    if not chosen.height:
        said = pairs["source"].drop_nulls().unique().sort().to_list()
        raise InputError(
            f"no judgment has the source {source}",
            file=found.source,
            fix=f"its sources are {', '.join(said)}" if said else _FIX,
        )
    rows = found.rows.join(chosen, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    again = Qrels(rows, found.source, found.scale)
    again.file, again.provenance = found.file, Provenance(source)
    return again


def _is_golden(path: Path) -> bool:
    if path.is_dir():
        return False
    with Source(path) as file:
        return own_kind(file) == "a golden set"


def _of_golden(
    every: Sequence[GoldenQuery], source: str, name: str, scale: Any, file: str | None
) -> tuple[Qrels, Queries]:
    """The judgments of a source in a golden set's file; people's are those without one."""
    own = {"human": {PERSON, "human"}}.get(source, {source})
    chosen = [
        replace(
            each,
            judgments={doc: one for doc, one in each.judgments.items() if one.source in own},
            # That nothing is relevant is what a person says.
            judged=each.judged and not each.judgments and source == "human",
        )
        for each in every
    ]
    frame = judgment_frame(chosen)
    if not frame.height:
        words = {PERSON: "human"}
        known = {words.get(one.source, one.source) for q in every for one in q.judgments.values()}
        raise InputError(
            f"the golden set has no judgments of {whose(source)}",
            file=name,
            fix=f"it has those of {', '.join(sorted(known))}" if known else "judge it first",
        )
    found = Qrels(frame, name, scale, without_relevant(chosen))
    found.file, found.provenance = file, Provenance(source)
    return found, Queries(query_frame(chosen, name), name)


def _of_workspace(folder: Path, source: str | None) -> tuple[Qrels, Queries]:
    try:
        from karat.workflows.workspace.stored_inputs import judged
        from karat.workflows.workspace.workspace import open_workspace
    except ImportError as error:  # of the store
        raise MissingExtra(error.name or "sqlalchemy", "store", "a workspace") from None
    with open_workspace(folder, now=time.time_ns() // 1000) as opened:
        found = judged(opened, source=source)
        found.qrels.file = str(opened.workspace.root / NAME)
        if found.qrels.provenance is None and found.sources:
            found.qrels.provenance = Provenance(found.sources)
        return found.qrels, found.queries
