"""Agreement of raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from karat.reports.table import Column, Table, of_texts
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_notes
from karat.tables.golden.agreement import Agreement, Confusion, Figure

_SHOWN = 10  # raters, or pairs of them
_DIGITS = 2


def show(agreed: Agreement, out: Console, by: str | None = None) -> None:
    """Print the headline, all figures, classes, raters, and the confusion matrix.

    Only the headline if no pair was judged twice, by another rater or as a hidden repeat.

    """
    out.print(plain(agreed.sentence, "bold"))
    selves = [
        figure for one in agreed.one_rater for figure in (one.self_kappa, one.self_equal, one.gold)
    ]
    if not agreed.pairs and all(figure.value is None for figure in (*agreed.figures, *selves)):
        show_notes(agreed.notes, out)
        return
    draw(_figures("", "Figure", agreed.figures), out)
    if by is not None:
        draw(_figures(f"By {by}", by, agreed.classes), out)
    if len(agreed.guidelines) > 1:
        draw(_figures("By guideline", "Version", agreed.guidelines), out)
    if len(agreed.two_raters) > 1:
        named = [
            replace(two.kappa, name=f"{two.first} and {two.second}")
            for two in agreed.two_raters[:_SHOWN]
        ]
        draw(_figures("By pair of raters", "Raters", named), out)
    if agreed.one_rater:
        draw(raters(agreed), out)
    if agreed.pairs:
        draw(_confusion(agreed.confusion), out)
    drifting = [
        f"{drift.rater}: {drift.what} went from {_value(drift.first)} to {_value(drift.second)}"
        for drift in agreed.drift
        if drift.change.ci_low is not None
        and drift.change.ci_high is not None
        and not drift.change.ci_low <= 0 <= drift.change.ci_high
    ]
    show_notes([*drifting, *agreed.notes], out)


def _figures(title: str, heading: str, figures: Sequence[Figure]) -> Table:
    columns = [
        Column("name", heading),
        Column("value", "Value", "number", digits=_DIGITS),
        Column("ci_low", "95 %", "number", high="ci_high", digits=_DIGITS),
        Column("queries", "Queries", "count"),
        Column("pairs", "Pairs", "count"),
    ]
    return Table(title, columns, figures)


def raters(agreed: Agreement) -> Table:

    def of(figure: str, end: str = "value") -> Any:
        return lambda one: getattr(getattr(one, figure), end)

    columns = [
        Column("rater", "Rater"),
        Column("judged", "Judged", "count"),
        Column("cannot_judge", "Cannot", "share", drop=2, help="Could not judge"),
        Column("seconds", "Seconds", "number", digits=0, drop=1, help="Median time of a judgment"),
        Column("kappa", "κ", "number", digits=_DIGITS, value=of("kappa")),
        Column("kappa_interval", "95 %", "number", text=lambda one: _interval(one.kappa)),
        Column("leniency", "Leniency", "signed", digits=_DIGITS, value=of("leniency")),
        Column("self_kappa", "Self κ", "number", digits=_DIGITS, value=of("self_kappa")),
    ]  # fmt: skip
    return Table("Each rater against the others", columns, agreed.one_rater[:_SHOWN])


def _confusion(confusion: Confusion) -> Table:
    title = "Every two ratings of a pair, in both orders"
    if confusion.first and confusion.second:
        title = f"{confusion.first} (rows) and {confusion.second} (columns)"
    rows = [
        [f"{grade:g}", *(f"{count:,}" if count else "·" for count in counts)]
        for grade, counts in zip(confusion.grades, confusion.counts, strict=True)
    ]
    return of_texts(title, ["", *(f"{grade:g}" for grade in confusion.grades)], rows, texts=0)


def _interval(figure: Figure) -> str:
    return Column("ci_low", "", "number", high="ci_high", digits=_DIGITS).cell(figure)


def _value(figure: Figure) -> str:
    return Column("value", "", "number", digits=_DIGITS).cell(figure)
