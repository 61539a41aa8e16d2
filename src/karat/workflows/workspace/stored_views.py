"""Views of stored numbers: charts, and the rankings of one query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from karat.diagnosis.side_by_side import Placed, Ranking
from karat.errors import MissingExtra
from karat.measures import parse_all
from karat.reports.html import figures
from karat.reports.html.content import Content, ShownQuery
from karat.reports.html.figures import DrawnChart
from karat.store.sql import comparisons, pairs
from karat.store.sql import judgments as judgments_in
from karat.tables import Qrels, QueryValue, Results, Run
from karat.tables.comparison import Comparison
from karat.tables.schema import Scale
from karat.workflows.golden.agreement import Moment
from karat.workflows.golden.editions import standing
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.evaluation_plan import settle
from karat.workflows.offline.report_queries import shown, views
from karat.workflows.workspace.workspace import Workspace

_DEEPEST = 100  # ranks side by side


@dataclass(frozen=True)
class Drawn:
    """The charts of a page, and the targets of their links."""

    measures: list[DrawnChart]  # every measure with its interval
    # Slices of the first measure, by candidate (empty without one) and attribute; without an
    # attribute the contributions of queries
    sliced: dict[str, DrawnChart]
    spread: list[DrawnChart]  # the distribution of values
    # Link targets by the id of a chart element: measure and candidate, attribute and value, or a
    # query
    leads: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Beside:
    """One query with its rankings side by side."""

    content: Content  # input of the components of a report
    query: ShownQuery  # the query in `content`
    # Values of each run by measure with the current judgments, if any grade of the query changed
    # since the numbers were computed; else empty
    now: Mapping[str, Sequence[float | None]]
    changed: int  # number of its grades that changed or are new


def content_of(
    results: Results, against: Comparison | None, runs: Sequence[str], rel: float, scale: Scale
) -> Content:
    """Input of a report's components, for numbers whose queries are on pages of their own."""
    measure = results.results[0].measure
    if against is not None:
        measure = against.differences[0].measure
    parsed = parse_all([measure])[0]
    return Content(
        measure=measure,
        k=min(parsed.depth or 10, _DEEPEST),
        rel=rel,
        runs=list(runs),
        results=results,
        comparison=against,
        views=views(results, against),
        grades=scale,
        paged=True,
    )


def drawn(content: Content) -> Drawn:
    """The charts; none if the charting libraries are not installed."""
    charts = Drawn([], {}, [], {})
    marks: dict[str, str] = {}

    def mark(query_id: str) -> str:
        return marks.setdefault(query_id, f"q-{len(marks)}")

    with suppress(MissingExtra):
        if content.comparison is not None:  # its tables draw intervals in their rows
            found = content.comparison
            for candidate in dict.fromkeys(row.candidate for row in found.differences):
                own = [row for row in found.differences if row.candidate == candidate]
                for chart in figures.of_queries(replace(found, differences=own), mark):
                    charts.sliced[slice_key(candidate, "")] = chart
        else:
            charts.measures.extend(figures.of_measures(content))
            for view, name in figures.ids_of_views(content).items():
                charts.leads[name] = {"measure": view.measure, "candidate": view.candidate or ""}
            for part in figures.of_slices(content):
                charts.sliced[slice_key(part.subject, part.attribute)] = part.figure
                for value, name in part.ids.items():
                    target = {"slice": f"{part.attribute}={value}", "candidate": part.subject or ""}
                    charts.leads[name] = target
            charts.spread.extend(figures.of_values(content))
    charts.leads.update({name: {"query": query_id} for query_id, name in marks.items()})
    return charts


def slice_key(candidate: str | None, attribute: str) -> str:
    """The key of a chart in ``Drawn.sliced``."""
    return f"{candidate or ''}\n{attribute}"


def beside(
    opened: Workspace,
    content: Content,  # content for all queries; its comparison has the rows of this query only
    query_id: str,
    *,
    measure: str,  # the measure whose contributions are shown
    values: Sequence[QueryValue],  # the query's stored values
    tables: Mapping[str, Any],  # Parquet files by name: `grades` and `heads`
    live: bool,  # whether grades may have changed since: then the current ones are read
    ranks: int = _DEEPEST,  # maximum number of ranks, if the measure looks as deep
) -> Beside | None:
    """One query: stored numbers, rankings, and current grades.

    Returns:
        None if neither a run nor a judgment has the query.
    """
    stored_grades = _of_query(tables["grades"], query_id)
    heads = _of_query(tables["heads"], query_id)
    grades = grades_now(opened, query_id) if live else stored_grades
    changed = _changed(stored_grades, grades)
    runs = _runs(content, heads, query_id, values)
    if not heads.height and not grades.height and not values:
        return None
    qrels = Qrels(grades, "the query", scale=content.grades)
    parsed = parse_all([measure])[0]
    rel = float(parsed.settings.get("rel") or 1.0)
    k = min(parsed.depth or 10, ranks)
    results = replace(content.results, per_query=list(values))
    names = _measures(content)
    if grades.height:
        plan = settle(qrels, runs, [measure, *(n for n in names if n != measure)])
        ordered = _first(content.comparison, measure)
        query = shown(plan, plan.scored, results, ordered, [query_id], 1, k, rel, None)[0]
    else:
        query = _unjudged(runs, query_id, values, content, k)
    current: dict[str, list[float | None]] = {}
    if changed and grades.height:
        values_now = evaluate(
            qrels, runs, names, interval="none", bounds=False, per_query=True
        ).per_query
        by_name = {(row.measure, row.run): row.value for row in values_now}
        current = {name: [by_name.get((name, run.name)) for run in runs] for name in names}
    ids = {one.doc_id for each in query.rankings for one in (*each.top, *each.below)}
    titles = document_titles(opened, sorted(ids))
    one_query = replace(
        content, k=k, rel=rel, measure=measure, titles=titles, queries=[query], results=results
    )
    return Beside(one_query, query, current, changed)


