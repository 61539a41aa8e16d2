"""Reports on an import of events, and on the contents of an event store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from rich.cells import cell_len
from rich.console import Console

from karat.reports.phrases.numbers import counted
from karat.reports.writers.cells import base, plain
from karat.reports.writers.terminal import show_notes, show_warnings
from karat.tables.online.events import Imported

_SHOWN = 12  # actions, arms and attributes listed
_IMPORTS = 8  # latest imports listed


class _Import(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def time_us(self) -> int: ...
    @property
    def files(self) -> Mapping[str, str]: ...
    @property
    def rows(self) -> int: ...
    @property
    def kept(self) -> int: ...


class Held(Protocol):
    """The contents of an event store, as of ``karat.workflows.online.import_events``."""

    @property
    def rows(self) -> int:
        """Events, including those of bots."""
        ...

    @property
    def bots(self) -> int:
        """Events of bots."""
        ...

    @property
    def kinds(self) -> Mapping[str, int]:
        """Events of each kind, without bots."""
        ...

    @property
    def first_day(self) -> str:
        """The first day."""
        ...

    @property
    def last_day(self) -> str:
        """The last day."""
        ...

    @property
    def timezone(self) -> str:
        """Time zone of days."""
        ...

    @property
    def arms(self) -> Sequence[str]:
        """Arms."""
        ...

    @property
    def attributes(self) -> Sequence[str]:
        """Attributes."""
        ...

    @property
    def known(self) -> Sequence[str]:
        """Columns with a value."""
        ...

    @property
    def unknown(self) -> Sequence[str]:
        """Columns without values."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether events are simulated."""
        ...

    @property
    def files(self) -> int:
        """Files."""
        ...

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    @property
    def imports(self) -> Sequence[_Import]:
        """The imports."""
        ...


def show_imported(found: Imported, out: Console) -> None:
    """Print how many rows of an import were kept, and why others were dropped."""
    if found.number is None and not found.files:
        files = counted(len(found.skipped), "file is", "files are")
        out.print(plain(f"Nothing new: {files} already in the event store"))
        return
    files = counted(len(found.files), "file", "files")
    what = "check only, nothing is imported" if found.number is None else f"import {found.number}"
    out.print(
        plain(
            f"{counted(found.kept, 'event', 'events')} of {counted(found.rows, 'row', 'rows')} "
            f"in {files}: {what}"
        )
    )
    show_warnings(found.warnings, out)
    if found.skipped:
        were = counted(len(found.skipped), "file was", "files were")
        out.print(plain(f"{were} already in the event store, and skipped", "dim"))
    if found.kinds:
        _show("kept", ((kind, count, "") for kind, count in found.kinds.items()), out)
    if found.dropped:
        rows = (
            (reason, count, next(iter(found.examples.get(reason, ())), ""))
            for reason, count in found.dropped.items()
        )
        _show("dropped", rows, out)
    show_notes([*_unknown(found), *found.assumed], out)


def imported_notes(found: Imported) -> list[str]:
    """Sentences on what an import left out and assumed, most important first."""
    dropped = []
    for reason, count in found.dropped.items():
        first = next(iter(found.examples.get(reason, ())), "").partition("\n")[0]
        example = f" ({'the first: ' if count > 1 else ''}{first})" if first else ""
        dropped.append(f"{counted(count, 'row', 'rows')} left out, {reason}{example}")
    return [*found.warnings, *dropped, *_unknown(found), *found.assumed]


def _unknown(found: Imported) -> list[str]:
    if not found.unknown:
        return []
    named = list(found.unknown.items())
    actions = ", ".join(f"{action} ({count:,})" for action, count in named[:_SHOWN])
    more = f" and {len(named) - _SHOWN:,} more" if len(named) > _SHOWN else ""
    return [f"unknown actions, kept as other: {actions}{more}"]


def show_held(found: Held, out: Console) -> None:
    """Print the contents of an event store."""
    days = found.first_day
    if found.last_day != found.first_day:
        days += f" to {found.last_day}"
    simulated = ", simulated" if found.simulated else ""
    out.print(
        plain(f"{counted(found.rows, 'event', 'events')}, {days} ({found.timezone}){simulated}")
    )
    bots = counted(found.bots, "event of a bot", "events of bots")
    bots += ", excluded from all metrics" if found.bots else ""
    files = counted(found.files, "file", "files")
    out.print(plain(f"{files}, {found.size / 1e6:,.1f} MB; {bots}", "dim"))
    kinds = "kinds, without bots" if found.bots else "kinds"
    _show(kinds, ((kind, count, "") for kind, count in found.kinds.items()), out)
    notes = [
        f"{name}: {_some(values)}"
        for name, values in (("arms", found.arms), ("attributes", found.attributes))
        if values
    ]
    notes.append(f"logged: {', '.join(found.known)}")
    if found.unknown:
        notes.append(f"never logged: {', '.join(found.unknown)}")
    show_notes(notes, out)
    table = base()
    for name in ("import", "when (UTC)", "files", "rows", "kept"):
        table.add_column(name, justify="left" if name == "when (UTC)" else "right")
    for item in found.imports[-_IMPORTS:]:
        when = datetime.fromtimestamp(item.time_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M")
        table.add_row(
            str(item.number), when, f"{len(item.files):,}", f"{item.rows:,}", f"{item.kept:,}"
        )
    if found.imports:
        out.print(table)
    if len(found.imports) > _IMPORTS:
        before = counted(len(found.imports) - _IMPORTS, "import", "imports")
        out.print(plain(f"and {before} earlier", "dim"))


def _some(values: Sequence[str]) -> str:
    more = f" and {len(values) - _SHOWN:,} more" if len(values) > _SHOWN else ""
    return ", ".join(values[:_SHOWN]) + more


def _show(heading: str, rows: Iterable[tuple[str, int, str]], out: Console) -> None:
    counts = list(rows)
    table = base()
    table.add_column(
        heading, overflow="fold", min_width=min(24, max(map(cell_len, (r[0] for r in counts))))
    )
    table.add_column("rows", justify="right", no_wrap=True)
    for_example = any(example for _, _, example in counts)
    if for_example:
        table.add_column("the first", overflow="fold")
    for name, count, example in counts:
        first = plain(example.partition("\n")[0])
        table.add_row(plain(name), plain(f"{count:,}"), *([first] if for_example else []))
    out.print(table)
