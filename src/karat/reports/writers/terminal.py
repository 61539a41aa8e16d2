"""Results as tables for a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from karat.reports.phrases.numbers import percent, value_text
from karat.reports.writers.cells import CONTROLS, base, plain
from karat.reports.writers.sheets import Sheet, curve, sheets
from karat.tables import QueryValue, Result, Results
from karat.tables.about import brief
from karat.tables.explanation import Explanation, Line
from karat.tables.notes import SHOWN, first_notes, others

_NARROW = 12
_CELL = 13  # a value and its interval: 0.621 .50–.74
_LONGEST_HEADING = 20  # longer names of measures are folded
_STATE = {
    "missing": "is not in the run and scores 0",
    "empty": "was answered with nothing and scores 0",
    "failed": "got no answer",
    "undefined": "has no relevant document: the measure has no value",
    "unjudged": "has no judgments",
}


def console(file: IO[str], width: int | None = None) -> Console:
    """A console that prints text as it is: untrusted ids are never markup."""
    return _Console(file=file, width=width, markup=False, highlight=False, emoji=False)


class _Console(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(text.translate(CONTROLS), style)

    def on_broken_pipe(self) -> None:
        # Rich would exit with 1, which means "fail"; the command line handles this error.
        raise BrokenPipeError


def show_results(
    results: Results, out: Console, *, full: bool = False, all_notes: bool = False
) -> None:
    """Print the results, slices, values per query, and notes."""
    runs = list(dict.fromkeys(row.run for row in results.results))
    out.print(_table(results.results, judged=not results.fully_judged))
    if full:
        out.print(_digits_table(results.results))
        out.print(_counts_table(results.results))
        if any(
            row.tie_high is not None or row.unjudged_high is not None for row in results.results
        ):
            out.print(_bands_table(results.results))
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        for run in runs:
            chosen = [r for r in results.slices if r.attribute == attribute and r.run == run]
            for measures in _blocks(chosen, _CELL, out.width - 15, gap=2):
                block = [row for row in chosen if row.measure in measures]
                out.print(_slice_table(str(attribute), run, block))
    for sheet in sheets(results):
        out.print(drawn(sheet))
    if full:
        for silent in results.no_answer:
            out.print(drawn(curve(silent)))
    if results.per_query:
        for run in runs:
            chosen_values = [row for row in results.per_query if row.run == run]
            for measures in _blocks(chosen_values, 6, out.width - 28, gap=3):
                out.print(_query_table(chosen_values, run, measures))
    for run, about in results.about.items():
        out.print(plain(f"{run}: {brief(about)}", "dim"))
    show_footnotes(results.notes, out, every=full or all_notes)


def show_breakdown(results: Results, attribute: str, measure: str, out: Console) -> None:
    """Print one measure by one attribute, runs side by side."""
    runs = list(dict.fromkeys(row.run for row in results.results))
    rows = [r for r in results.slices if r.attribute == attribute and r.measure == measure]
    table = base(f"{measure} by {attribute}")
    table.add_column(attribute, overflow="fold")
    for name in ("n", *runs):
        table.add_column(plain(name), justify="right", no_wrap=True)
    for value in dict.fromkeys(row.slice for row in rows):
        cells = {row.run: row for row in rows if row.slice == value}
        most = max(row.n for row in cells.values())
        shown = (_with_interval(cells[run]) if run in cells else "" for run in runs)
        table.add_row(plain(str(value)), f"{most:,}", *shown)
    out.print(table)


def show_paragraphs(title: str, paragraphs: Iterable[str], out: Console) -> None:
    """Print paragraphs as a list under a heading."""
    out.print(title, style="bold")
    _bullets(paragraphs, out, "")


def show_explanation(explanation: Explanation, out: Console, *, all_notes: bool = False) -> None:
    """Print a query's ranking with the contribution of each document."""
    value = "no value" if explanation.value is None else f"{explanation.value:.4f}"
    head = Text.assemble(
        (explanation.measure, "bold"), " of query ", (explanation.query_id, "bold"),
        f" in {explanation.run}: ", (value, "bold"),
    )  # fmt: skip
    out.print(head)
    if explanation.text:
        out.print(f"“{explanation.text}”")
    if explanation.state != "ok":
        out.print(f"The query {_STATE[explanation.state]}.")
    if explanation.lines:
        out.print(_ranking(explanation))
    if explanation.hidden:
        out.print(f"{explanation.hidden:,} more documents below add nothing.", style="dim")
    if explanation.missed:
        count = len(explanation.missed)
        shown = ", ".join(f"{line.doc_id} ({line.grade:g})" for line in explanation.missed[:8])
        more = f" and {count - 8:,} more" if count > 8 else ""
        out.print(f"Relevant and not retrieved ({count:,}): {shown}{more}")
    show_footnotes(explanation.notes, out, every=all_notes)


