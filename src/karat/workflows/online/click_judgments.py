"""Judgments from clicks: relevance by a click model, cut into grades, in a file of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import CannotTell, InputError, UsageError
from karat.formats.own.click_grades import check_name, click_grades_file, write_click_grades
from karat.golden.traffic import folded
from karat.online.clicks import grading
from karat.online.clicks.counts import Pages
from karat.online.clicks.entry import ClickModel
from karat.online.clicks.fitting import fit
from karat.online.clicks.grading import LEAST, NAIVE, Grading, cut_points
from karat.online.clicks.registry import MODELS, find
from karat.online.rules import duration, duration_text
from karat.tables.notes import Concern, Note
from karat.tables.online.clicks import ClickJudgments, ClickOrigin, Examination, PropensitySource
from karat.tables.provenance import CutPoints
from karat.tables.records import shared
from karat.workflows.online.click_counts import Counted, Counting, count_strata, open_log
from karat.workflows.online.click_fit import named_value, propensities

if TYPE_CHECKING:
    from karat.workflows.workspace.workspace import Workspace

UNFIT = {
    "GCTR": "does not distinguish documents",
    "RCTR": "does not distinguish documents",
    "DCTR": "takes position for relevance",
    "COEC": "estimates a ratio of clicks, not the probability that a document is relevant",
}
"""Models that make no grades, and why."""
_GRADES = (0.0, 1.0, 2.0, 3.0)  # without a workspace and cut points


@dataclass(frozen=True)
class ClickRelevance:
    """Relevance of the pairs of a log, before it is cut into grades."""

    model: str  # `naive` for the naive rule
    # As `relevance_frame` returns it, with `query_id` in place of `query`; of known queries only
    frame: pl.DataFrame
    texts: Mapping[str, str]  # most frequent spelling of queries, by id
    grades: Sequence[float] | None  # of the golden set's scale; None without one
    identified: bool  # whether positions were separated from documents; not by the naive rule
    propensities: PropensitySource | None  # whose examination was taken
    unmatched_queries: int  # of the log, that the golden set does not have
    unmatched_pairs: int
    pages: int  # of the log, as of `Counted`
    impressions: int
    clicks: int
    simulated: bool
    engine: str
    half_life_us: int | None
    log: str
    notes: Sequence[str]


def click_relevance(
    log: Any,
    model: str = "PBM",
    *,
    opened: Workspace | None = None,
    half_life: str | None = None,
    randomised: str | None = None,
    **options: Any,
) -> ClickRelevance:
    """Relevance of each document to its query, from the clicks of a log.

    Args:
        log: As ``count_clicks`` takes it; None: the events of the workspace.
        model: A click model that knows documents, or ``naive``.
        opened: Its golden set's queries are matched by text; without one, a query's id is its text.
        half_life: Age at which a page of results counts half, such as ``30d``; None: all alike.
        randomised: ``NAME=VALUE`` of the searches whose order was random; the examination of places
            is taken from them.
        options: As in ``click_counts.Counting``: depth, only, first, last, engine and so on.

    Raises:
        UsageError: a model without relevance.
        CannotTell: the log does not identify positions.
    """
    log = _log(log, opened)
    half_life_us = None if half_life is None else duration(half_life)
    naive = model.strip().casefold() == NAIVE
    entry = None if naive else judging_model(model, randomised)
    needs = "cells" if entry is None else entry.needs
    found, notes = None, list[str]()
    counting = Counting(half_life_us=half_life_us, **options)
    with open_log(log, counting) as (opened_log, imported):
        counted, _ = count_strata(opened_log, needs, counting)
        if entry is not None and entry.name == "PBM":
            found, notes = propensities(opened_log, counting, named_value(randomised))
        notes = [*imported, *counted.notes, *notes]
    if entry is None:
        cells = counted.counts.cells() if isinstance(counted.counts, Pages) else counted.counts
        frame = grading.naive(cells)
        notes.insert(0, Note("the naive rule takes position for relevance", Concern.INPUT))
    else:
        frame = _by_model(entry.name, counted, None if found is None else found.examination)
    return _matched(
        ClickRelevance(
            model=NAIVE if entry is None else entry.name,
            frame=frame,
            texts=dict(counted.queries.select("query", "text").iter_rows()),
            grades=None if opened is None else sorted(opened.golden.grades),
            identified=entry is not None,
            propensities=None if found is None else found.source,
            unmatched_queries=0,
            unmatched_pairs=0,
            half_life_us=half_life_us,
            log=_log_name(log),
            **shared(counted, ClickRelevance) | {"notes": notes},
        ),
        opened,
    )


def _log(log: Any, opened: Workspace | None) -> Any:
    if log is not None:
        return log
    if opened is None:
        raise UsageError("no log was given", fix="a file or folder of events, or a workspace")
    return opened.workspace.events


def _log_name(log: Any) -> str:
    return str(log) if isinstance(log, str | Path) else str(getattr(log, "folder", "a data frame"))


def judging_model(name: str, randomised: str | None = None) -> ClickModel:
    """A model whose relevance can be cut into grades; raises UsageError for others."""
    entry = find(name, [each.name for each in MODELS if each.name not in UNFIT] + [NAIVE])
    if entry.name in UNFIT:
        raise UsageError(
            f"{entry.name} {UNFIT[entry.name]}",
            fix="PBM, for example; or naive, which says that it takes position for relevance",
        )
    if randomised is not None and entry.name != "PBM":
        raise UsageError(f"{entry.name} does not use searches in random order", fix="use the PBM")
    return entry


def _by_model(
    name: str, counted: Counted, examination: Sequence[Examination] | None
) -> pl.DataFrame:
    fitted = fit(name, counted.counts, prior="query", propensities=examination)
    if not fitted.identified:
        raise CannotTell(
            f"positions are not identified: {fitted.reason}; clicks do not show what is relevant",
            fix="a log in which documents change places, or searches in random order; the naive "
            "rule takes position for relevance",
        )
    return fitted.relevance


def _matched(found: ClickRelevance, opened: Workspace | None) -> ClickRelevance:
    """The relevance by ids of the golden set's queries; others are left out and counted."""
    if opened is None:
        return replace(found, frame=found.frame.rename({"query": "query_id"}))
    from karat.workflows.workspace.known_queries import query_frame
    from karat.workflows.workspace.stored_inputs import ids_by_text

    ids, known = ids_by_text(opened), set(query_frame(opened)["query_id"])
    keys = found.frame["query"].unique().to_list()
    by_key = {
        key: ids.get(text) or (key if key in known else None)
        for key, text in zip(keys, folded(keys), strict=True)
    }
    texts = {query: found.texts.get(key, key) for key, query in by_key.items() if query is not None}
    schema = {"query": pl.String, "query_id": pl.String}
    table = pl.DataFrame(list(by_key.items()), schema, orient="row")
    frame = found.frame.join(table, on="query", how="left")
    matched = frame.filter(pl.col("query_id").is_not_null()).sort("effective", descending=True)
    matched = matched.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    return replace(
        found,
        frame=matched.drop("query").select("query_id", pl.exclude("query_id")),
        texts=texts,
        unmatched_queries=sum(query is None for query in by_key.values()),
        unmatched_pairs=frame["query_id"].null_count(),
    )


