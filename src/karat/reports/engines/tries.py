"""Tries as tables and JSON: variants side by side, and the history of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from karat.reports.offline.comparison import differences
from karat.reports.offline.evaluation import main_table
from karat.reports.phrases.numbers import counted, milliseconds
from karat.reports.table import DASH, Column, Table, to
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_notes
from karat.tables import Results
from karat.tables.about import sentence, short
from karat.tables.comparison import Comparison
from karat.tables.engines import Tried, TriedHit, TriedVariant, TryRow

_TITLE = 26  # characters of a title, of which two columns fit next to each other
STATES = {
    "unjudged": "not judged",
    "undefined": "no relevant document is judged",
    "failed": "no answer",
    "empty": "nothing was returned",
}
"""Why a variant has no value, or 0."""


def value_text(variant: TriedVariant) -> str:
    """The value with its bounds: ``0.631 (0.580 to 0.742)``, or why there is none."""
    if variant.value is None:
        return STATES.get(variant.state, variant.state)
    text = f"{variant.value:.3f}"
    if variant.low is None or variant.high is None or variant.high - variant.low < 0.0005:
        return text
    return f"{text} ({to(f'{variant.low:.3f}', f'{variant.high:.3f}')})"


def change_text(hit: TriedHit | None, *, second: bool) -> str:
    """How the rank of a document differs from that in the other variant."""
    if hit is None:
        return ""
    if hit.other_rank is None:
        return "new" if second else "gone"
    if hit.other_rank == hit.rank:
        return "same"
    return f"{'was' if second else 'now'} {hit.other_rank}"


def labels(tried: Tried) -> list[str]:
    """The engines' names; with A and B if both variants are of one engine."""
    names = [variant.engine for variant in tried.variants]
    if len(set(names)) == len(names):
        return names
    return [f"{name} {letter}" for name, letter in zip(names, "AB", strict=True)]


def show_tried(tried: Tried, out: Console) -> None:
    query = f"{tried.text!r}" + (f" ({tried.query_id})" if tried.query_id else "")
    out.print(plain(query, "bold"), soft_wrap=True)
    draw(variants_table(tried), out)
    if any(variant.hits for variant in tried.variants):
        draw(hits_table(tried), out)
    for label, variant in zip(labels(tried), tried.variants, strict=True):
        if any(hit.parts for hit in variant.hits):
            draw(parts_table(f"Scores of {label}", variant), out)
        if variant.error is not None:
            fix = f"; fix: {variant.fix}" if variant.fix else ""
            show_notes([f"{label}: {variant.error}{fix}"], out)
        if variant.note is not None:
            show_notes([f"{label}: {variant.note}"], out)
    if tried.query_id is None:
        show_notes(["the golden set has no query with this text: nothing is judged"], out)


def variants_table(tried: Tried) -> Table:
    names = labels(tried)
    rows = [
        {"name": name, "variant": each} for name, each in zip(names, tried.variants, strict=True)
    ]

    def of(field: str) -> Any:
        return lambda row: getattr(row["variant"], field)

    columns = [
        Column("name", "Variant", "code"),
        Column("value", tried.measure, text=lambda row: value_text(row["variant"])),
        Column("judged", "Judged", "count", value=of("judged"),
               text=lambda row: f"{row['variant'].judged} of {len(row['variant'].hits)}"),
        Column("latency_us", "ms", "ms", value=of("latency_us")),
        Column("server_us", "Engine ms", "ms", value=of("server_us"), optional=True),
        Column("params", "Parameters", value=of("params"), optional=True,
               text=lambda row: ", ".join(f"{k}={v}" for k, v in row["variant"].params.items())),
    ]  # fmt: skip
    return Table("", columns, rows)


def hits_table(tried: Tried) -> Table:
    """The documents of the variants, rank by rank."""
    most = max(len(variant.hits) for variant in tried.variants)
    rows = [
        [variant.hits[at] if at < len(variant.hits) else None for variant in tried.variants]
        for at in range(most)
    ]
    columns = [Column("rank", "#", "count", value=lambda row: _first(row).rank)]
    for at, label in enumerate(labels(tried)):
        columns += _columns(at, label, len(tried.variants), ranks=bool(at) and tried.answered)
    return Table("", columns, rows)


