"""Reports on golden sets: sampling, pools, editions, and what to do next; tables and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from typing import Any, Protocol

import polars as pl
from rich.cells import cell_len
from rich.console import Console, Group

from karat.golden.composition import Composition
from karat.golden.coverage import Coverage
from karat.golden.editions import EditionDifference
from karat.golden.freshness import Stale
from karat.golden.planning import Plan
from karat.golden.sampling import Sample
from karat.golden.traffic import Cleaned
from karat.reports.phrases.numbers import counted, percent
from karat.reports.writers.cells import base, plain
from karat.reports.writers.terminal import show_notes
from karat.tables import Pairs
from karat.tables.golden.agreement import Agreement

_UNSEEN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that a terminal interprets or hides; escaped in JSON."""
_SHOWN = 10  # rows of a long list
_MANY = 1_000_000  # queries; above this the number is not shown


def show_made_of(found: Composition, out: Console) -> None:
    """Print the composition of queries."""
    rows = [row for row in found.frame.iter_rows(named=True) if row["attribute"] != "words"]
    if rows:
        weighed = any(row["weight"] is not None for row in rows)
        heads = ["attribute", "value", "queries", "share", *(["weight"] if weighed else [])]
        table = _table(
            f"{counted(found.queries, 'query', 'queries')}, made of",
            heads,
            (
                [
                    row["attribute"],
                    "–" if row["value"] is None else row["value"],
                    f"{row['queries']:,}",
                    percent(row["share"]),
                    *([percent(row["weight"]) or "–"] if weighed else []),
                ]
                for row in rows
            ),
            left=2,
        )
        out.print(table)
    show_notes(found.warnings, out)


