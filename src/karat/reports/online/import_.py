"""Reports on an import of events, and on the contents of an event store."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from karat.reports.phrases.numbers import counted, first_of
from karat.reports.table import Column, Table
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_notes, show_warnings
from karat.tables.online.events import Imported, LogStatus

_SHOWN = 12  # actions, arms and attributes listed
_IMPORTS = 8  # latest imports listed


def show_imported(found: Imported, out: Console) -> None:
    if found.number is None and not found.files:
        files = counted(len(found.skipped), "file is", "files are")
        out.print(plain(f"Nothing new: {files} already in the event store"))
        return
    files = counted(len(found.files), "file")
    what = "check only, nothing is imported" if found.number is None else f"import {found.number}"
    out.print(
        plain(f"{counted(found.kept, 'event')} of {counted(found.rows, 'row')} in {files}: {what}")
    )
    show_warnings(found.warnings, out)
    if found.skipped:
        were = counted(len(found.skipped), "file was", "files were")
        out.print(plain(f"{were} already in the event store, and skipped", "dim"))
    if found.kinds:
        _show("Kept", ((kind, count, "") for kind, count in found.kinds.items()), out)
    if found.dropped:
        rows = (
            (reason, count, next(iter(found.examples.get(reason, ())), ""))
            for reason, count in found.dropped.items()
        )
        _show("Dropped", rows, out)
    show_notes([*_unknown(found), *found.assumed], out)


def imported_notes(found: Imported) -> list[str]:
    """Sentences on what an import left out and assumed, most important first."""
    dropped = []
    for reason, count in found.dropped.items():
        first = next(iter(found.examples.get(reason, ())), "").partition("\n")[0]
        example = f" ({'the first: ' if count > 1 else ''}{first})" if first else ""
        dropped.append(f"{counted(count, 'row')} left out, {reason}{example}")
    return [*found.warnings, *dropped, *_unknown(found), *found.assumed]


def _unknown(found: Imported) -> list[str]:
    if not found.unknown:
        return []
    actions = [f"{action} ({count:,})" for action, count in found.unknown.items()]
    return [f"unknown actions, kept as other: {first_of(actions, _SHOWN)}"]


def show_held(found: LogStatus, out: Console) -> None:
    days = found.first_day
    if found.last_day != found.first_day:
        days += f" to {found.last_day}"
    simulated = ", simulated" if found.simulated else ""
    out.print(plain(f"{counted(found.rows, 'event')}, {days} ({found.timezone}){simulated}"))
    bots = counted(found.bots, "event of a bot", "events of bots")
    bots += ", excluded from all metrics" if found.bots else ""
    files = counted(found.files, "file")
    out.print(plain(f"{files}, {found.size / 1e6:,.1f} MB; {bots}", "dim"))
    kinds = "Kinds, without bots" if found.bots else "Kinds"
    _show(kinds, ((kind, count, "") for kind, count in found.kinds.items()), out)
    notes = [
        f"{name}: {first_of(values, _SHOWN)}"
        for name, values in (("arms", found.arms), ("attributes", found.attributes))
        if values
    ]
    notes.append(f"logged: {', '.join(found.known)}")
    if found.unknown:
        notes.append(f"never logged: {', '.join(found.unknown)}")
    show_notes(notes, out)
    columns = [
        Column("number", "Import", "count"),
        Column("time_us", "When (UTC)", "time"),
        Column("files", "Files", "count", value=lambda item: len(item.files)),
        Column("rows", "Rows", "count"),
        Column("kept", "Kept", "count"),
    ]
    if found.imports:
        draw(Table("", columns, found.imports[-_IMPORTS:]), out)
    if len(found.imports) > _IMPORTS:
        before = counted(len(found.imports) - _IMPORTS, "import")
        out.print(plain(f"and {before} earlier", "dim"))


def _show(heading: str, rows: Iterable[tuple[str, int, str]], out: Console) -> None:
    columns = [
        Column("name", heading, text=lambda row: row[0]),
        Column("rows", "Rows", "count", value=lambda row: row[1]),
        Column("example", "The first", optional=True, text=lambda row: row[2].partition("\n")[0]),
    ]
    draw(Table("", columns, list(rows)), out)
