"""karat people."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened, tell

if TYPE_CHECKING:
    from rich.console import Console

    from karat.tables.accounts.people import PersonRow, Role
    from karat.workflows.accounts.accounts import Accounts, Secret

_ROLE = click.Choice(("rater", "engineer", "owner"))
_URL = options.option(
    "--url URL", "URL of the server, such as https://karat.example.org, to print the complete link."
)


@options.group("karat people invite anna --role owner")
def people() -> None:
    """Manage the accounts of a served workspace.

    Invite the first owner with --role owner.
    """


@options.command("karat people list", of=people, name="list")
@folder
@options.output("table", "json")
def list_people(start: Path, output: str) -> None:
    """List all accounts."""
    with _accounts(start) as accounts:
        tell(accounts.all_users(), output, _show)


@options.command("karat people invite anna --role rater", of=people)
@click.argument("name")
@folder
@options.option("--role", "Role of the account.", "rater", type=_ROLE)
@_URL
def invite(name: str, start: Path, role: Role, url: str | None) -> None:
    """Print an invitation link to create an account; it works once, for a week."""
    with _accounts(start) as accounts:
        _say(accounts.invite(name, role, who()), name, url)


@options.command("karat people new-password anna", of=people)
@click.argument("name")
@folder
@_URL
def new_password(name: str, start: Path, url: str | None) -> None:
    """Print a link to choose a new password for an account."""
    with _accounts(start) as accounts:
        _say(accounts.renew(name, who()), name, url)


@options.command("karat people role anna engineer", of=people, name="role")
@click.argument("name")
@click.argument("role", type=_ROLE)
@folder
def set_role(name: str, role: Role, start: Path) -> None:
    """Change the role of an account, whose user then has to sign in again."""
    with _accounts(start) as accounts:
        accounts.set_role(name, role, who())


@options.command("karat people shut-out anna", of=people)
@click.argument("name")
@folder
def shut_out(name: str, start: Path) -> None:
    """Disable an account, with its sessions and tokens; its judgments stay."""
    with _accounts(start) as accounts:
        accounts.disable(name, who())


@options.command("karat people let-in anna", of=people)
@click.argument("name")
@folder
def let_in(name: str, start: Path) -> None:
    """Enable an account that was disabled."""
    with _accounts(start) as accounts:
        accounts.enable(name, who())


@contextmanager
def _accounts(start: Path) -> Iterator[Accounts]:
    with opened(start) as found:
        from karat.workflows.accounts.accounts import Accounts

        yield Accounts(found.store, clock)


def who() -> str:
    return f"{getpass.getuser()} (command line)"


def _say(secret: Secret, name: str, url: str | None) -> None:
    from karat.cli.mistakes import printable

    if secret.replaced:
        print(f"karat: the earlier link for {printable(name)} no longer works", file=sys.stderr)
    print(f"{(url or '').rstrip('/')}/invited/{secret.text}")


def _show(rows: Sequence[PersonRow], out: Console) -> None:
    from rich.table import Table

    from karat.cli.mistakes import printable
    from karat.web.framework.times import exact

    if not rows:
        out.print("No accounts yet: karat people invite NAME --role owner")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("name", "role", "state", "last seen"):
        table.add_column(head)
    for row in rows:
        state = "active" if row.disabled_us is None else "disabled"
        table.add_row(printable(row.person.name), row.person.role, state, exact(row.seen_us) or "–")
    out.print(table)