def show_chosen(log: Cleaned, sample: Sample, made_of: Composition, out: Console) -> None:
    """Print the contents of a log, the sample drawn, and the composition of the golden set."""
    out.print(
        plain(
            f"{counted(int(log.frame['count'].sum()), 'search', 'searches')} of "
            f"{counted(log.frame.height, 'query', 'queries')}; "
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
    heads = list(sample.strata.columns)
    out.print(
        _table(
            "drawn",
            heads,
            ([_cell(value) for value in row] for row in sample.strata.iter_rows()),
            left=2,
        )
    )
    show_made_of(made_of, out)
    show_notes([*log.notes, *sample.notes], out)


def show_hard(run: str, queries: pl.DataFrame, notes: Sequence[str], out: Console) -> None:
    """Print the hard queries of a run (``text``, ``reason``)."""
    out.print(
        _table(f"hard for {run}", ["query", "why"], queries.select("text", "reason").rows(), left=2)
    )
    show_notes(notes, out)


def show_plan(found: Plan, out: Console) -> None:
    """Print what it takes to detect a difference, and what other sizes detect."""
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
    priced = any(size.money is not None for size in found.sizes)
    out.print(
        _table(
            f"what a golden set detects (power {100 * found.power:.0f} %, sd {found.sd:g})",
            ["queries", "MDE", "judgments", "hours", *(["price"] if priced else [])],
            (
                [
                    f"{size.queries:,}",
                    f"{size.sees:.3f}",
                    f"{size.judgments:,}",
                    f"{size.hours:,.0f}",
                    *([f"{size.money:,.0f}"] if priced and size.money is not None else []),
                ]
                for size in found.sizes
            ),
            left=0,
        )
    )


def show_pooled(
    out: Console, *, chosen: int, added: int, queries: int, lacking: Sequence[str], waiting: int
) -> None:
    """Print the result of pooling."""
    pairs = counted(chosen, "pair", "pairs")
    out.print(
        f"{pairs} of {counted(queries, 'query', 'queries')} chosen, {added:,} of them new; "
        f"the queue waits for {counted(waiting, 'judgment', 'judgments')}",
        highlight=False,
    )
    if lacking:
        some = ", ".join(lacking[:5])
        more = f" and {len(lacking) - 5:,} more" if len(lacking) > 5 else ""
        show_notes([f"no run returned anything for {some}{more}"], out)


def show_disagreements(frame: pl.DataFrame, queued: int, out: Console) -> None:
    """Print pairs on which raters disagree, and pairs whose imported grade they contradict."""
    between = pl.col("between") == "raters"
    raters, imported = frame.filter(between), frame.filter(~between)
    if raters.height:
        heading = counted(raters.height, "disagreement", "disagreements")
        _show_pairs(heading, raters, ["grades"], out)
    else:
        out.print("no disagreements to adjudicate")
    if imported.height:
        grades = counted(imported.height, "imported grade", "imported grades")
        _show_pairs(f"{grades} contradicted by raters", imported, ["raters", "imported"], out)
        note = "the raters' grades count; --queue-imported queues these pairs for an adjudicator"
        show_notes([note], out)
    if queued:
        show_notes(
            [f"{queued:,} queued for an adjudicator: karat judge --terminal --adjudicate"], out
        )


def _show_pairs(heading: str, frame: pl.DataFrame, heads: Sequence[str], out: Console) -> None:
    """A table of pairs with their grades, also imported ones if in ``heads``."""
    rows = (
        [
            str(row["text"] or row["query_id"]),
            row["doc_id"],
            " ".join(f"{grade:g}" for grade in sorted(row["grades"])),
            *([f"{row['imported']:g}"] if "imported" in heads else []),
        ]
        for row in frame.head(_SHOWN).iter_rows(named=True)
    )
    out.print(_table(heading, ["query", "document", *heads], rows, left=2))
    if frame.height > _SHOWN:
        show_notes([f"and {frame.height - _SHOWN:,} more (--format json)"], out)


def show_gone(gone: pl.DataFrame, out: Console) -> None:
    """Print which queries of an earlier sample are not in the new one."""
    if gone.height:
        reasons = gone.group_by("reason").len().sort("len", descending=True).iter_rows()
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
        show_notes([f"dropped, their judgments kept: {counts}"], out)


class Edition(Protocol):
    """An edition, as far as it is shown."""

    @property
    def name(self) -> str: ...
    @property
    def created_us(self) -> int: ...
    @property
    def queries(self) -> int: ...
    @property
    def grades(self) -> int: ...
    @property
    def sha256(self) -> str: ...
    @property
    def about(self) -> Mapping[str, Any]: ...


def show_editions(listed: Sequence[Edition], out: Console) -> None:
    """Print editions, oldest first, and the agreement in each."""
    if not listed:
        out.print("no editions yet: karat golden freeze NAME")
        return
    out.print(
        _table(
            "editions",
            ["name", "created", "queries", "grades", "SHA-256"],
            (
                [
                    edition.name,
                    _date(edition.created_us),
                    f"{edition.queries:,}",
                    f"{edition.grades:,}",
                    edition.sha256[:12],
                ]
                for edition in listed
            ),
            left=2,
        )
    )
    policies = [(edition.name, edition.about.get("policy")) for edition in listed]
    show_notes([f"{name}: {sentence}" for name, sentence in policies if sentence], out)


def show_diff(found: EditionDifference, out: Console, by: str | None = None) -> None:
    """Print what changed from one edition to another; ``by`` is the attribute of its classes."""
    if not found.queries.height and not found.grades.height:
        out.print("nothing changed")
    if found.queries.height:
        kinds = found.queries.group_by("change").len().sort("change").iter_rows()
        out.print("queries: " + ", ".join(f"{count:,} {kind}" for kind, count in kinds))
    classes = found.classes
    if classes["class"].null_count() == classes.height:
        classes = classes.drop("class")
    rows = ([_cell(value) for value in row] for row in classes.iter_rows())
    classed = "class" in classes.columns
    heads = [by if by and name == "class" else name for name in classes.columns]
    out.print(_table("pairs", heads, rows, left=int(classed)))
    if found.moves.height:
        moved = ([_cell(value) for value in row] for row in found.moves.iter_rows())
        out.print(_table("grades that changed", list(found.moves.columns), moved, left=0))
    show_notes(
        [f"{name} changed from {old} to {new}" for name, (old, new) in found.about.items()], out
    )


def show_coverage(found: Coverage, out: Console) -> None:
    """Print how much of the top of runs is judged."""
    rows = (
        [
            row["run"],
            f"{row['answered']:,} of {row['queries']:,}",
            percent(row["judged"]) or "–",
            f"{row['unjudged']:,}",
        ]
        for row in found.runs.iter_rows(named=True)
    )
    heads = ["run", "answered", f"Judged@{found.k}", "unjudged pairs"]
    out.print(_table("", heads, rows, left=1))
    if len(found.unjudged):
        show_notes(["karat golden pool RUN… queues the unjudged documents"], out)


def show_stale(found: Stale, out: Console) -> None:
    """Print judgments of documents that have changed since (with the ``text`` of each query)."""
    height = found.judgments.height
    if not height:
        out.print(f"none of {counted(found.checked, 'judgment', 'judgments')} is stale")
    else:
        names = ["doc_id", "rater", "grade", "change"]
        chosen = found.judgments.select(pl.coalesce("text", "query_id"), *names).head(_SHOWN)
        rows = ([_cell(value) for value in row] for row in chosen.iter_rows())
        heading = f"{height:,} of {found.checked:,} judgments are of an earlier text"
        out.print(
            _table(heading, ["query", "document", "rater", "grade", "document is"], rows, left=3)
        )
        more = [f"and {height - _SHOWN:,} more (--format json)"] if height > _SHOWN else []
        again = (
            "to have pairs judged again by another rater: raise raters in karat.toml, then karat "
            "golden queue PAIRS"
        )
        show_notes([*more, again], out)
    if found.unknown:
        show_notes([f"{found.unknown:,} judgments do not record the text of the document"], out)


def show_todo(todo: Sequence[tuple[str, str]], out: Console) -> None:
    """Print what to do next, with commands."""
    if not todo:
        out.print("nothing to do")
        return
    out.print("next", style="bold")
    for task, command in todo:
        fits = cell_len(f"  {task}: {command}") <= out.width
        between = " " if fits else "\n    "  # a command stays on one line
        out.print(plain(f"  {task}:{between}") + plain(command, "bold"), soft_wrap=True)


def to_json(result: Any, without: Sequence[str] = ()) -> str:
    """Any result as JSON: objects by fields, tables by rows; ``without`` lists fields to omit."""
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


def _table(heading: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> Any:
    table = base()
    for at, head in enumerate(heads):
        table.add_column(head, justify="left" if at < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(plain(str(cell)) for cell in row))
    # The title of a rich table would be wrapped to the table's width.
    return Group(plain(heading, "bold"), table) if heading else table


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _date(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).strftime("%Y-%m-%d %H:%M")