def show_notes(notes: Sequence[str], out: Console) -> None:
    """Print notes as a list."""
    _bullets(notes, out, "dim")


def show_footnotes(notes: Sequence[str], out: Console, *, every: bool) -> None:
    """Print the most important notes of a result, and the number of others."""
    shown, more = first_notes(notes, len(notes) if every else SHOWN)
    show_notes(shown, out)
    if more:
        out.print(plain(f"{others(more)}: --notes", "dim"))


def show_warnings(warnings: Sequence[str], out: Console) -> None:
    """Print warnings as a highlighted list."""
    _bullets(warnings, out, "bold yellow")


def _bullets(paragraphs: Iterable[str], out: Console, style: str) -> None:
    for paragraph in paragraphs:
        grid = Table.grid(padding=(0, 1))
        grid.add_column()
        grid.add_column(overflow="fold")
        grid.add_row(plain("·", style), plain(paragraph, style))
        out.print(grid)


def _columns(title: str, rows: Sequence[Result], *names: str, close: bool = True) -> Table:
    """A table with a row for each measure, and for each run where there are several."""
    table = base(title)
    if close:
        table.padding = (0, 1, 0, 0)  # many columns in 80
    table.add_column("measure", overflow="fold", min_width=_least(row.measure for row in rows))
    if _several(rows):
        table.add_column("run", overflow="fold", min_width=_least(row.run for row in rows))
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _least(names: Iterable[str]) -> int:
    """The least width of a column of names; numbers are narrowed first."""
    return min(max(map(len, names), default=0), _NARROW)


def _by_measure(rows: Sequence[Result]) -> Iterator[tuple[list[str | Text], Result, bool]]:
    """Rows grouped by measure: labels, row, whether it is the last of its measure.

    The name of a measure is not repeated; that of a single run is left out.
    """
    runs = dict.fromkeys(row.run for row in rows)
    for measure in dict.fromkeys(row.measure for row in rows):
        group = [row for row in rows if row.measure == measure]
        for place, row in enumerate(group):
            labels: list[str | Text] = [plain(measure if place == 0 else "")]
            if len(runs) > 1:
                labels.append(plain(row.run))
            yield labels, row, len(group) > 1 and place == len(group) - 1


def _several(rows: Sequence[Result]) -> bool:
    return len({row.run for row in rows}) > 1


def _title(rows: Sequence[Result]) -> str:
    return "" if _several(rows) else rows[0].run


def _table(rows: Sequence[Result], *, judged: bool) -> Table:
    heads = ("value", "95 %", "n", *(["judged"] if judged else []))
    table = _columns(_title(rows), rows, *heads, close=False)
    for labels, row, ends in _by_measure(rows):
        cells = (_value(row), _interval(row), f"{row.n:,}", percent(row.judged))
        table.add_row(*labels, *cells[: len(heads)], end_section=ends)
    return table


def _digits_table(rows: Sequence[Result]) -> Table:
    table = _columns("all digits", rows, "value", "from", "to", "method")
    for labels, row, ends in _by_measure(rows):
        digits = ("–" if v is None else f"{v:.12g}" for v in (row.value, row.ci_low, row.ci_high))
        table.add_row(*labels, *digits, row.ci_method or "–", end_section=ends)
    return table


def _counts_table(rows: Sequence[Result]) -> Table:
    counts = ("n", "empty", "missing", "failed", "undefined", "unjudged")
    table = _columns("queries", rows, *counts, "tied")
    for labels, row, ends in _by_measure(rows):
        numbers = (f"{getattr(row, name):,}" for name in counts)
        table.add_row(*labels, *numbers, percent(row.tied), end_section=ends)
    return table


def _bands_table(rows: Sequence[Result]) -> Table:
    names = ("tied: low", "mean", "high", "unjudged: low", "high")
    table = _columns("could be", rows, *names)
    for labels, row, ends in _by_measure(rows):
        ties = (row.tie_low, row.tie_expected, row.tie_high)
        cells = (value_text(row, end) for end in (*ties, row.unjudged_low, row.unjudged_high))
        table.add_row(*labels, *cells, end_section=ends)
    return table


def drawn(sheet: Sheet) -> Table:
    """A sheet as a terminal table."""
    table = base(sheet.title)
    for place, name in enumerate(sheet.heads):
        if place < sheet.texts:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    for cells in sheet.rows:
        table.add_row(*map(plain, cells))
    return table


