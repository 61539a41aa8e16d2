"""Grades from clicks: how many of each, what raw click rates get wrong, and agreement with people.

One module for two commands: ``show`` and ``to_markdown`` take the result of either.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from karat.online.clicks.grading import NAIVE
from karat.reports.phrases.numbers import counted, percent
from karat.reports.table import Column, Table, of_texts
from karat.reports.writers.markdown import listed, markdown
from karat.reports.writers.plain import markdown_cell, plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes
from karat.tables.golden.agreement import Figure
from karat.tables.online.clicks import ClickAgreement, ClickAgreementPart, ClickJudgments

_SHOWN = 10  # opposing pairs
_FIRST = 1.5  # mean rank below which a document was mostly shown first


def show(found: ClickJudgments | ClickAgreement, out: Console, *, all_notes: bool = False) -> None:
    out.print(plain(headline(found), "bold"), soft_wrap=True)
    for table in tables(found):
        draw(table, out)
    show_footnotes(_notes(found), out, every=all_notes)


def to_markdown(found: ClickJudgments | ClickAgreement) -> str:
    parts = [f"{markdown_cell(headline(found))}\n", *map(markdown, tables(found))]
    return "\n".join([*parts, listed(_notes(found))])


def headline(found: ClickJudgments | ClickAgreement) -> str:
    """The result in a sentence."""
    if isinstance(found, ClickAgreement):
        kappa = found.all.kappa
        if kappa.value is None:
            return f"agreement of clicks with people not available: {kappa.reason}"
        span = "" if kappa.ci_low is None else f" ({_two(kappa.ci_low)} to {_two(kappa.ci_high)})"
        return (
            f"clicks ({found.origin.model}) agree with people: κ {_two(kappa.value)}{span}, "
            f"{found.weights} weights, {counted(kappa.pairs, 'pair')} of "
            f"{counted(kappa.queries, 'query')}"
        )
    model = "the naive rule" if found.origin.model == NAIVE else found.origin.model
    share = found.graded / found.pairs if found.pairs else 0.0
    written = "not written (preview)" if found.file is None else f"written to {found.file}"
    return (
        f"{found.graded:,} of {counted(found.pairs, 'pair')} shown ({percent(share)}) get a grade "
        f"by {model}; {written}"
    )


def misled(found: ClickJudgments) -> str:
    """A sentence on a document that raw click rates overrate because it was shown first.

    Empty if there is none.
    """
    first = [each for each in found.overrated if each.rank < _FIRST]
    if not first:
        return ""
    pair = min(first, key=lambda each: each.ctr_place)
    return (
        f"Raw click rates overrate {pair.doc_id} for “{pair.text}”: shown first, it was clicked "
        f"{percent(pair.ctr)} of the time, which makes it number {pair.ctr_place} of its query; by "
        f"relevance it is number {pair.value_place}."
    )


def tables(found: ClickJudgments | ClickAgreement) -> list[Table]:
    """The tables of a result, without empty ones."""
    both = _agreement(found) if isinstance(found, ClickAgreement) else _judgments(found)
    return [table for table in both if table.rows]


def _judgments(found: ClickJudgments) -> list[Table]:
    cuts = [None, *found.origin.cuts]
    grades = [
        Column("grade", "Grade", "grade"),
        Column("from", "From", "number", digits=2,
               value=lambda row: cuts[found.origin.grades.index(row.grade)]),
        Column("pairs", "Pairs", "count"),
        Column("share", "Share", "share",
               value=lambda row: row.pairs / found.graded if found.graded else None),
        Column("uncertain", "Uncertain", "count", help="Another grade is in its interval"),
    ]  # fmt: skip
    rated = [
        Column("text", "Query", least=16),
        Column("doc_id", "Document", "code"),
        Column("rank", "Rank", "number", digits=1, help="Mean rank at which it was shown"),
        Column("ctr", "CTR", "share"),
        Column("ctr_place", "CTR place", "count", help="Among its query's documents, by CTR"),
        Column("value", "Relevance", "number", digits=2),
        Column("ci_low", "95 %", "number", high="ci_high", digits=2, drop=1),
        Column("value_place", "Relevance place", "count", help="The same by relevance"),
    ]
    return [
        Table("", grades, found.by_grade),
        Table("Raw click rates overrate", rated, found.overrated),
        Table("Raw click rates underrate", rated, found.underrated),
    ]


def _agreement(found: ClickAgreement) -> list[Table]:
    figures = [found.all.kappa, found.cross_fitted, found.all.ordered, found.all.correlation]
    grades = found.confusion.grades
    counts = [
        [f"{grade:g}", *(f"{count:,}" if count else "·" for count in row)]
        for grade, row in zip(grades, found.confusion.counts, strict=True)
    ]
    oppose = [
        Column("text", "Query", least=16),
        Column("doc_id", "Document", "code"),
        Column("people", "People", "grade"),
        Column("grade", "Clicks", "grade"),
        Column("value", "Relevance", "number", digits=2),
        Column("ci_low", "95 %", "number", high="ci_high", digits=2),
        Column("effective", "Looks", "number", digits=0, help="Effective impressions"),
        Column("rank", "Rank", "number", digits=1, drop=1),
    ]
    return [
        _figures(figures),
        _parts(f"By {found.by}", found.by or "", found.classes),
        _parts("By rank shown", "Ranks", found.ranks),
        of_texts("People (rows) and clicks (columns)", ["", *(f"{g:g}" for g in grades)], counts,
                 texts=0),
        Table("Clicks oppose people", oppose, found.opposing[:_SHOWN]),
    ]  # fmt: skip


def _figures(figures: Sequence[Figure]) -> Table:
    columns = [
        Column("name", "Figure"),
        Column("value", "Value", "number", digits=2),
        Column("ci_low", "95 %", "number", high="ci_high", digits=2),
        Column("queries", "Queries", "count"),
        Column("pairs", "Pairs", "count"),
    ]
    return Table("", columns, figures)


def _parts(title: str, heading: str, parts: Sequence[ClickAgreementPart]) -> Table:
    columns = [
        Column("value", heading),
        Column("kappa", "κ", "number", digits=2, value=lambda part: part.kappa.value),
        Column("interval", "95 %", text=lambda part: _interval(part.kappa)),
        Column("ordered", "Ordered", "share", value=lambda part: part.ordered.value),
        Column("correlation", "Spearman", "number", digits=2, drop=1,
               value=lambda part: part.correlation.value),
        Column("pairs", "Pairs", "count", value=lambda part: part.kappa.pairs),
    ]  # fmt: skip
    return Table(title, columns, parts)


def _interval(figure: Figure) -> str:
    return Column("ci_low", "", "number", high="ci_high", digits=2).cell(figure)


def _two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def _notes(found: ClickJudgments | ClickAgreement) -> list[str]:
    own = _of_agreement(found) if isinstance(found, ClickAgreement) else _of_judgments(found)
    return [*own, *found.notes]


def _of_judgments(found: ClickJudgments) -> list[str]:
    notes = []
    if found.too_few:
        notes.append(
            f"{counted(found.too_few, 'pair')} with fewer than {found.origin.least:g} effective "
            "impressions: no grade"
        )
    if found.unmatched_queries:
        notes.append(
            f"{counted(found.unmatched_queries, 'query', 'queries')} of the log "
            f"({counted(found.unmatched_pairs, 'pair')}) are not in the golden set: left out"
        )
    return notes


def _of_agreement(found: ClickAgreement) -> list[str]:
    notes = []
    if found.best_cuts is not None:
        best = ", ".join(f"{cut:.2f}" for cut in found.best_cuts)
        used = ", ".join(f"{cut:g}" for cut in found.origin.cuts)
        notes.append(f"cut points that agree best: {best}; the grades have {used}")
    if found.oppose:
        notes.append(
            f"{counted(found.oppose, 'pair')} whose interval is on the other side of relevant "
            "than people's grade"
        )
    if found.queued is not None:
        notes.append(f"{counted(found.queued, 'pair')} queued for one more rater")
    notes.append(
        f"{counted(found.only_clicks, 'pair')} graded by clicks only, {found.only_people:,} by "
        "people only"
    )
    return notes