def parts_table(title: str, variant: TriedVariant) -> Table:
    """What the scores of the documents are made of, the largest part first."""
    columns = [
        Column("rank", "#", "count"),
        Column("doc_id", "Id", "code"),
        Column("score", "Score", "number"),
        Column("parts", "Parts", text=_parts),
    ]
    return Table(title, columns, [hit for hit in variant.hits if hit.parts])


def _parts(hit: TriedHit) -> str:
    parts = sorted((hit.parts or {}).items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {value:.4g}" for name, value in parts)


def _columns(at: int, label: str, variants: int, *, ranks: bool) -> list[Column]:
    def of(row: Any) -> TriedHit | None:
        hit: TriedHit | None = row[at]
        return hit

    def name(row: Any) -> str:
        hit = of(row)
        if hit is None:
            return ""
        text = short(hit.title or hit.doc_id)
        return text if variants == 1 or len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"

    columns = [
        Column(f"title_{at}", label, text=name),
        Column(f"grade_{at}", "Grade", "grade", text=lambda row: _grade(of(row))),
    ]
    if variants == 1:
        score = Column("score", "Score", "number", value=lambda row: row[0].score, optional=True)
        return [Column("doc_id", "Id", "code", value=lambda row: row[0].doc_id), *columns, score]
    if ranks:
        changed = Column("change", "Rank", text=lambda row: change_text(of(row), second=True))
        return [*columns, changed]
    return columns


def _grade(hit: TriedHit | None) -> str:
    return "" if hit is None else DASH if hit.grade is None else f"{hit.grade:g}"


def _first(row: Sequence[TriedHit | None]) -> TriedHit:
    return next(hit for hit in row if hit is not None)


def tries_table(
    tries: Sequence[TryRow], measure: str, link: Callable[[TryRow], str] | None = None
) -> Table:
    """The history: one row for each try, newest first; ``link`` is the address of its page."""
    columns = [
        Column("name", "Try", "code", link=link),
        Column("engine", "Engine", "code", shown=link is not None),
        Column("at_us", "Asked", "time", drop=2),
        Column("value", measure, "number", value=lambda row: row.values.get(measure)),
        Column("p95_us", "p95 ms", "ms", drop=1),
        Column("failed", "Failed", "count", optional=True,
               text=lambda row: f"{row.failed:,}" if row.failed else ""),
        Column("changes", "Changed", text=changed_text, help="Since the try before it"),
    ]  # fmt: skip
    notes = () if tries else ("no tries yet: karat try ENGINE --all",)
    return Table("", columns, tries, notes=notes)


def changed_text(row: TryRow) -> str:
    """What changed since the try before it."""
    if row.before is None:
        return ""
    text = "; ".join(sentence(change) for change in row.changes) or "nothing"
    return f"{text} (same answers as {row.same_as})" if row.same_as else text


def show_try(
    row: TryRow, results: Results | None, comparison: Comparison | None, out: Console
) -> None:
    p95 = "" if row.p95_us is None else f", p95 {milliseconds(row.p95_us)} ms"
    failed = f", {counted(row.failed, 'query')} failed" if row.failed else ""
    out.print(plain(f"stored as {row.name}{p95}{failed}"), soft_wrap=True)
    if results is None:
        show_notes(["nothing is judged yet: judge pairs to see measures"], out)
    else:
        draw(main_table(results), out)
    if row.before is not None:
        show_notes([f"changed since {row.before}: {changed_text(row)}"], out)
    if comparison is not None:
        title = f"{row.name} against {row.before}"
        draw(differences(comparison.differences, title=title), out)
        show_notes([f"{each.measure}: {each.reason}" for each in comparison.differences], out)


def try_json(row: TryRow, results: Results | None, comparison: Comparison | None) -> dict[str, Any]:
    """The object of ``karat try ENGINE --all --format json``."""
    compared = None
    if comparison is not None:
        compared = [asdict(each) for each in comparison.differences]
    return {
        "try": asdict(row),
        "results": None if results is None else [asdict(each) for each in results.results],
        "differences": compared,
    }