def _slice_table(attribute: str, run: str, rows: Sequence[Result]) -> Table:
    measures = list(dict.fromkeys(row.measure for row in rows))
    table = base(f"{run}, by {attribute}")
    table.padding = (0, 1, 0, 0)  # four measures in 80 columns
    table.add_column(attribute, overflow="fold")
    table.add_column("n", justify="right", no_wrap=True)
    for measure in measures:
        widest = max(len(_with_interval(row)) for row in rows if row.measure == measure)
        least = max(min(len(measure), _LONGEST_HEADING), 10, widest)
        table.add_column(plain(measure), justify="right", overflow="fold", min_width=least)
    for name in dict.fromkeys(row.slice for row in rows):
        cells = [row for row in rows if row.slice == name]
        most = max(row.n for row in cells)
        table.add_row(plain(str(name)), f"{most:,}", *(_with_interval(row) for row in cells))
    return table


def _blocks(
    rows: Sequence[Result] | Sequence[QueryValue], cell: int, room: int, *, gap: int
) -> list[list[str]]:
    """Measures in blocks of about equal size that each fit the width, so that no value is cut."""
    measures = list(dict.fromkeys(row.measure for row in rows))
    widths = [max(min(len(measure), _LONGEST_HEADING), cell) + gap for measure in measures]

    def split(most: int) -> list[list[str]]:
        blocks: list[list[str]] = []
        used = room
        for measure, width in zip(measures, widths, strict=True):
            if used + width > room or len(blocks[-1]) == most:
                blocks.append([])
                used = 0
            blocks[-1].append(measure)
            used += width
        return blocks

    needed = len(split(len(measures)))
    return split(-(-len(measures) // needed)) if needed else []


def _query_table(rows: Sequence[QueryValue], run: str, measures: Sequence[str]) -> Table:
    table = base(f"{run}, query by query")
    table.add_column("query", overflow="fold")
    for measure in measures:
        least = max(min(len(measure), _LONGEST_HEADING), 6)
        table.add_column(plain(measure), justify="right", overflow="fold", min_width=least)
    outcomes = list(dict.fromkeys(name for row in rows for name in row.outcomes or {}))
    for name in outcomes:
        table.add_column(plain(name, "italic"), justify="right", overflow="fold")
    table.add_column("", no_wrap=True)
    by_query: dict[str, dict[str, str]] = {}
    states: dict[str, str] = {}
    outcomes_of: dict[str, dict[str, float]] = {}
    for row in rows:
        outcomes_of[row.query_id] = row.outcomes or {}
        shown = "–" if row.value is None else f"{row.value:.4f}"
        by_query.setdefault(row.query_id, {})[row.measure] = shown
        if row.state != "ok":
            states[row.query_id] = row.state
    for query_id, values in by_query.items():
        cells = [plain(values.get(measure, "–")) for measure in measures]
        own = outcomes_of[query_id]
        cells += [plain(f"{own[name]:g}" if name in own else "–") for name in outcomes]
        table.add_row(plain(query_id), *cells, plain(states.get(query_id, ""), "dim"))
    return table


def _ranking(explanation: Explanation) -> Table:
    additive = any(line.contribution is not None for line in explanation.lines)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("document", overflow="fold")
    names = ("grade", "gain", "discount", "adds") if additive else ("grade",)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for line in explanation.lines:
        table.add_row(*_cells(line, additive))
    if additive and explanation.value is not None:
        table.add_section()
        table.add_row("", "sum", "", "", "", plain(f"{explanation.value:.4f}", "bold"))
    return table


def _cells(line: Line, additive: bool) -> list[str | Text]:
    rank = f"{line.rank}{'=' if line.tied else ''}"
    grade = "unjudged" if line.grade is None else f"{line.grade:g}"
    relevant = (line.contribution or 0) > 0
    cells: list[str | Text] = [rank, plain(line.doc_id, "bold" if relevant else "")]
    cells.append(plain(grade, "dim" if line.grade is None else ""))
    if additive:
        cells += [
            "" if line.gain is None or line.grade is None else f"{line.gain:g}",
            "" if line.discount is None else f"{line.discount:.4f}",
            "" if not line.contribution else f"{line.contribution:.4f}",
        ]
    return cells


def _value(row: Result) -> Text:
    return plain(value_text(row, row.value), "" if row.value is None else "bold")


def _interval(row: Result) -> str:
    if row.ci_low is None or row.ci_high is None:
        return ""
    return f"{row.ci_low:.3f} – {row.ci_high:.3f}"


def _with_interval(row: Result) -> Text:
    if row.value is None:
        return plain("–")
    if row.ci_low is None or row.ci_high is None:
        return plain(f"{row.value:,.0f}" if row.aggregate == "sum" else f"{row.value:.3f}")
    ends = "–".join(f"{end:.2f}".removeprefix("0") for end in (row.ci_low, row.ci_high))
    return Text.assemble((f"{row.value:.3f}", "bold"), (f" {ends}", "dim"))
