"""Agreement of raters as tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.console import Console

from karat.reports.phrases.numbers import percent
from karat.reports.writers.cells import Cells, base, fitted, plain
from karat.reports.writers.terminal import show_notes
from karat.tables.golden.agreement import Agreement, Confusion, Figure

_SHOWN = 10  # raters, or pairs of them


def to_json(agreed: Agreement) -> str:
    """The documented JSON object."""
    return json.dumps(agreed.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def show_agreement(agreed: Agreement, out: Console, by: str | None = None) -> None:
    """Print the headline, all figures, classes, raters, and the confusion matrix.

    Only the headline if no pair was judged twice, by another rater or as a hidden repeat.

    Args:
        agreed: The agreement.
        out: The console.
        by: The attribute whose values its classes are.
    """
    out.print(plain(agreed.sentence, "bold"))
    selves = [
        figure for one in agreed.one_rater for figure in (one.self_kappa, one.self_equal, one.gold)
    ]
    if not agreed.pairs and all(figure.value is None for figure in (*agreed.figures, *selves)):
        show_notes(agreed.notes, out)
        return
    _show("", "figure", agreed.figures, out)
    if by is not None:
        _show(f"by {by}", by, agreed.classes, out)
    if len(agreed.guidelines) > 1:
        _show("by guideline", "version", agreed.guidelines, out)
    if len(agreed.two_raters) > 1:
        named = [(f"{two.first} and {two.second}", two.kappa) for two in agreed.two_raters[:_SHOWN]]
        _show_named("by pair of raters", "raters", named, out)
    _show_raters(agreed, out)
    if agreed.pairs:
        _show_confusion(agreed.confusion, out)
    drifting = [
        f"{drift.rater}: {drift.what} went from {_value(drift.first)} to {_value(drift.second)}"
        for drift in agreed.drift
        if drift.change.ci_low is not None
        and drift.change.ci_high is not None
        and not drift.change.ci_low <= 0 <= drift.change.ci_high
    ]
    show_notes([*drifting, *agreed.notes], out)


def _show(heading: str, head: str, figures: Sequence[Figure], out: Console) -> None:
    _show_named(heading, head, [(figure.name, figure) for figure in figures], out)


def _show_named(heading: str, head: str, named: Iterable[tuple[str, Figure]], out: Console) -> None:
    table = base(heading)
    table.add_column(head, overflow="fold")
    for name in ("value", "95 %", "queries", "pairs"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, figure in named:
        span = _span(figure)
        count = (f"{figure.queries:,}", f"{figure.pairs:,}")
        table.add_row(plain(name), _value(figure), span, *count)
    out.print(table)


def _show_raters(agreed: Agreement, out: Console) -> None:
    rows: list[Cells] = [
        {
            "rater": plain(one.rater),
            "judged": f"{one.judged:,}",
            "cannot": percent(one.cannot_judge),
            "seconds": "–" if one.seconds is None else f"{one.seconds:.0f}",
            "κ": _value(one.kappa),
            "95 %": _span(one.kappa),
            "leniency": "–" if one.leniency.value is None else _signed(one.leniency.value),
            "self κ": _value(one.self_kappa),
        }
        for one in agreed.one_rater[:_SHOWN]
    ]
    if rows:
        out.print(fitted("each rater against the others", rows, ["seconds", "cannot"], out))


def _show_confusion(confusion: Confusion, out: Console) -> None:
    out.print(
        plain(
            f"{confusion.first} (rows) and {confusion.second} (columns)"
            if confusion.first and confusion.second
            else "every two ratings of a pair, in both orders",
            "bold",
        )
    )
    table = base()
    table.add_column("", justify="right")
    for grade in confusion.grades:
        table.add_column(f"{grade:g}", justify="right")
    for grade, counts in zip(confusion.grades, confusion.counts, strict=True):
        table.add_row(f"{grade:g}", *(f"{count:,}" if count else "·" for count in counts))
    out.print(table)


def _value(figure: Figure) -> str:
    return "–" if figure.value is None else f"{figure.value:.3f}".replace("-", "−")


def _span(figure: Figure) -> str:
    if figure.ci_low is None or figure.ci_high is None:
        return "–"
    return f"{figure.ci_low:.3f} to {figure.ci_high:.3f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