def graded_clicks(
    found: ClickRelevance,
    *,
    cuts: Sequence[float] | None = None,
    least: float = LEAST,
    now: int,
) -> tuple[ClickJudgments, pl.DataFrame]:
    """The grades by cut points, and what they are; written nowhere.

    Args:
        found: The relevance.
        cuts: One for each grade above the lowest; the default ones if None. Without a workspace the
            scale has as many grades.
        least: Effective impressions of a pair that gets a grade.
        now: Microseconds UTC.
    """
    rules = Grading(_points(found.grades, cuts), least)
    grades = grading.graded(found.frame, rules).sort("query_id", "doc_id")
    made = {"cuts": rules.points.cuts, "grades": rules.points.grades, "least": least}
    made |= {"made_us": now, "pairs": grades.height}
    origin = ClickOrigin(**shared(found, ClickOrigin) | made)
    overrated, underrated = (
        [replace(row, text=found.texts.get(row.query_id, row.query_id)) for row in rows]
        for rows in grading.rated_by_ctr(grades)
    )
    half = [] if found.half_life_us is None else [
        f"pages count half after {duration_text(found.half_life_us)}, by the log's last day"
    ]  # fmt: skip
    judged = ClickJudgments(
        origin=origin,
        pairs=found.frame.height + found.unmatched_pairs,
        graded=grades.height,
        too_few=found.frame.height - grades.height,
        by_grade=grading.by_grade(grades, rules.points),
        queries=grades["query_id"].n_unique(),
        overrated=overrated,
        underrated=underrated,
        file=None,
        seconds=0.0,
        **shared(found, ClickJudgments) | {"notes": [*found.notes, *half]},
    )
    return judged, grades


