"""Options that the commands of ``karat online`` share: which events, which days, which engine."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.options import Command
from karat.cli.workspace.workspace import folder

if TYPE_CHECKING:
    from karat.tables.online.events import EventLog
    from karat.tables.workspace import WorkspaceConfig

ENGINES = ("polars", "duckdb", "spark")


def where(command: Command) -> Command:
    """Where events are kept: parameters ``start`` (of a workspace) and ``events`` (a folder)."""
    option = click.option(
        "--events",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The folder that keeps events.  [default: that of the workspace]",
    )
    return folder(option(command))


def engine(command: Command) -> Command:
    """What computes: parameters ``engine`` (its name) and ``master`` (of Spark, or None)."""
    for option in (
        click.option(
            "--master",
            metavar="URL",
            help="With --engine spark: its master.  [default: the session there is, or local]",
        ),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default=ENGINES[0],
            show_default=True,
            help="What computes it; all give the same.",
        ),
    ):
        command = option(command)
    return command


def days(command: Command) -> Command:
    """Which days: parameters ``first_day`` and ``last_day``, in days since 1970-01-01, or None."""
    for option in (
        click.option(
            "--to",
            "last_day",
            metavar="DAY",
            callback=_day,
            help="No later day, as in 2026-11-30.  [default: the last there is]",
        ),
        click.option(
            "--from",
            "first_day",
            metavar="DAY",
            callback=_day,
            help="No earlier day, as in 2026-11-01.  [default: the first there is]",
        ),
    ):
        command = option(command)
    return command


def only(command: Command) -> Command:
    """Only a part of the log: parameter ``only``, as typed, which ``read_only`` reads."""
    option = click.option(
        "--only",
        metavar="NAME=VALUE",
        multiple=True,
        help="Count only searches with this value: of arm, day, hour, class or an attribute of the "
        "log, as arm=b; device= is those without one. Repeat for more.",
    )
    return option(command)


def classes(command: Command) -> Command:
    """Where the classes of queries stand: parameter ``queries``, a file or None."""
    option = click.option(
        "--queries",
        metavar="FILE",
        help="With --by or --only class: queries with the columns text and class.",
    )
    return option(command)


def rules(command: Command) -> Command:
    """By which rules: parameter ``rules``, as typed, which ``rules_from`` reads."""
    option = click.option(
        "--rule",
        "rules",
        metavar="NAME=TIME",
        multiple=True,
        help="Another rule than the usual, as idle=20min, satisfied=15s, purchase=7d.",
    )
    return option(command)


def _day(_context: click.Context, option: click.Parameter, said: str | None) -> int | None:
    if said is None:
        return None
    from karat.tables.days import day_number

    return day_number(said, option.opts[0])


def found_workspace(start: Path) -> WorkspaceConfig:
    """The workspace of a folder, by its ``karat.toml`` alone; its notes are said.

    Raises:
        UsageError: the folder is in none.
        InputError: ``karat.toml`` is wrong.
    """
    from karat.cli.workspace.workspace import say_notes
    from karat.formats.own.workspace import find_workspace, read_workspace

    workspace = read_workspace(find_workspace(start))
    say_notes(workspace)
    return workspace


def events_folder(start: Path, events: Path | None) -> Path:
    """The folder that keeps events: the one given, else that of the workspace.

    Raises:
        UsageError: none is given, and ``start`` is in no workspace.
        InputError: ``karat.toml`` is wrong.
    """
    return found_workspace(start).events if events is None else events


def opened_log(start: Path, events: Path | None, engine: str) -> EventLog:
    """What the event store holds; what the engine needs is looked for first.

    Raises:
        UsageError: no store is given, and ``start`` is in no workspace.
        InputError: there are no events in it.
        MissingExtra: what keeps events, or the engine, is not installed.
    """
    from karat.cli.workspace.workspace import need

    needed = {engine.strip().lower()} & {"duckdb", "spark"}
    need("a log of events", "store", *needed)
    from karat.store.events.log import read_event_log

    return read_event_log(events_folder(start, events))


def tell(shown: ModuleType, found: object, output: str, **how: bool) -> None:
    """Print what was found, by a module of ``reports``: for eyes, or as JSON, CSV or Markdown."""
    if output == "table":
        shown.show(found, options.out(), **how)
        return
    name = {"json": "to_json", "csv": "to_csv", "md": "to_markdown"}[output]
    sys.stdout.write(getattr(shown, name)(found))
