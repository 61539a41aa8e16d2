"""An evaluation: its tables, and how each medium shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from karat.measures.no_answer import thinned
from karat.reports.phrases.numbers import counted, milliseconds, moves, silence_heading, value_text
from karat.reports.table import DASH, Column, Kind, Table, to
from karat.reports.writers.latex import results_table
from karat.reports.writers.markdown import listed, markdown
from karat.reports.writers.plain import csv_table, plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes
from karat.tables import QueryValue, Result, Results
from karat.tables.about import AboutChange, brief, short
from karat.tables.results import Latency, MachineMean, NoAnswer, Outcome

if TYPE_CHECKING:
    from rich.console import Console

    from karat.tables.comparison import AnswerChange

CURVE_ROWS = 12
_QUERIES = ("query", "queries")
_COUNTS = {
    "empty": "Empty",
    "missing": "Missing",
    "failed": "Failed",
    "undefined": "Without a value",
    "unjudged": "Not judged",
}
to_latex = results_table
INTERVAL = "95 % interval of the value"


def show(results: Results, out: Console, *, full: bool = False, all_notes: bool = False) -> None:
    draw(main_table(results), out)
    if full:
        for table in _in_full(results.results):
            draw(table, out)
    for table in slices(results):
        draw(table, out)
    for table in others(results):
        draw(table, out)
    if full:
        for silent in results.no_answer:
            draw(curve(silent), out)
    for run in dict.fromkeys(row.run for row in results.per_query):
        draw(_queries([row for row in results.per_query if row.run == run], run), out)
    for run, about in results.about.items():
        out.print(plain(f"{run}: {brief(about)}", "dim"))
    show_footnotes(results.notes, out, every=full or all_notes)


def to_csv(results: Results) -> str:
    if results.per_query:
        return csv_table(results.per_query_rows())
    rows = [asdict(row) for row in [*results.results, *results.slices]]
    if not results.slices:
        rows = [{k: v for k, v in row.items() if k not in {"attribute", "slice"}} for row in rows]
    return csv_table(rows)


def to_markdown(results: Results) -> str:
    """A table of all queries and one per attribute, runs as rows, measures as columns; notes."""
    tables = [_grid(results.results, None)]
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        tables.append(_grid([r for r in results.slices if r.attribute == attribute], attribute))
    tables += [*others(results), *about_runs(results)]
    parts = list(map(markdown, tables))
    if results.notes:
        parts.append(listed(results.notes))
    return "\n".join(parts)


def main_table(results: Results, *, bands: bool = False) -> Table:
    """Every measure of every run; the run is the title if it is the only one."""
    rows = by_measure(results.results)
    title = rows[0].run if rows and not _several(rows) else ""
    judged = not results.fully_judged
    return values(rows, title=title, digits=4, judged=judged, bands=bands, counts=False)


def values(
    rows: Sequence[Result],
    *,
    title: str = "",
    digits: int = 3,
    sliced: bool = False,
    judged: bool = True,
    bands: bool = False,
    counts: bool = True,
    links: Mapping[Any, str] | None = None,
    views: Mapping[tuple[str, str | None], str] | None = None,
) -> Table:
    """Values of runs, of all queries or of slices of one measure: the table of every medium.

    ``bands`` are what ties and unjudged documents could change, ``counts`` the queries without an
    answer or value. On pages, ``links`` lead from (measure, None) or slice to queries, and
    ``views`` name the view that a slice's link opens.
    """
    links = links or {}
    named = Column("slice", "Slice", link=lambda row: links.get(row.slice),
                   view=lambda row: (views or {}).get((row.measure, None)))  # fmt: skip
    if not sliced:
        named = Column("measure", "Measure", link=lambda row: links.get((row.measure, None)))

    def band(row: Result, low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return DASH
        shown = to(value_text(row, low), value_text(row, high))
        return shown if moves(row, low, high) else ""

    columns = [
        named,
        Column("run", "Run", shown=_several(rows)),
        Column("value", "Value", "number", text=lambda row: _value(row, row.value, digits),
               style=lambda row: "" if row.value is None else "strong"),
        Column("ci_low", "95 %", "number", high="ci_high", optional=True, help=INTERVAL),
        Column("n", "Queries", "count", short="n"),
        Column("judged", "Judged", "share", shown=judged, optional=True),
        *(Column(name, head, "count", shown=counts and any(getattr(r, name) for r in rows))
          for name, head in _COUNTS.items()),
        Column("tie_low", "Tie band", "number", shown=bands, optional=True,
               text=lambda row: band(row, row.tie_low, row.tie_high)),
        Column("unjudged_low", "Unjudged band", "number", shown=bands, optional=True,
               text=lambda row: band(row, row.unjudged_low, row.unjudged_high)),
    ]  # fmt: skip
    return Table(title, columns, rows, group="" if sliced or not _several(rows) else "measure")


def bounds(results: Results, digits: int = 3) -> Table:
    columns = [
        Column("measure", "Measure"),
        Column("run", "Run"),
        Column("value", "Value", "number", digits=digits),
        Column("tie_low", "Ties", "number", high="tie_high", digits=digits),
        Column("unjudged_low", "Unjudged", "number", high="unjudged_high", digits=digits,
               shown=not results.fully_judged),
        Column("tied", "Tied documents", "share"),
    ]  # fmt: skip
    return Table("Values", columns, by_measure(results.results))


def by_measure(rows: Sequence[Result]) -> list[Result]:
    order = {name: at for at, name in enumerate(dict.fromkeys(row.measure for row in rows))}
    return sorted(rows, key=lambda row: order[row.measure])


def slices(results: Results) -> Iterator[Table]:
    for attribute in dict.fromkeys(row.attribute for row in results.slices):
        for run in dict.fromkeys(row.run for row in results.slices):
            rows = [r for r in results.slices if r.attribute == attribute and r.run == run]
            yield _pivot(f"{run}, by {attribute}", str(attribute), rows, "measure")


def breakdown(results: Results, attribute: str, measure: str) -> Table:
    rows = [r for r in results.slices if r.attribute == attribute and r.measure == measure]
    return _pivot(f"{measure} by {attribute}", attribute, rows, "run")


def others(results: Results) -> Iterator[Table]:
    if results.no_answer:
        yield silence(results.no_answer)
    if results.latency:
        yield latency(results.latency)
    if results.outcomes:
        yield outcomes(results.outcomes)
    if results.machine_grades:
        yield from machine_grades(results.machine_grades)


def silence(rows: Sequence[NoAnswer]) -> Table:
    columns = [
        Column("run", "Run"),
        Column("n", "Queries", "count", short="n"),
        Column("silent", silence_heading(rows), "count"),
        Column("share", "Share", "share"),
    ]
    return Table("Queries without a right answer", columns, rows)


def curve(row: NoAnswer) -> Table:
    """The effect of thresholds on the best score, at most a dozen."""
    points = thinned(row.curve, CURVE_ROWS)
    shown = [f"{point.threshold:g}" for point in points]
    for place in range(1, len(shown)):
        if shown[place] == shown[place - 1]:  # the last is just above the highest score
            shown[place] = f"above {shown[place]}"
    texts = dict(zip(map(id, points), shown, strict=True))
    columns = [
        Column("threshold", "Score", "number", text=lambda point: texts[id(point)]),
        Column("silent_no_answer", "No answer, silent", "share"),
        Column("silent_answerable", "Answerable, silent", "share"),
    ]
    return Table(f"{row.run}: withhold answers whose best score is below …", columns, points)


def latency(rows: Sequence[Latency]) -> Table:
    names = {"p50_us": "p50", "p95_us": "p95", "p99_us": "p99", "max_us": "Slowest"}
    columns = [Column(name, heading, "ms") for name, heading in names.items()]
    heads = [Column("run", "Run"), Column("n", "Queries", "count", short="n")]
    return Table("Latency, milliseconds", [*heads, *columns], rows)


def answer_changes(rows: Sequence[AnswerChange]) -> Table:
    """Latency and answers of candidates, against the baseline."""

    def interval(row: AnswerChange) -> str:
        if row.ci_low is None or row.ci_high is None:
            return DASH
        return to(_answer(row, row.ci_low, sign=True), _answer(row, row.ci_high, sign=True))

    columns = [
        Column("candidate", "Run", shown=len({row.candidate for row in rows}) > 1),
        Column("what", "Answers"),
        Column("baseline_value", "From", "number", text=lambda r: _answer(r, r.baseline_value)),
        Column("candidate_value", "To", "number", text=lambda r: _answer(r, r.candidate_value)),
        Column("difference", "Change", "signed",
               text=lambda row: _answer(row, row.difference, sign=True)),
        Column("ci_low", "95 %", "signed", text=interval, optional=True),
        Column("n", "Queries", "count", short="n"),
        Column("verdict", "Verdict", "verdict"),
    ]  # fmt: skip
    return Table("Speed and answers", columns, rows)


def what_changed(rows: Sequence[AboutChange]) -> Table:
    """Recorded facts in which candidates differ from the baseline."""
    columns = [
        Column("candidate", "Run", shown=len({row.candidate for row in rows}) > 1),
        Column("key", "About", "code"),
        Column(
            "baseline_value", "Baseline", "code", text=lambda row: _recorded(row.baseline_value)
        ),
        Column(
            "candidate_value", "Candidate", "code", text=lambda row: _recorded(row.candidate_value)
        ),
    ]
    return Table("What changed", columns, rows)


def about_runs(results: Results) -> list[Table]:
    """The recorded facts of each run, if there are any."""
    rows = [{"run": run, "about": brief(about)} for run, about in results.about.items()]
    columns = [Column("run", "Run"), Column("about", "About")]
    return [Table("About the runs", columns, rows)] if rows else []


def outcomes(rows: Sequence[Outcome]) -> Table:
    columns = [
        Column("measure", "Measure"),
        Column("run", "Run", shown=len({row.run for row in rows}) > 1),
        Column("outcome", "Outcome"),
        Column("spearman", "Spearman", "number"),
        Column("ci_low", "95 %", "number", high="ci_high", digits=2),
        Column("kendall", "Kendall", "number"),
        Column("auc", "AUC", "number"),
        Column("n", "Queries", "count", short="n"),
    ]
    return Table("With outcomes, over queries", columns, rows)


def machine_grades(rows: Sequence[MachineMean]) -> Iterator[Table]:
    """What people's grades say together with a machine's, and alone; what more would buy."""
    kind: Kind = "number" if rows[0].baseline is None else "signed"
    columns = [
        Column("measure", "Measure"),
        Column("run", "Run", shown=len({row.run for row in rows}) > 1),
        Column("estimate", "Both", kind),
        Column("ci_low", "95 %", kind, high="ci_high"),
        Column("people", "People alone", kind, short="People"),
        Column("people_low", "95 %", kind, high="people_high"),
        Column("machine", "Machine alone", kind, short="Machine"),
        Column("rho", "ρ", "number", digits=2),
        Column("effective", "Worth", "number", digits=1,
               help="Queries that people alone would have to judge for as narrow an interval."),
    ]  # fmt: skip
    many = counted(rows[0].judged, *(("pair", "pairs") if rows[0].unit == "pair" else _QUERIES))
    judge = f"{rows[0].judge}{'' if rows[0].certified else ' (uncertified)'}"
    title = f"With machine grades of {judge}; people judged {many}"
    yield Table(title, columns, rows)
    if any(row.dollars_queries is not None or row.minutes_queries is not None for row in rows):
        more = [
            *columns[:2],
            columns[-1],
            Column("dollars_queries", "Queries for $10", "number", digits=0, optional=True),
            Column("dollars_effective", "Worth then", "number", digits=1, optional=True),
            Column("minutes_queries", "Queries in 10 min", "number", digits=1, optional=True),
            Column("minutes_effective", "Worth then", "number", digits=1, optional=True),
        ]
        yield Table("What more judging would buy: by the machine, by people", more, rows)


def with_interval(row: Result | None, *, brackets: bool = False, digits: int = 3) -> str:
    if row is None or row.value is None:
        return DASH
    shown = _value(row, row.value, digits)
    if row.ci_low is None or row.ci_high is None or row.aggregate == "sum":
        return shown
    ends = to(f"{row.ci_low:.{digits - 1}f}", f"{row.ci_high:.{digits - 1}f}")
    return f"{shown} ({ends})" if brackets else f"{shown} {ends}"


def _in_full(rows: Sequence[Result]) -> Iterator[Table]:
    """All digits and counts, and the bands if there are any."""
    rows = by_measure(rows)
    names = [Column("measure", "Measure"), Column("run", "Run", shown=_several(rows))]

    def table(title: str, *columns: Column) -> Table:
        return Table(title, [*names, *columns], rows, group="measure" if _several(rows) else "")

    def end(name: str, heading: str) -> Column:
        return Column(name, heading, "number", text=lambda r: value_text(r, getattr(r, name)))

    digits = {"value": "Value", "ci_low": "From", "ci_high": "To"}
    yield table(
        "All digits",
        *(Column(name, heading, "number", text=partial(_digits, name))
          for name, heading in digits.items()),
        Column("ci_method", "Method"),
    )  # fmt: skip
    counts = {"n": "Queries"} | _COUNTS
    yield table(
        "Queries",
        *(Column(name, heading, "count") for name, heading in counts.items()),
        Column("tied", "Tied", "share"),
    )
    if any(row.tie_high is not None or row.unjudged_high is not None for row in rows):
        yield table(
            "Could be",
            end("tie_low", "Tied: low"), end("tie_expected", "Mean"), end("tie_high", "High"),
            end("unjudged_low", "Unjudged: low"), end("unjudged_high", "High"),
        )  # fmt: skip


def _pivot(title: str, attribute: str, rows: Sequence[Result], across: str) -> Table:
    """Slices as rows; the names of ``across`` (measures or runs) as columns."""
    names = list(dict.fromkeys(getattr(row, across) for row in rows))
    lines: dict[str, dict[str, Any]] = {}
    for row in rows:
        line = lines.setdefault(str(row.slice), {"": str(row.slice), "n": 0})
        line |= {f"_{getattr(row, across)}": row, "n": max(line["n"], row.n)}
    columns = [
        Column("", attribute),
        Column("n", "Queries", "count", short="n"),
        *(Column(f"_{name}", name, "number", text=partial(_valued, name))
          for name in names),
    ]  # fmt: skip
    return Table(title, columns, list(lines.values()), keys=2)


def _valued(name: str, line: Mapping[str, Any], **how: Any) -> str:
    return with_interval(line.get(f"_{name}"), **how)


def _grid(rows: Sequence[Result], attribute: str | None) -> Table:
    """Runs, or runs and slices, as rows; measures as columns."""
    lines: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in rows:
        line = lines.setdefault((row.run, row.slice), {"run": row.run, "slice": row.slice})
        line |= {f"_{row.measure}": row} | ({} if "n" in line else {"n": row.n})
    columns = [
        Column("run", "Run"),
        *([] if attribute is None else [Column("slice", attribute)]),
        *(Column(f"_{name}", name, "number", text=partial(_valued, name, brackets=True, digits=4))
          for name in dict.fromkeys(row.measure for row in rows)),
        Column("n", "Queries", "count", short="n"),
    ]  # fmt: skip
    return Table("", columns, list(lines.values()))


def _queries(rows: Sequence[QueryValue], run: str) -> Table:
    measures = dict.fromkeys(row.measure for row in rows)
    known = dict.fromkeys(name for row in rows for name in row.outcomes or {})
    lines = []
    for query_id, own in groupby(sorted(rows, key=_place(rows)), key=lambda row: row.query_id):
        each = list(own)
        line = {f"_{row.measure}": row.value for row in each}
        line |= {f"+{name}": value for name, value in (each[0].outcomes or {}).items()}
        states = [row.state for row in each if row.state != "ok"]
        lines.append({"query_id": query_id, "state": states[-1] if states else None, **line})
    columns = [
        Column("query_id", "Query"),
        *(Column(f"_{name}", name, "number", digits=4) for name in measures),
        *(Column(f"+{name}", name, "grade") for name in known),
        Column("state", "Answer", "words", text=lambda line: line["state"] or "",
               style=lambda _: "quiet", optional=True),
    ]  # fmt: skip
    return Table(f"{run}, query by query", columns, lines, keys=1)


def _place(rows: Sequence[QueryValue]) -> Any:
    order = {name: at for at, name in enumerate(dict.fromkeys(row.query_id for row in rows))}
    return lambda row: order[row.query_id]


def _several(rows: Sequence[Result]) -> bool:
    return len({row.run for row in rows}) > 1


def _value(row: Result, value: float | None, digits: int) -> str:
    if value is None:
        return DASH
    return f"{value:,.0f}" if row.aggregate == "sum" else f"{value:.{digits}f}".replace("-", "−")


def _digits(name: str, row: Result) -> str:
    value = getattr(row, name)
    return DASH if value is None else f"{value:.12g}"


def _recorded(value: str | None) -> str:
    return "not recorded" if value is None else short(value)


def _answer(row: AnswerChange, value: float, *, sign: bool = False) -> str:
    """A time in milliseconds, or a share of the queries."""
    mark = ("+" if value > 0 else "−" if value < 0 else "") if sign else ""
    if row.what.startswith("latency"):
        return f"{mark}{milliseconds(1000 * abs(value))} ms"
    return f"{mark}{100 * abs(value):.1f} %"
