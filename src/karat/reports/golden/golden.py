"""Reports on golden sets: sampling, pools, editions, and what to do next; tables and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any

import polars as pl
from rich.cells import cell_len
from rich.console import Console

from karat.golden.composition import Composition
from karat.golden.coverage import Coverage
from karat.golden.editions import EditionDifference
from karat.golden.freshness import Stale
from karat.golden.planning import Plan
from karat.golden.sampling import Sample
from karat.golden.traffic import Cleaned
from karat.reports.phrases.numbers import counted, first_of
from karat.reports.table import DASH, Column, Table, of_texts
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_notes
from karat.tables import Pairs
from karat.tables.golden.agreement import Agreement

_UNSEEN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that a terminal interprets or hides; escaped in JSON."""
_SHOWN = 10  # rows of a long list
_MANY = 1_000_000  # queries; above this the number is not shown


def show_made_of(found: Composition, out: Console) -> None:
    rows = [row for row in found.frame.iter_rows(named=True) if row["attribute"] != "words"]
    columns = [
        Column("attribute", "Attribute"),
        Column("value", "Value"),
        Column("queries", "Queries", "count"),
        Column("share", "Share", "share"),
        Column("weight", "Weight", "share", optional=True),
    ]
    if rows:
        draw(Table(f"{counted(found.queries, 'query')}, made of", columns, rows), out)
    show_notes(found.warnings, out)


def show_chosen(log: Cleaned, sample: Sample, made_of: Composition, out: Console) -> None:
    out.print(
        plain(
            f"{counted(int(log.frame['count'].sum()), 'search')} of "
            f"{counted(log.frame.height, 'query')}; "
            f"{counted(sample.queries.height, 'was', 'were')} drawn"
        )
    )
    counts = [
        (log.empty, "empty search", "empty searches"),
        (log.bots, "search of bots", "searches of bots"),
        (log.merged, "spelling merged with another", "spellings merged with others"),
        *((count, f"query with {kind}", f"queries with {kind}")
          for kind, count in log.personal.items()),
    ]  # fmt: skip
    cleaned = [counted(count, one, several) for count, one, several in counts if count]
    if cleaned:
        masked = " (masked)" if log.masked else " (--mask replaces it)" if log.personal else ""
        out.print(plain(f"of the log: {', '.join(cleaned)}{masked}", "dim"))
    if log.left_out:
        names = ", ".join(log.left_out)
        show_notes([f"columns left out, as they describe searches, not queries: {names}"], out)
    draw(_frame("Drawn", sample.strata, 2), out)
    show_made_of(made_of, out)
    show_notes([*log.notes, *sample.notes], out)


def show_hard(run: str, queries: pl.DataFrame, notes: Sequence[str], out: Console) -> None:
    shown = queries.select(Query="text", Why="reason")
    draw(_frame(f"Hard for {run}", shown, 2), out)
    show_notes(notes, out)


def show_plan(found: Plan, out: Console) -> None:
    if found.needed is None or found.needed.queries > _MANY:
        out.print(
            f"A difference of {found.difference:g} takes more than a million queries",
            highlight=False,
        )
    else:
        need = found.needed
        out.print(
            f"A difference of {found.difference:g} takes {need.queries:,} queries: "
            f"{need.judgments:,} judgments, {need.hours:,.0f} hours of rating"
            + (f", {need.money:,.0f}" if need.money is not None else ""),
            highlight=False,
        )
    columns = [
        Column("queries", "Queries", "count"),
        Column("sees", "MDE", "number"),
        Column("judgments", "Judgments", "count"),
        Column("hours", "Hours", "number", digits=0),
        Column("money", "Price", "number", digits=0, optional=True),
    ]
    title = f"What a golden set detects (power {100 * found.power:.0f} %, sd {found.sd:g})"
    draw(Table(title, columns, found.sizes), out)


def show_pooled(
    out: Console, *, chosen: int, added: int, queries: int, lacking: Sequence[str], waiting: int
) -> None:
    pairs = counted(chosen, "pair")
    out.print(
        f"{pairs} of {counted(queries, 'query')} chosen, {added:,} of them new; "
        f"the queue waits for {counted(waiting, 'judgment')}",
        highlight=False,
    )
    if lacking:
        show_notes([f"no run returned anything for {first_of(lacking, 5)}"], out)


def show_disagreements(frame: pl.DataFrame, queued: int, out: Console) -> None:
    between = pl.col("between") == "raters"
    raters, imported = frame.filter(between), frame.filter(~between)
    if raters.height:
        heading = counted(raters.height, "disagreement")
        _show_pairs(heading, raters, out)
    else:
        out.print("no disagreements to adjudicate")
    if imported.height:
        grades = counted(imported.height, "imported grade")
        _show_pairs(f"{grades} contradicted by raters", imported, out, imported=True)
        note = "the raters' grades count; --queue-imported queues these pairs for an adjudicator"
        show_notes([note], out)
    if queued:
        show_notes(
            [f"{queued:,} queued for an adjudicator: karat judge --terminal --adjudicate"], out
        )