def document_titles(opened: Workspace, doc_ids: Sequence[str]) -> dict[str, str]:
    """The title of each document, or the beginning of its text; unknown documents are left out."""
    with opened.store.read() as connection:
        return comparisons.titles(connection, opened.golden.id, doc_ids)


def _measures(content: Content) -> list[str]:
    return list(dict.fromkeys(view.measure for view in content.views))


def _first(against: Comparison | None, measure: str) -> Comparison | None:
    """The comparison with the rows of one measure first."""
    if against is None:
        return None
    rows = sorted(against.differences, key=lambda row: row.measure != measure)
    return replace(against, differences=rows)


def _of_query(path: Any, query_id: str) -> pl.DataFrame:
    """The rows of one query; only row groups that may contain it are read."""
    rows: pl.DataFrame = pl.scan_parquet(path).filter(query_id=query_id).collect()
    return rows


def grades_now(opened: Workspace, query_id: str) -> pl.DataFrame:
    """The current grades of one query: ``query_id``, ``doc_id`` and ``grade``."""
    with opened.store.read() as connection:
        judgments = judgments_in.current(connection, opened.golden.id, query_id)
    empty = pl.DataFrame(schema={"query_id": pl.String}), pl.DataFrame(schema=pairs.SCHEMA)
    current = standing(Moment(empty[0], judgments, judgments, empty[1], opened.golden))
    return current.grades.select("query_id", "doc_id", "grade")


def _changed(stored: pl.DataFrame, grades: pl.DataFrame) -> int:
    """Number of documents whose grade changed, was added or was removed."""
    both = stored.join(grades, on=["query_id", "doc_id"], how="full", coalesce=True, suffix="_now")
    return both.filter(pl.col("grade").ne_missing(pl.col("grade_now"))).height


def _runs(
    content: Content, heads: pl.DataFrame, query_id: str, values: Sequence[QueryValue]
) -> list[Run]:
    """The runs, restricted to this query."""
    states = {row.run: row.state for row in values}
    out = []
    for place, name in enumerate(content.runs):
        rows = heads.filter(run=place).select("query_id", "doc_id", "score")
        answers = None
        if not rows.height and states.get(name) in {"failed", "empty"}:
            answers = pl.DataFrame({"query_id": [query_id], "state": [states[name]]})
        out.append(Run.from_batches(name, [rows], answers=answers))
    return out


def _unjudged(
    runs: Sequence[Run],
    query_id: str,
    values: Sequence[QueryValue],
    content: Content,
    k: int,
) -> ShownQuery:
    """An unjudged query: its rankings, without grades or values."""
    tops = [run.top([query_id], k)["doc_id"].to_list() for run in runs]
    rankings = []
    for place, (run, top) in enumerate(zip(runs, tops, strict=True)):
        paired = content.comparison is not None
        beside_it = tops[0 if place else 1] if paired else []
        other = {doc: at for at, doc in enumerate(beside_it, 1)}
        placed = [Placed(doc, at, None, other.get(doc), None) for at, doc in enumerate(top, 1)]
        rankings.append(Ranking(run.name, placed, [], 0, None, len(run)))
    states = {row.run: row.state for row in values}
    return ShownQuery(
        query_id=query_id,
        text=None,
        rankings=rankings,
        values={name: [None] * len(runs) for name in _measures(content)},
        states=[str(states.get(run.name, "unjudged")) for run in runs],
        changes=[None for _ in content.views],
        unfound=0,
        relevant=0,
    )


def link_marks(
    svg: str, leads: Mapping[str, Mapping[str, str]], address: Callable[[Mapping[str, str]], str]
) -> str:
    parts = svg.split('href="#')
    linked = [parts[0]]
    for part in parts[1:]:
        mark, _, rest = part.partition('"')
        target = leads.get(mark)
        linked.append(f'href="{address(target)}"{rest}' if target else f'href="#{mark}"{rest}')
    return "".join(linked)
