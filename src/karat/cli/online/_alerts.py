"""karat online alerts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened

if TYPE_CHECKING:
    from karat.tables.online.alerts import Did

_number = click.argument("number", metavar="ALERT", type=click.IntRange(1, 2**63 - 1))
_note = options.option("--note TEXT", "Why, or what you found; shown with the alert.", "",
                       show_default=False)  # fmt: skip
_output = options.output("table", "json")
_Command = Callable[..., Any]


@click.group(
    epilog=options.examples(
        "karat online alerts list",
        "karat online alerts mute 3 --until 8h --note 'known: index rebuild'",
    )
)
def alerts() -> None:
    """Alerts that watches opened, and what people did about them.

    karat online watch and the server open an alert when a cause appears, and close it when it is
    usual again.
    """


@alerts.command("list", epilog=options.examples("karat online alerts list --all"))
@options.option("--all every", "Also those that are over.")
@folder
@_output
def list_alerts(every: bool, start: Path, output: str) -> None:
    """List the alerts that last, with their state."""
    from karat.reports.online import alerts as shown
    from karat.workflows.online.alerts import alerts as read

    with opened(start) as workspace:
        found = read(workspace, now=clock())
    options.emit(shown, [each for each in found if every or each.lasts], output)


@alerts.command("show", epilog=options.examples("karat online alerts show 3"))
@_number
@folder
@_output
def show(number: int, start: Path, output: str) -> None:
    """Show an alert: what it explains, its queries, and its history."""
    from karat.reports.online import alerts as shown
    from karat.workflows.online.alerts import find

    with opened(start) as workspace:
        options.emit(shown, find(workspace, number, now=clock()), output)


def _act(number: int, action: Did, by: str, start: Path, output: str, **how: Any) -> None:
    from karat.reports.online import alerts as shown
    from karat.workflows.online.alerts import act

    with opened(start) as workspace:
        found = act(workspace, number, action, person=by, now=clock(), **how)
    options.emit(shown, found, output)


def _command(name: str, *examples: str) -> Callable[[_Command], click.Command]:
    options_of = options.together(
        _number,
        _note, options.acting, folder, _output,
    )  # fmt: skip
    command = alerts.command(name, epilog=options.examples(*examples))
    return lambda function: command(options_of(function))


@_command("acknowledge", "karat online alerts acknowledge 3 --note 'looking into it'")
def acknowledge(number: int, **how: Any) -> None:
    """Say that you look into an alert."""
    _act(number, "acknowledged", **how)


@_command("resolve", "karat online alerts resolve 3 --note 'synonyms are back'")
def resolve(number: int, **how: Any) -> None:
    """Say that an alert is dealt with: it is quiet until it comes back after it was usual."""
    _act(number, "resolved", **how)


@_command("reopen", "karat online alerts reopen 3")
def reopen(number: int, **how: Any) -> None:
    """Undo what was done about an alert."""
    _act(number, "reopened", **how)


@alerts.command("mute", epilog=options.examples("karat online alerts mute 3 --until 8h"))
@_number
@options.option(
    "--until TIME", "When the mute ends: 8h, 2d, or 2026-11-21T08:00 (UTC).", required=True
)
@_note
@options.acting
@folder
@_output
def mute(number: int, **how: Any) -> None:
    """Keep an alert from notifying and from home, until a time."""
    _act(number, "muted", **how)
