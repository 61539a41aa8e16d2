"""A diagnosis: what loses most in a paragraph, then stages, fixes, modes and queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from rich.console import Console

from karat.diagnosis.modes import ENTRIES, Mode
from karat.diagnosis.waterfall import SERVED
from karat.reports.phrases.numbers import counted, percent, signed
from karat.reports.table import DASH, Column, Style, Table, to
from karat.reports.writers.markdown import bullets, markdown, sentence
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_notes
from karat.tables.diagnosis import results

QUERIES = 10
"""Failing queries that are listed, the largest losses first; JSON has all."""


def entry(mode: results.ModeId) -> Mode:
    return ENTRIES[mode]


def summary(found: results.Diagnosis) -> str:
    """What loses most, in a paragraph."""
    value = DASH if found.value is None else f"{found.value:.3f}"
    over = counted(found.n, "query")
    parts = [f"{found.measure} of {found.run} is {value} over {over}."]
    if not found.failing:
        return f"{parts[0]} No query fails."
    either = f" (below {found.below:g}, or less than in {found.baseline})" if found.baseline else ""
    parts.append(f"{counted(found.failing, 'query fails', 'queries fail')}{either}.")
    if found.modes:
        first = found.modes[0]
        mode = ENTRIES[first.mode]
        parts.append(
            f"Most often ({percent(first.share)}{_span(first)}): {mode.name.lower()}. "
            f"What usually helps: {mode.helps}."
        )
    if found.stages:
        name, lost, given = most_lost(found)
        share = percent(lost / given) if given else "none"
        name = "the cut to what is served" if name == SERVED else name
        parts.append(f"Most is lost in {name}: {lost:,} of {given:,} relevant documents ({share}).")
    if found.fixes:
        parts.append(f"Worth most: {_worth(found.fixes[0])}.")
    return " ".join(parts)


def in_short(found: results.Diagnosis) -> str:
    """How many queries fail and why most of them, in a sentence without the run."""
    failing = counted(found.failing, "query fails", "queries fail")
    if not found.modes:
        return failing
    first = found.modes[0]
    name = ENTRIES[first.mode].name.lower()
    return f"{failing}, most often ({percent(first.share)}): {name}"


def failure(row: results.QueryMode) -> str:
    """Why a query fails: mode, document and evidence."""
    return f"{ENTRIES[row.mode].name}: {_evidence(row)}"


def most_lost(found: results.Diagnosis) -> tuple[str, int, int]:
    """The stage that loses most: its name, the documents that it lost, and what it was given."""
    return max(_losses(found.stages), key=lambda row: row[1])


def _losses(stages: Sequence[results.StageRow]) -> Iterator[tuple[str, int, int]]:
    """Stage, what it lost and what it was given; several retrievers together as one."""
    retrievers = [row for row in stages if row.kind == "retrieve"]
    if len(retrievers) > 1:
        rest = [row for row in stages if row.kind not in {"retrieve", "rewrite"}]
        given = retrievers[0].relevant_in
        yield "retrieval", given - rest[0].relevant_in, given
    for row in stages:
        if row.kind != "retrieve" or len(retrievers) == 1:
            yield row.stage, row.lost, row.relevant_in


def _span(row: results.ModeRow) -> str:
    return "" if row.ci_low is None else f", {to(percent(row.ci_low), percent(row.ci_high))}"


def _worth(fix: results.Fix) -> str:
    most = "at most " if fix.bound else ""
    span = "" if fix.ci_low is None else f" ({signed(fix.ci_low)} to {signed(fix.ci_high)})"
    return f"{fix.stage}, {fix.change}: {most}{signed(fix.gain)} {fix.measure}{span}"


def stages_table(found: results.Diagnosis) -> Table:
    measure = found.measure
    columns = (
        Column("stage", "Stage", "code"),
        Column("kind", "Kind", "words"),
        Column("relevant_in", "Relevant in", "count"),
        Column("relevant_out", "Out", "count"),
        Column("lost", "Lost", "count", style=_bold_most(found)),
        Column("lost_share", "Share", "share", drop=2),
        Column("ci_low", "95 %", "share", high="ci_high", drop=3, optional=True,
               help="95 % interval of the share lost, over the queries"),
        Column("returned", "Returned", "number", digits=0, drop=2),
        Column(
            "ceiling", f"{measure} at most", "number", value=lambda row: row.ceiling.get(measure),
            help="with the relevant documents of this stage in their best order",
        ),
        Column("latency_us", "Median", "ms", unit=" ms", optional=True, drop=1),
    )  # fmt: skip
    return Table("Relevant documents through the stages", columns, found.stages)


def lost_by(found: results.Diagnosis) -> Table:
    """What each stage loses of each grade and slice."""

    def share(stage: results.StageRow) -> str:
        if stage.lost_share is None:
            return DASH
        return f"{percent(stage.lost_share)} of {stage.relevant_in:,}"

    rows = {part: {row.stage: row for row in own} for part, own in found.stages_by.items()}
    names = {each.stage: each.stage for each in found.stages}
    return _by_part("Lost by each stage", rows, names, share)


def _by_part(
    title: str,
    rows: Mapping[str, Mapping[Any, Any]],
    headings: Mapping[Any, str],
    text: Callable[[Any], str],
    *more: Column,
) -> Table:
    """A row for each part, and a column for each key of its records."""

    def cell(key: Any, row: tuple[str, Mapping[Any, Any]]) -> str:
        return text(row[1][key]) if key in row[1] else DASH

    columns = (
        Column("part", "Of", value=itemgetter(0)),
        *more,
        *(Column(key, name, "count", text=partial(cell, key)) for key, name in headings.items()),
    )
    return Table(title, columns, list(rows.items()))


def reliability_table(found: results.Diagnosis) -> Table:
    """What the scores of each source of the last fusion stand for."""
    columns = (
        Column("stage", "Source", "code"),
        Column("low", "Score", "number", high="high", digits=2),
        Column("n", "Judged", "count"),
        Column("relevant", "Relevant", "share"),
        Column("fitted", "Fitted", "share", help="By isotonic fits on other queries"),
    )
    note = "scores are normalised to 0 to 1 within each query"
    rows = found.reliability
    return Table("What scores stand for", columns, rows, group="stage", notes=[note])


def modes_by(found: results.Diagnosis) -> Table:
    """The failing queries of each slice by mode."""
    rows = {part: {row.mode: row for row in own} for part, own in found.slices.items()}
    failing = Column("queries", "Failing", "count",
                     value=lambda row: sum(each.queries for each in row[1].values()))  # fmt: skip
    return _by_part(
        "Why queries fail, by slice",
        rows,
        {each.mode: ENTRIES[each.mode].name for each in found.modes},
        lambda mode: f"{mode.queries:,} ({percent(mode.share)}{_span(mode)})",
        failing,
    )


def _bold_most(found: results.Diagnosis) -> Callable[[results.StageRow], Style]:
    most = max((row.lost for row in found.stages), default=0)
    return lambda row: "strong" if row.lost and row.lost == most else ""


def fixes_table(found: results.Diagnosis) -> Table:
    several = len({fix.measure for fix in found.fixes}) > 1
    columns = (
        Column("stage", "Stage", "code"),
        Column("change", "Change"),
        Column("measure", "Measure", "words", shown=several),
        Column("gain", "Gain", "signed", text=_gain),
        Column("ci_low", "95 % interval", "signed", high="ci_high"),
    )  # fmt: skip
    notes = ["≤: the most that it can give"] if any(fix.bound for fix in found.fixes) else []
    return Table("What a fix is worth", columns, found.fixes, notes=notes)


def _gain(fix: results.Fix) -> str:
    return f"{'≤ ' if fix.bound else ''}{signed(fix.gain)}"


def modes_table(rows: list[results.ModeRow], title: str = "Why queries fail") -> Table:
    columns = (
        Column("mode", "Mode", "words", text=lambda row: ENTRIES[row.mode].name),
        Column("queries", "Queries", "count"),
        Column("share", "Share", "share"),
        Column("ci_low", "95 % interval", "share", high="ci_high"),
        Column("loss", "Of the loss", "share", drop=2),
        Column("look", "Look at first", value=lambda row: ENTRIES[row.mode].look, drop=1),
    )
    return Table(title, columns, rows)


def queries_table(found: results.Diagnosis, most: int | None = QUERIES) -> Table:
    columns = (
        Column("query_id", "Query", "code"),
        Column("text", "Text", optional=True, longest=60),
        Column("value", found.measure, "number"),
        Column("mode", "Mode", "words", text=lambda row: ENTRIES[row.mode].name),
        Column("evidence", "Evidence", text=_evidence),
    )
    rows = found.queries if most is None else found.queries[:most]
    left = len(found.queries) - len(rows)
    notes = [f"{counted(left, 'more query')}: --format json"] if left else []
    return Table("Queries that lose most", columns, rows, notes=notes)


def _evidence(row: results.QueryMode) -> str:
    return f"{row.doc_id}: {row.evidence}" if row.doc_id else row.evidence


def _mode(road: results.Road) -> str:
    return ENTRIES[road.mode].name if road.mode else ""


def _rank_in(name: str) -> Callable[[results.Road], int | None]:
    return lambda road: road.ranks[name]


def _rank_before(ranks: Mapping[str, int]) -> Callable[[results.Road], int | None]:
    return lambda road: ranks.get(road.doc_id)


def roads_table(
    query_id: str,
    roads: Sequence[results.Road],
    link: Callable[[results.Road], str | None] | None = None,
    before: tuple[str, Mapping[str, int]] | None = None,
) -> Table:
    """The relevant documents of a query on their way through the stages.

    ``before`` is a heading, and their ranks in a baseline.
    """
    names = list(roads[0].ranks) if roads else []
    columns = [
        Column("doc_id", "Document", "code", link=link),
        Column("grade", "Grade", "grade"),
        *(
            Column(name, name, "count", value=_rank_in(name))
            for name in names
        ),
        *(
            Column("before", heading, "count", value=_rank_before(ranks))
            for heading, ranks in ([before] if before else [])
        ),
        Column("lost_at", "Lost at", "code", optional=True),
        Column("mode", "Mode", "words", text=_mode, optional=True),
        Column("evidence", "Evidence", optional=True, drop=1),
    ]  # fmt: skip
    return Table(f"Relevant documents of {query_id}, with their ranks", columns, roads)


def tables(found: results.Diagnosis) -> Iterator[Table]:
    several = [
        modes_table(rows, f"Why queries fail: {name}") for name, rows in found.slices.items()
    ]
    for table in (
        stages_table(found),
        lost_by(found),
        fixes_table(found),
        reliability_table(found),
        modes_table(found.modes),
        *several,
        queries_table(found),
    ):
        if table.rows:
            yield table


def show(found: results.Diagnosis, out: Console) -> None:
    out.print(plain(summary(found)))
    if found.pipeline:
        out.print(plain(f"pipeline: {found.pipeline}", "dim"))
    for table in tables(found):
        out.print()
        draw(table, out)
        show_notes(list(table.notes), out)
    if found.notes:
        out.print()
        show_notes(found.notes, out)


def to_markdown(found: results.Diagnosis) -> str:
    parts = [sentence(summary(found)) + "\n"]
    if found.pipeline:
        parts.append(f"Pipeline: {sentence(found.pipeline)}\n")
    for table in tables(found):
        parts.append(markdown(table))
        parts += [bullets(table.notes)] if table.notes else []
    return "\n".join([*parts, *([bullets(found.notes)] if found.notes else [])])
