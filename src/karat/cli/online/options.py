"""Options that the commands of ``karat online`` share: which events, which days, which engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.progress import working
from karat.cli.workspace.workspace import folder

if TYPE_CHECKING:
    from karat.tables.online.events import EventLog
    from karat.tables.workspace import WorkspaceConfig

ENGINES = ("polars", "duckdb", "spark")


def _day(_context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    from karat.tables.days import day_number

    return day_number(text, option.opts[0])


where = options.together(
    folder,
    options.option(
        "--events DIR",
        "Folder of the event store, or its address (s3://BUCKET/FOLDER).  [default: that of the "
        "workspace]",
        type=options.Place(),
    ),
)
"""``start`` (a folder in a workspace) and ``events`` (the folder of an event store)."""
master = options.option(
    "--master URL",
    "With --engine spark: its master.  [default: the existing session, or local]",
)
engine = options.together(
    options.option(
        "--engine",
        "Engine that computes; all give the same results.",
        ENGINES[0],
        type=click.Choice(ENGINES),
    ),
    master,
)
days = options.together(
    options.option(
        "--from first_day DAY",
        "First day, such as 2026-11-01.  [default: the first in the log]",
        callback=_day,
    ),
    options.option(
        "--to last_day DAY",
        "Last day, such as 2026-11-30.  [default: the last in the log]",
        callback=_day,
    ),
)
only = options.option(
    "--only NAME=VALUE",
    "Count only searches with this value of arm, day, hour, class or an attribute of the log, "
    "such as arm=b; device= selects those without one. Repeat for more.",
    multiple=True,
)
classes = options.option(
    "--queries FILE",
    "With --by or --only class: a file of queries with the columns text and class.",
)
rules = options.option(
    "--rule rules NAME=TIME",
    "Override a rule, such as idle=20min, satisfied=15s or purchase=7d.",
    multiple=True,
)
counted = options.together(only, days, engine)
read_log = options.together(
    options.option(
        "--mapping FILE", "With a log file: the meaning of its columns and actions (TOML)."
    ),
    options.option("--timezone ZONE", "With a log file: the time zone in which days begin."),
)
click_log = options.together(
    options.option("--depth RANK", "Leave out lower ranks.", 10, type=click.IntRange(1, 60)),
    options.option(
        "--only NAME=VALUE",
        "Count only searches with this value of arm or an attribute; repeat for more.",
        multiple=True,
    ),
    days,
    read_log,
    rules,
    engine,
)
"""How the log of a click model is counted."""


def click_settings(log: str | Path | None, settings: dict[str, Any]) -> None:
    """The settings of ``click_log`` as verbs take them; checks that the log can be read."""
    from karat.errors import UsageError
    from karat.formats.events.click_pages import looks_like_pages
    from karat.online.rules import rules_from
    from karat.tables.days import day_text

    if log is None or not looks_like_pages(log):
        need_log(settings["engine"])
    for name in ("first", "last"):
        day = settings.pop(f"{name}_day")
        settings[name] = None if day is None else day_text(day)
    pairs = {text: text.partition("=") for text in settings["only"]}
    for text, (name, equals, value) in pairs.items():
        if not (name.strip() and equals and value):
            raise UsageError(f"--only {text}: no value given", fix="--only NAME=VALUE")
    only = {name.strip(): value for name, _, value in pairs.values()}
    settings["only"] = only or None
    settings["rules"] = rules_from(settings["rules"])


def found_workspace(start: Path) -> WorkspaceConfig:
    """The workspace of a folder, by its ``karat.toml`` alone; prints its notes."""
    from karat.cli.workspace.workspace import say_notes
    from karat.formats.own.workspace import find_workspace, read_workspace

    workspace = read_workspace(find_workspace(start))
    say_notes(workspace)
    return workspace


def events_folder(start: Path, events: str | Path | None) -> str | Path:
    """The folder of the event store: the one given, else the workspace's."""
    return found_workspace(start).events if events is None else events


@contextmanager
def counting(settings: dict[str, Any]) -> Iterator[tuple[EventLog, Any, dict[str, Any]]]:
    """The log and the engine that the options name, and the settings of the computation."""
    from karat.engines.frames.opening import open_engine
    from karat.online.rules import rules_from
    from karat.workflows.online.filters import read_only

    engine, master = settings.pop("engine"), settings.pop("master")
    by_rules = rules_from(settings.pop("rules"))
    log = opened_log(settings.pop("start"), settings.pop("events"), engine)
    part = read_only(settings.pop("only"), log)
    with open_engine(engine, master=master) as opened, working("events") as progress:
        yield log, opened, {**settings, "only": part, "rules": by_rules, "progress": progress}


def need_log(engine: str) -> None:
    """Refuse to read a log without the packages that it and the engine need."""
    from karat.cli.workspace.workspace import need

    need("a log of events", "store", *({engine.strip().lower()} & {"duckdb", "spark"}))


def opened_log(start: Path, events: str | Path | None, engine: str) -> EventLog:
    """The log in the event store, after a check that the engine's packages are installed."""
    need_log(engine)
    from karat.store.events.log import read_event_log

    return read_event_log(events_folder(start, events))