def no_grades(found: ClickRelevance, least: float) -> InputError:
    """Why no pair of a log got a grade."""
    if found.unmatched_queries and not found.frame.height:
        return InputError(
            f"none of its {found.unmatched_queries:,} queries is in the golden set",
            file=found.log,
            fix="a golden set with the texts of these queries, or a file for the grades of all",
        )
    return InputError(
        f"no pair of a known query was looked at {least:g} times or more",
        file=found.log,
        fix="a longer log, or fewer least impressions",
    )


def _points(grades: Sequence[float] | None, cuts: Sequence[float] | None) -> CutPoints:
    if grades is None:
        grades = _GRADES if cuts is None else range(len(cuts) + 1)
    return cut_points(grades, cuts)


def judge_clicks(
    log: Any = None,
    model: str = "PBM",
    *,
    workspace: Workspace | str | Path | None = None,
    file: str | Path | None = None,
    cuts: Sequence[float] | None = None,
    least: float = LEAST,
    preview: bool = False,
    now: int | None = None,
    **options: Any,
) -> ClickJudgments:
    """Make grades from a log's clicks, and write them next to the store of a workspace, or a file.

    Args:
        log: An event log, as ``karat.evaluate_online`` takes it, or a file in the research form;
            None: the events of the workspace.
        model: A click model that knows documents, or ``naive``: the share of impressions that ended
            in a satisfied click.
        workspace: Whose golden set is graded. Its earlier grades from clicks are replaced, people's
            judgments never.
        file: Written instead: Parquet, or CSV without how the grades were made.
        cuts: Cut points of the grades; 0.1, 0.3 and 0.6 by default.
        least: Effective impressions of a pair that gets a grade.
        preview: Whether to write nothing.
        now: Microseconds UTC; by default the time.
        options: As of ``click_relevance``: half_life, randomised, depth, engine and so on.

    Raises:
        UsageError: a model without relevance, invalid cut points, or nowhere to write.
        CannotTell: the log does not identify positions.
        InputError: the log cannot be read, or no pair gets a grade.
    """
    if file is not None:
        check_name(file)
    elif workspace is None and not preview:
        raise UsageError("nowhere to write the grades", fix="a workspace, or a file")
    start, now = time.perf_counter(), time.time_ns() // 1000 if now is None else now
    with opened_workspace(workspace, now) as opened:
        scale = None if opened is None else sorted(opened.golden.grades)
        Grading(_points(scale, cuts), least)  # refused before the log is read
        found = click_relevance(log, model, opened=opened, **options)
        judged, grades = graded_clicks(found, cuts=cuts, least=least, now=now)
        target = Path(file) if file is not None else None
        if target is None and opened is not None:
            target = click_grades_file(opened.workspace.root, opened.golden.name)
    if not preview and target is not None:
        if not grades.height:
            raise no_grades(found, least)
        write_click_grades(grades, judged.origin, target)
        judged = replace(judged, file=str(target))
    return replace(judged, seconds=time.perf_counter() - start)


@contextmanager
def opened_workspace(
    workspace: Workspace | str | Path | None, now: int
) -> Iterator[Workspace | None]:
    """A workspace that is open or named; None for none."""
    if not isinstance(workspace, str | Path):
        yield workspace
        return
    from karat.workflows.workspace.workspace import open_workspace

    with open_workspace(Path(workspace), now=now) as opened:
        yield opened
