"""A comparison: its tables, and how a terminal, JSON and CSV show them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from typing import Any

from rich.console import Console

from karat.reports.offline.evaluation import answer_changes, machine_grades, what_changed
from karat.reports.phrases.costs import amount, cost_lines
from karat.reports.phrases.numbers import percent, signed
from karat.reports.table import DASH, Column, Table, record, to
from karat.reports.writers import plain as writing
from karat.reports.writers.latex import comparison_table
from karat.reports.writers.markdown import (
    LONGEST_NAME,
    bullets,
    code,
    folded,
    markdown,
    sentence,
    within,
)
from karat.reports.writers.plain import plain, shortened
from karat.reports.writers.tables import NAME, csv, draw
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.comparison import (
    Comparison,
    CostChange,
    Costs,
    Difference,
    Disagreement,
    NextJudgment,
    Overlap,
    QueryDifference,
    RankChange,
    Review,
)

to_latex = comparison_table
_QUERIES = 5  # that gain, and that lose
_FEW = 3  # of several candidates
_WIDE = 1.0  # largest difference that is drawn
_COSTS = {
    "index": "index size",
    "price": "price of 1,000 queries",
    "judgments": "judgments made",
    "judging": "time of these",
}
_FOLLOWED = 2  # most candidates whose documents are shown without --full
_DISAGREEMENTS = 3
_TOLD = {"better", "worse"}
_BESIDE = 39  # columns of the other columns next to documents
_TEXT = 20  # columns of a query and its text


def to_json(comparison: Comparison) -> str:
    content = comparison.to_dict()
    for name, sliced in (("differences", False), ("slices", True)):
        rows = getattr(comparison, name)
        columns = differences(rows, sliced=sliced).columns
        added = (record(row, columns) for row in rows)
        content[name] = [new | old for new, old in zip(added, content[name], strict=True)]
    return writing.to_json(content)


def to_csv(comparison: Comparison) -> str:
    every = [*comparison.differences, *comparison.slices]
    return csv(differences(every, sliced=bool(comparison.slices), costs=comparison.costs))


def to_markdown(comparison: Comparison) -> str:
    """A comment: verdicts and reasons by candidate, and the deciding queries."""
    parts: list[str] = []
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        rows = _of(comparison.differences, candidate)
        parts.append(f"{code(candidate)} against {code(comparison.baseline)}\n")
        parts.append(markdown(differences(rows), LONGEST_NAME))
        reasons = [f"{row.measure}: {row.reason}" for row in rows]
        parts.append(bullets([*reasons, *cost_lines(comparison, candidate)]))
        answers = _of(comparison.answers, candidate)
        if answers:
            parts.append(markdown(replace(answer_changes(answers), title="")))
        timed = stage_latency(_of(comparison.costs, candidate))
        if timed.rows:
            parts.append(folded(timed.title, markdown(replace(timed, title=""))))
        changes = _of(comparison.changes, candidate)
        if changes:
            changed = replace(what_changed(changes), title="")
            parts.append(folded("What changed", markdown(changed, LONGEST_NAME)))
        first = rows[0].measure
        own = [r for r in comparison.queries if (r.candidate, r.measure) == (candidate, first)]
        for heading, sign in (("Lost most by", -1), ("Gained most by", 1)):
            chosen = [row for row in own if sign * row.difference > 0][:_QUERIES]
            if chosen:
                table = markdown(_deciding_queries(chosen), LONGEST_NAME)
                parts.append(folded(f"{heading} {sentence(first)}", table))
    if comparison.notes:
        parts.append(folded("Notes", bullets(comparison.notes)))
    return within(parts)


def differences(
    rows: Sequence[Difference],
    *,
    title: str = "",
    sliced: bool = False,
    several: bool = False,
    links: Mapping[Any, str] | None = None,
    views: Mapping[tuple[str, str | None], str] | None = None,
    ways: Any = None,
    drawn: Any = None,
    costs: Sequence[Costs] = (),
    judged: Mapping[tuple[str, str], float | None] | None = None,
) -> Table:
    """Candidates against the baseline, over all queries or sliced: the table of every medium.

    On pages, ``links`` lead from (measure, candidate) or slice to queries, ``views`` name the view
    that a slice's link opens; ``ways`` and ``drawn`` give trusted HTML in place of the numbers of
    queries and of the interval. Slices show their latency, if ``costs`` has it; ``judged`` has the
    judged share by measure and run.
    """
    links, views = links or {}, views or {}
    times = {
        (each.candidate, row.attribute, row.slice): row
        for each in costs
        for row in each.changes
        if row.slice is not None
    }
    corrected = any(row.family > 1 for row in rows)
    named = Column("measure", "Measure", link=lambda row: links.get((row.measure, row.candidate)))
    if sliced:
        named = Column("slice", "Slice", link=lambda row: links.get(row.slice),
                       view=lambda row: views.get((row.measure, row.candidate)))  # fmt: skip
    columns = [
        named,
        Column("candidate", "Candidate", shown=several),
        Column("n", "Queries", "count", short="n", shown=sliced),
        Column("baseline_value", "From", "number", drop=1, help="Mean of the baseline"),
        Column("candidate_value", "To", "number", drop=1, help="Mean of the candidate"),
        Column("difference", "Change", "signed", style=lambda _: "strong"),
        Column("ci_low", "95 % alone" if corrected else "95 %", "signed", high="ci_high", drop=3,
               html=drawn, help="95 % interval of the change"
               + (", without the correction of p" if corrected else "")),
        Column("shrunk", "Shrunk", "signed", shown=sliced),
        Column("p_corrected", "p, corrected" if corrected else "p", "p", short="p", optional=True),
        Column("wins", "Better / same / worse", "count", short="+/=/−", drop=2, html=ways,
               help="Number of queries", text=lambda r: f"{r.wins}/{r.ties}/{r.losses}"),
        Column("verdict", "Verdict", "verdict", style=lambda r: "strong" if r.verdict in _TOLD
               or not sliced else ""),
        Column("reason", "Why", "sentence", shown=not sliced),
    ]  # fmt: skip
    if times:
        columns.insert(-2, _latency(times))
    if judged:
        columns.insert(-2, _judged(judged))
    return Table(title, columns, rows)


def axis(rows: Sequence[Difference]) -> float:
    """Half the width of an axis on which the intervals of differences are drawn."""
    ends = [abs(e) for row in rows for e in (row.ci_low, row.ci_high, row.difference) if e]
    return min(_WIDE, max([0.01, *ends]))


def _judged(shares: Mapping[tuple[str, str], float | None]) -> Column:
    """The judged share in the baseline and in the candidate."""

    def text(row: Difference) -> str:
        both = [percent(shares.get((row.measure, run))) for run in (row.baseline, row.candidate)]
        return " → ".join(dict.fromkeys(both)) if all(both) else DASH

    return Column(
        "judged", "Judged", "share", text=text, optional=True,
        value=lambda row: shares.get((row.measure, row.candidate)),
        help="Mean share of the documents above the cutoff that is judged",
    )  # fmt: skip


def _latency(times: Mapping[Any, CostChange]) -> Column:
    """The change of p95 next to the gain of each slice."""

    def found(row: Difference) -> CostChange | None:
        return times.get((row.candidate, row.attribute, row.slice))

    return Column(
        "p95_change_ms", "p95", "signed", drop=4,
        value=lambda row: cost.difference if (cost := found(row)) else None,
        text=lambda row: amount(cost, cost.difference) if (cost := found(row)) else DASH,
        help="Change of the latency p95 over the queries timed in both",
    )  # fmt: skip


def costs_and_answers(comparison: Comparison, candidate: str) -> Table:
    """Speed, answers and costs of a candidate against the baseline."""
    answers = answer_changes(_of(comparison.answers, candidate))
    names = [column.name for column in answers.columns]
    rows = [{c.name: c.cell(row) for c in answers.columns} for row in answers.rows]
    for each in _of(comparison.costs, candidate):
        for row in each.changes:
            if row.slice is None and row.stage is None and not row.what.startswith("latency"):
                values = (row.baseline_value, row.candidate_value)
                both = [DASH if v is None else amount(row, v, sign=False) for v in values]
                change = amount(row, row.difference)
                n = DASH if row.n is None else f"{row.n:,}"
                cells = [candidate, _COSTS.get(row.what, row.what), *both, change, DASH, n, ""]
                rows.append(dict(zip(names, cells, strict=True)))
    columns = [replace(c, text=itemgetter(c.name), value=None) for c in answers.columns]
    columns[1] = replace(columns[1], heading="What")
    return Table("Speed, answers and costs", columns, rows)


def stage_latency(costs: Sequence[Costs]) -> Table:
    """The latency of each stage, of candidates against the baseline."""
    rows = [
        {"candidate": each.candidate} | asdict(row) | {"cost": row}
        for each in costs
        for row in each.stages
    ]

    def time(name: str, *, sign: bool = False) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: DASH if row[name] is None else amount(row["cost"], row[name], sign=sign)

    def interval(row: Mapping[str, Any]) -> str:
        ends = [time(name, sign=True)(row) for name in ("ci_low", "ci_high")]
        return DASH if DASH in ends else to(*ends)

    columns = [
        Column("candidate", "Run", shown=len({row["candidate"] for row in rows}) > 1),
        Column("stage", "Stage", "code"),
        Column("what", "Latency", "words", text=lambda row: row["what"].removeprefix("latency ")),
        Column("baseline_value", "From", "number", text=time("baseline_value")),
        Column("candidate_value", "To", "number", text=time("candidate_value")),
        Column("difference", "Change", "signed", text=time("difference", sign=True)),
        Column("ci_low", "95 %", "signed", text=interval, optional=True),
        Column("n", "Queries", "count", short="n"),
    ]
    return Table("Latency by stage", columns, rows, group="stage")


def standings(comparison: Comparison, rows: Sequence[Any], title: str = "") -> Table:
    columns = [
        Column("measure", "Measure", shown=not title),
        Column("run", "Run"),
        Column("value", "Value", "number"),
        Column("against", f"Against {comparison.baseline}", "words",
               value=comparison.against_baseline),
        Column("groups", "All pairs", shown=comparison.settings.all_pairs),
        Column("n", "Queries", "count", short="n", shown=not title),
    ]  # fmt: skip
    return Table(title, columns, rows)


def finds(comparison: Comparison) -> Table:
    first = comparison.baseline
    pairs = {row.right: row for row in comparison.overlaps if row.left == first}

    def pair(name: str) -> Any:
        return lambda row: getattr(pairs[row.run], name) if row.run in pairs else None

    columns = [
        Column("run", "Run"),
        Column("found", "Found", "count", text=lambda row: f"{row.found:,} of {row.relevant:,}"),
        Column("found_only", "Only there", "count"),
        Column("gained", "Gained", "count", value=pair("relevant_right")),
        Column("lost", "Lost", "count", value=pair("relevant_left")),
        Column("shared", "Shared", "share", value=pair("overlap")),
        Column("rbo", "RBO", "number", digits=2, value=pair("rbo")),
    ]
    return Table(f"Relevant documents in the top {_k(comparison)}", columns, comparison.finds)


def overlaps(comparison: Comparison) -> Table:
    columns = [
        Column("left", "Runs", text=lambda row: f"{row.left}, {row.right}"),
        Column("overlap", "Shared", "share"),
        Column("rbo", "RBO", "number", digits=2),
        Column("relevant_both", "Relevant in both", "count"),
        Column("relevant_left", "Only in the first", "count"),
        Column("relevant_right", "Only in the second", "count"),
    ]
    title = f"How alike the runs are in the top {_k(comparison)}"
    return Table(title, columns, comparison.overlaps)


def bounds(comparison: Comparison) -> Table:
    columns = [
        Column("measure", "Measure"),
        Column("candidate", "Candidate"),
        Column("difference", "Change", "signed"),
        Column("unjudged_low", "Unjudged", "signed", high="unjudged_high"),
        Column("sign_could_flip", "Could reverse the sign", "flag"),
    ]
    return Table("Differences", columns, comparison.differences)


def disagreements(
    comparison: Comparison, rows: Sequence[Disagreement], *, several: bool = False
) -> Table:
    columns = [
        Column("slice", "Over", text=_where),
        Column("candidate", "Candidate", shown=several),
        Column("better", "Better by", text=lambda r: f"{r.better} {signed(r.better_difference)}"),
        Column("worse", "Worse by", text=lambda r: f"{r.worse} {signed(r.worse_difference)}"),
        Column("opposed", "Queries opposed", "count", text=lambda r: f"{r.opposed:,} of {r.n:,}"),
        Column("certain", "By the verdicts", value=comparison.certain,
               text=lambda r: "certain" if comparison.certain(r) else "may be chance"),
    ]  # fmt: skip
    return Table("", columns, rows)


def show(
    comparison: Comparison, out: Console, *, full: bool = False, all_notes: bool = False
) -> None:
    if comparison.standings:
        _show_standings(comparison, out, full=full)
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        _show_candidate(comparison, candidate, out, full=full)
    _show_retrieval(comparison, out, full=full)
    for kind, title in (
        ("bad", "shown though judged not relevant"),
        ("missed", "relevant but not shown"),
    ):
        for candidate in dict.fromkeys(row.candidate for row in comparison.review):
            rows = [r for r in comparison.review if (r.kind, r.candidate) == (kind, candidate)]
            if rows:
                heading = f"{candidate}: {title} (top {_k(comparison)})"
                draw(_review(heading, comparison.baseline, rows), out)
    if comparison.judge_next:
        draw(judge_next(comparison), out)
    if comparison.machine_grades:
        for table in machine_grades(comparison.machine_grades):
            draw(table, out)
    show_footnotes(comparison.notes, out, every=full or all_notes)


def _show_candidate(comparison: Comparison, candidate: str, out: Console, *, full: bool) -> None:
    rows = _of(comparison.differences, candidate)
    draw(differences(rows, title=f"{candidate} against {comparison.baseline}"), out)
    reasons = [f"{row.measure}: {row.reason}" for row in rows]
    show_notes([*reasons, *cost_lines(comparison, candidate)], out)
    out.print()
    answers = _of(comparison.answers, candidate)
    if answers:
        draw(answer_changes(answers), out)
    timed = stage_latency(_of(comparison.costs, candidate))
    if timed.rows:
        draw(timed, out)
    changes = _of(comparison.changes, candidate)
    if changes:
        draw(what_changed(changes), out)
    apart = _of(comparison.disagreements, candidate)
    if apart:
        out.print("Look here first: measures disagree on the direction", style="bold")
        lines = _opposed(comparison, apart)
        shown = lines if full else lines[:_DISAGREEMENTS]
        more = len(lines) - len(shown)
        show_notes([*shown, *([f"and {more} more (--full)"] if more else [])], out)
        out.print()
    own = _of(comparison.slices, candidate)
    first = rows[0].measure
    for attribute in dict.fromkeys(str(row.attribute) for row in own):
        sliced = [row for row in own if row.attribute == attribute]
        for measure in dict.fromkeys(row.measure for row in sliced):
            chosen = [row for row in sliced if row.measure == measure]
            if full or measure == first:
                title = f"{candidate}, {measure} by {attribute}"
                draw(differences(chosen, title=title, sliced=True, costs=comparison.costs), out)
        show_notes(list(_deciding(sliced, comparison.queries, first)), out)
        others = [row for row in sliced if row.measure != first]
        if others and not full:
            show_notes([_other_measures(others)], out)
            out.print()
    moved = [
        row
        for row in comparison.queries
        if (row.candidate, row.measure) == (candidate, first) and row.difference
    ]
    several = len({row.candidate for row in comparison.differences})
    if moved and (full or several <= _FOLLOWED):
        followed: dict[str, list[RankChange]] = {}
        for move in comparison.moves:
            if (move.candidate, move.measure) == (candidate, first):
                followed.setdefault(move.query_id, []).append(move)
        most = len(moved) if full else _FEW if several > 1 else _QUERIES
        heading = f"{candidate}, {first}: queries that change it most"
        draw(_queries(heading, moved, followed, most, out.width - _BESIDE), out)


def _of(rows: Sequence[Any], candidate: str) -> list[Any]:
    return [row for row in rows if row.candidate == candidate]


def _show_standings(comparison: Comparison, out: Console, *, full: bool) -> None:
    measures = list(dict.fromkeys(row.measure for row in comparison.standings))
    for measure in measures if full else measures[:1]:
        rows = [row for row in comparison.standings if row.measure == measure]
        draw(standings(comparison, rows, f"All runs by {measure}"), out)
    show_notes(list(_about_standings(comparison)), out)
    out.print()


def _about_standings(comparison: Comparison) -> Iterator[str]:
    if comparison.settings.all_pairs:
        yield "runs that share no letter are significantly different"
    known = [row for row in comparison.orders if row.kendall is not None]
    if known:
        least = min(known, key=lambda row: row.kendall or 0.0)
        if least.kendall == 1:
            yield "all measures rank the runs in the same order"
        else:
            yield (
                f"measures rank the runs in different orders: {least.left} and {least.right} "
                f"agree least (tau {signed(least.kendall, 2)})"
            )


def _opposed(comparison: Comparison, rows: Sequence[Disagreement]) -> list[str]:
    """A line per slice and measure that is better, with the measures that are worse there."""
    together: dict[tuple[str, str, bool], list[Disagreement]] = {}
    for row in rows:
        together.setdefault((_where(row), row.better, comparison.certain(row)), []).append(row)
    return [
        f"{where}: {better} {signed(opposed[0].better_difference)} but "
        + ", ".join(f"{row.worse} {signed(row.worse_difference)}" for row in opposed)
        + ("" if sure else " (may be chance)")
        for (where, better, sure), opposed in together.items()
    ]


def _show_retrieval(comparison: Comparison, out: Console, *, full: bool) -> None:
    if not comparison.overlaps:
        return
    draw(finds(comparison), out)
    first = comparison.baseline
    others = [row for row in comparison.overlaps if row.left != first]
    if full or len(others) == 1:
        show_notes([_pair(row) for row in others], out)
    out.print(plain(f"  gained, lost, shared, RBO: against {first}", "dim"))
    out.print()


def _where(row: Disagreement) -> str:
    return "all queries" if row.attribute is None else f"{row.attribute} {row.slice}"


def _pair(row: Overlap) -> str:
    rbo = "" if row.rbo is None else f", RBO {row.rbo:.2f}"
    return (
        f"{row.right} against {row.left}: gained {row.relevant_right:,}, lost "
        f"{row.relevant_left:,}, {percent(row.overlap)} of the top {row.k} shared{rbo}"
    )


def _k(comparison: Comparison) -> int:
    return comparison.settings.k


def _review(title: str, baseline: str, rows: Sequence[Review]) -> Table:
    columns = [
        Column("slice", "Slice", shown=any(row.attribute for row in rows),
               text=lambda row: f"{row.attribute} {row.slice}" if row.attribute else "all"),
        Column("query_id", "Query"),
        Column("grade", "Grade", "grade"),
        Column("baseline_rank", baseline, "count"),
        Column("candidate_rank", rows[0].candidate, "count"),
        Column("doc_id", "Document"),
    ]  # fmt: skip
    return Table(title, columns, rows)


def judge_next(
    comparison: Comparison,
    rows: Sequence[NextJudgment] | None = None,
    *,
    link: Callable[[NextJudgment], str] | None = None,
    titles: Mapping[str, str] | None = None,
) -> Table:
    """The pairs whose grades say most about the sign of the first difference.

    On pages, ``titles`` of documents replace ids, and texts of queries theirs.
    """

    def query(row: NextJudgment) -> str:
        return row.query_id if titles is None else row.text or row.query_id

    columns = [
        Column("query_id", "Query", text=query, link=link),
        Column("doc_id", "Document", link=link,
               text=lambda row: (titles or {}).get(row.doc_id, row.doc_id)),
        Column("baseline_rank", comparison.baseline, "count"),
        Column("candidate_rank", comparison.differences[0].candidate, "count"),
        Column("effect", "Could change", "signed"),
    ]  # fmt: skip
    title = "Judging priorities, most informative first"
    return Table(title, columns, comparison.judge_next if rows is None else rows)


def _deciding(
    rows: Sequence[Difference], queries: Sequence[QueryDifference], measure: str
) -> Iterator[str]:
    """The deciding queries of each slice with a verdict."""
    for row in rows:
        if row.measure != measure or row.verdict not in _TOLD or row.difference is None:
            continue
        sign = 1 if row.difference > 0 else -1
        within = [
            f"{query.query_id} {signed(query.difference)}"
            for query in queries
            if (query.candidate, query.measure) == (row.candidate, measure)
            and sign * query.difference > 0
            and row.slice in query.slices.get(str(row.attribute), ())
        ]
        yield f"{row.slice}, most by {', '.join(within[:_QUERIES])}"


def _other_measures(rows: Sequence[Difference]) -> str:
    """The verdicts on slices by measures without a table."""
    verdicts = [
        f"{row.slice} {row.verdict} by {row.measure}" for row in rows if row.verdict in _TOLD
    ]
    names = ", ".join(dict.fromkeys(row.measure for row in rows))
    if not verdicts:
        return f"{names} cannot tell in any of these (--full shows them)"
    return f"{'; '.join(verdicts)}; nothing else by {names} (--full shows them)"


def _deciding_queries(rows: Sequence[QueryDifference]) -> Table:
    columns = [
        Column("query_id", "Query", "code", text=_asked),
        Column("baseline_value", "From", "number"),
        Column("candidate_value", "To", "number"),
        Column("difference", "Change", "signed"),
    ]
    return Table("", columns, rows)


def _queries(
    title: str,
    rows: Sequence[QueryDifference],
    followed: Mapping[str, Sequence[RankChange]],
    most: int,
    width: int,
) -> Table:
    gains = [row for row in rows if row.difference > 0][:most]
    losses = [row for row in rows if row.difference < 0][:most]

    def documents(row: QueryDifference) -> str:
        return "\n".join(_move(move, width) for move in followed.get(row.query_id, ()))

    columns = [
        Column("query_id", "Query", text=lambda row: textwrap.fill(
            shortened(_asked(row), 2 * _TEXT), _TEXT)),
        Column("difference", "Change", "signed"),
        Column("candidate_value", "To", "number"),
        Column("moves", "Rank, grade, document", "words", text=documents),
    ]  # fmt: skip
    return Table(title, columns, [*gains, *losses], ends=frozenset({len(gains) - 1}))


def _asked(row: QueryDifference) -> str:
    return row.query_id if row.text is None else f"{row.query_id} {row.text}"


def _move(row: RankChange, width: int) -> str:
    ranks = f"{_rank(row.baseline_rank)} → {_rank(row.candidate_rank)}"
    line = plain(f"{ranks:<8} {row.grade:>3g}  {row.doc_id}")
    line.truncate(max(width, NAME), overflow="ellipsis")
    return line.plain


def _rank(rank: int | None) -> str:
    return DASH if rank is None else f"{rank:,}"