def _show_pairs(heading: str, frame: pl.DataFrame, out: Console, *, imported: bool = False) -> None:
    """A table of pairs with their grades."""

    def grades(row: dict[str, Any]) -> str:
        return " ".join(f"{grade:g}" for grade in sorted(row["grades"]))

    columns = [
        Column("query_id", "Query", text=lambda row: str(row["text"] or row["query_id"])),
        Column("doc_id", "Document"),
        Column("grades", "Raters" if imported else "Grades", "grade", text=grades),
        Column("imported", "Imported", "grade", shown=imported),
    ]
    draw(Table(heading, columns, frame.head(_SHOWN).to_dicts()), out)
    if frame.height > _SHOWN:
        show_notes([f"and {frame.height - _SHOWN:,} more (--format json)"], out)


def show_gone(gone: pl.DataFrame, out: Console) -> None:
    if gone.height:
        reasons = gone.group_by("reason").len().sort("len", descending=True).iter_rows()
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
        show_notes([f"dropped, their judgments kept: {counts}"], out)


def show_editions(listed: Sequence[Any], out: Console) -> None:
    if not listed:
        out.print("no editions yet: karat golden freeze NAME")
        return
    columns = [
        Column("name", "Name"),
        Column("created_us", "Created", "time"),
        Column("queries", "Queries", "count"),
        Column("grades", "Grades", "count"),
        Column("sha256", "SHA-256", "words", text=lambda edition: edition.sha256[:12]),
    ]
    draw(Table("Editions", columns, listed), out)
    policies = [(edition.name, edition.about.get("policy")) for edition in listed]
    show_notes([f"{name}: {sentence}" for name, sentence in policies if sentence], out)


def show_diff(found: EditionDifference, out: Console, by: str | None = None) -> None:
    if not found.queries.height and not found.grades.height:
        out.print("nothing changed")
    if found.queries.height:
        kinds = found.queries.group_by("change").len().sort("change").iter_rows()
        out.print("queries: " + ", ".join(f"{count:,} {kind}" for kind, count in kinds))
    classes = found.classes
    if classes["class"].null_count() == classes.height:
        classes = classes.drop("class")
    if "class" in classes.columns:
        classes = classes.rename({"class": by or "Class"})
    draw(_frame("Pairs", classes, int(classes.width > 4), by), out)
    if found.moves.height:
        draw(_frame("Grades that changed", found.moves, 0), out)
    show_notes(
        [f"{name} changed from {old} to {new}" for name, (old, new) in found.about.items()], out
    )


def show_coverage(found: Coverage, out: Console) -> None:
    columns = [
        Column("run", "Run"),
        Column("answered", "Answered", "count",
               text=lambda row: f"{row['answered']:,} of {row['queries']:,}"),
        Column("judged", f"Judged@{found.k}", "share"),
        Column("unjudged", "Unjudged pairs", "count"),
    ]  # fmt: skip
    draw(Table("", columns, found.runs.to_dicts()), out)
    if len(found.unjudged):
        show_notes(["karat golden pool RUN… queues the unjudged documents"], out)


def show_stale(found: Stale, out: Console) -> None:
    height = found.judgments.height
    if not height:
        out.print(f"none of {counted(found.checked, 'judgment')} is stale")
    else:
        columns = [
            Column("query_id", "Query", text=lambda row: str(row["text"] or row["query_id"])),
            Column("doc_id", "Document"),
            Column("rater", "Rater"),
            Column("grade", "Grade", "grade"),
            Column("change", "Document is"),
        ]
        heading = f"{height:,} of {found.checked:,} judgments are of an earlier text"
        draw(Table(heading, columns, found.judgments.head(_SHOWN).to_dicts()), out)
        more = [f"and {height - _SHOWN:,} more (--format json)"] if height > _SHOWN else []
        again = (
            "to have pairs judged again by another rater: raise raters in karat.toml, then karat "
            "golden queue PAIRS"
        )
        show_notes([*more, again], out)
    if found.unknown:
        show_notes([f"{found.unknown:,} judgments do not record the text of the document"], out)


def show_todo(todo: Sequence[tuple[str, str]], out: Console) -> None:
    if not todo:
        out.print("nothing to do")
        return
    out.print("Next", style="bold")
    for task, command in todo:
        fits = cell_len(f"  {task}: {command}") <= out.width
        between = " " if fits else "\n    "  # a command stays on one line
        out.print(plain(f"  {task}:{between}") + plain(command, "bold"), soft_wrap=True)


def to_json(result: Any, without: Sequence[str] = ()) -> str:
    text = json.dumps(_plain(result, without), indent=2, ensure_ascii=False, allow_nan=False)
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _plain(value: Any, without: Sequence[str] = (), within: str = "") -> Any:
    if isinstance(value, pl.DataFrame):
        return [_plain(row) for row in value.iter_rows(named=True)]
    if isinstance(value, Agreement):
        return value.to_dict()
    if isinstance(value, Pairs):
        return _plain(value.frame)
    if is_dataclass(value):
        named = {field.name: f"{within}{field.name}" for field in fields(value)}
        return {
            name: _plain(getattr(value, name), without, f"{path}.")
            for name, path in named.items()
            if path not in without
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(item, without, f"{within}{key}.") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    return value


def _frame(heading: str, frame: pl.DataFrame, texts: int, kept: str | None = None) -> Table:
    """A frame as a table, its first ``texts`` columns text; the heading ``kept`` stays as it is."""
    heads = [name if name == kept else name[:1].upper() + name[1:] for name in frame.columns]
    return of_texts(heading, heads, [list(map(_cell, row)) for row in frame.iter_rows()], texts)


def _cell(value: object) -> str:
    if value is None:
        return DASH
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
