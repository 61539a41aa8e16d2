"""A design review: one page, for a terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from karat.reports.diagnosis.diagnosis import entry
from karat.reports.html.page import styled
from karat.reports.phrases.costs import cost_text
from karat.reports.phrases.numbers import counted, signed
from karat.reports.phrases.report import listed, span
from karat.reports.table import Column, Table
from karat.reports.writers.markdown import bullets, markdown, sentence
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_notes
from karat.tables.release.review import DesignReview, ModeChange, ReviewGain, RollbackSignal

_EXAMPLES = 3  # queries named for a mode


@dataclass(frozen=True)
class Section:
    title: str
    text: str = ""
    table: Table | None = None
    points: Sequence[str] = ()


def title(found: DesignReview) -> str:
    return f"Review of {found.candidate} against {found.baseline}"


def sections(found: DesignReview, link: Callable[[str], str] | None = None) -> Iterator[Section]:
    """What the page shows, in its order; ``link`` gives the address of a query."""
    reason = f"{found.gain.reason[:1].upper()}{found.gain.reason[1:]}."
    yield Section("Gain", f"{_gain(found.gain, found.measure)}: {found.gain.verdict}. {reason}")
    bad = counted(found.bad, "query is", "queries are")
    good = counted(_total(found.catches), "turns", "turn")
    line = f"{bad} bad with {found.baseline} (below {found.below:g}); {good} good"
    yield _crossed("What it catches", found.catches, line, link)
    line = f"{counted(_total(found.worse), 'good query turns', 'good queries turn')} bad"
    yield _crossed("What gets worse", found.worse, line, link)
    first = found.slice
    gains = (
        "No slice gains, or none was asked for."
        if first is None
        else f"{first.attribute}={first.slice}: {_gain(first, found.measure)}, {first.verdict}."
    )
    yield Section("First slice to improve", gains)
    costs = "Not measured." if found.costs is None else f"{cost_text(found.costs)}."
    yield Section("Cost", f"{costs[:1].upper()}{costs[1:]}")
    signal = found.rollback
    yield Section("Rollback signal", "None." if signal is None else signal_text(signal))
    yield Section("Not measured", points=found.not_measured)
    if found.notes:
        yield Section("Notes", points=found.notes)


def signal_text(signal: RollbackSignal) -> str:
    where = "".join(f", {name}={value}" for name, value in signal.slice.items())
    limit = f"{signal.limit:.4g}".replace("-", "−")
    when = f"in a window of {signal.window}" if signal.source == "online" else "in an evaluation"
    return f"{signal.metric}{where} {signal.direction} {limit} {when} ({signal.reason})."


def _gain(row: ReviewGain, measure: str) -> str:
    if row.value is None:
        return f"{measure} has no value in both runs"
    ends = f" ({span(row.ci_low, row.ci_high, signs=True)})" if row.ci_low is not None else ""
    return f"{signed(row.value)} {measure}{ends} over {counted(row.n, 'query')}"


def _total(rows: Sequence[ModeChange]) -> int:
    return sum(len(row.queries) for row in rows)


def _crossed(
    heading: str, rows: Sequence[ModeChange], line: str, link: Callable[[str], str] | None
) -> Section:
    if [row.mode for row in rows] == ["debugging"]:
        return Section(heading, f"{line} ({_examples(rows[0])}); no trace says why.")
    columns = (
        Column("mode", "Mode", "words", text=lambda row: entry(row.mode).name),
        Column("queries", "Queries", "count", text=lambda row: f"{len(row.queries):,}"),
        Column("of", "Of", "count", help="All bad queries with this mode"),
        Column("examples", "Such as", value=_examples,
               link=None if link is None else lambda row: link(row.queries[0])),
        Column("evidence", "Evidence of the first", drop=1),
    )  # fmt: skip
    return Section(heading, f"{line}{':' if rows else '.'}", Table("", columns, rows))


def _examples(row: ModeChange) -> str:
    more = len(row.queries) - _EXAMPLES
    return listed(row.queries) if more <= 0 else f"{', '.join(row.queries[:_EXAMPLES])}, …"


def show(found: DesignReview, out: Console) -> None:
    out.print(plain(title(found), "bold"))
    for section in sections(found):
        out.print()
        out.print(plain(section.title, "bold"))
        if section.text:
            out.print(plain(section.text))
        if section.table is not None and section.table.rows:
            draw(section.table, out, close=True)
        show_notes(list(section.points), out)


def to_markdown(found: DesignReview) -> str:
    parts = [f"# {sentence(title(found))}\n"]
    for section in sections(found):
        parts.append(f"## {section.title}\n")
        if section.text:
            parts.append(f"{sentence(section.text)}\n")
        if section.table is not None and section.table.rows:
            parts.append(markdown(section.table))
        if section.points:
            parts.append(bullets(section.points))
    return "\n".join(parts)


def to_page(found: DesignReview) -> str:
    """The review as one HTML file that loads nothing else."""
    content: list[Any] = list(sections(found))
    return styled("styled.html.j2", kind="review", title=title(found), sections=content)
