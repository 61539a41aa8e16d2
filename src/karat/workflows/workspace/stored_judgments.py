"""The judgments of one source in a golden set: people, machines, an import, or clicks.

Grades from clicks are in a file next to the store. Without one, judgments with the source
``clicks`` that were imported into the store count.
"""

from __future__ import annotations

import polars as pl

from karat.errors import UsageError, nearest
from karat.formats.own.click_grades import click_grades_file, provenance_of, read_click_grades
from karat.golden.aggregation import RULE, grades
from karat.store.sql import judgments
from karat.tables import Qrels
from karat.tables.judgments import Judgments
from karat.tables.online.clicks import ClickOrigin
from karat.tables.provenance import Provenance
from karat.workflows.workspace.workspace import Workspace

CLICKS = "clicks"


def qrels_by(opened: Workspace, source: str, query_ids: pl.Series) -> Qrels:
    """The grades of a source for the queries of a golden set.

    Raises:
        UsageError: there are none.
    """
    clicks = click_grades(opened) if source == CLICKS else None
    found = single = None
    if clicks is not None:
        frame = clicks[0].filter(pl.col("query_id").is_in(query_ids.implode()))
        found, provenance = frame, provenance_of(clicks[1], frame)
    else:
        with opened.store.read() as connection:
            single = judgments.current(connection, opened.golden.id).of(query_ids)
        found, provenance = grades(single, RULE, (source,)), Provenance(source)
    if not found.height:
        known = _sources(opened, single)
        raise UsageError(
            f"the golden set {opened.golden.name} has no judgments of {source}",
            nearest=nearest(source, known, 1),
            fix=f"it has those of {', '.join(known)}" if known else "judge pairs first",
        )
    name = f"golden set {opened.golden.name}, {source}"
    qrels = Qrels(found.select("query_id", "doc_id", "grade"), name).on_scale(opened.golden.scale)
    qrels.provenance = provenance
    return qrels


def _sources(opened: Workspace, single: Judgments | None) -> list[str]:
    """The sources of a golden set's judgments, other than a file without grades of its queries."""
    if single is None:
        with opened.store.read() as connection:
            single = judgments.current(connection, opened.golden.id)
        return sorted(set(single.ratings["source"]) - {CLICKS})
    there = click_grades_file(opened.workspace.root, opened.golden.name).is_file()
    return sorted({*single.ratings["source"], *([CLICKS] if there else [])})


def click_grades(opened: Workspace) -> tuple[pl.DataFrame, ClickOrigin] | None:
    """The grades from clicks of the golden set, and how they were made; None without any."""
    path = click_grades_file(opened.workspace.root, opened.golden.name)
    return read_click_grades(path) if path.is_file() else None


def click_grades_mark(opened: Workspace) -> tuple[int, int] | None:
    """What changes whenever the grades from clicks do; None without any."""
    path = click_grades_file(opened.workspace.root, opened.golden.name)
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None
