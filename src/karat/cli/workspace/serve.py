"""karat serve."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.mistakes import printable
from karat.cli.options import Command
from karat.cli.workspace.workspace import clock, folder, need, say_notes
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.store.sql.people import Invitation
    from karat.web.server import Serving

RATER = "KARAT_RATER"
"""The environment variable that says who one is, as for ``karat judge``."""
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", re.IGNORECASE)


def _bytes(_context: click.Context, _option: click.Parameter, said: str) -> int:
    found = _SIZE.fullmatch(said.strip())
    size = int(float(found[1]) * _SIZES[found[2].upper()]) if found else 0
    if not 0 < size < 2**63:
        raise UsageError(f"{said!r} is no size of a file", fix="--max-upload 500MB, or 4GB")
    return size


def address(command: Command) -> Command:
    """Where to serve, and whether to open a browser."""
    for option in (
        click.option("--no-browser", is_flag=True, help="Open no browser; print the link only."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=8000,
            show_default=True,
            help="Port to listen on; 0 for any that is free.",
        ),
    ):
        command = option(command)
    return command


@click.command(
    epilog=options.examples(
        "karat serve",
        "karat serve --port 8080 --no-browser",
        "karat serve --host 0.0.0.0 --name search.example.org --https",
    )
)
@folder
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on; 0.0.0.0 for all of this machine's.",
)
@address
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that answer.",
)
@click.option(
    "--base-path",
    "base",
    metavar="PATH",
    default="",
    help="Path under which a proxy serves it, as /karat.",
)
@click.option(
    "--name",
    "names",
    metavar="HOST",
    multiple=True,
    help="Name that people type for this machine; others are refused. Repeat for more.",
)
@click.option("--https", is_flag=True, help="A proxy speaks HTTPS for it: cookies go no other way.")
@click.option(
    "--max-upload",
    metavar="SIZE",
    default="4GB",
    show_default=True,
    callback=_bytes,
    help="Largest file that may be sent.",
)
@click.option(
    "--proxy",
    "proxies",
    metavar="IP",
    multiple=True,
    help="A proxy that says truly who asks, and how. Repeat for more.",
)
@click.option(
    "--timeout",
    "patience",
    metavar="SECONDS",
    type=click.FloatRange(1, 3600),
    default=60.0,
    show_default=True,
    help="Longest wait for a request, for more of it, or for its answer to be read.",
)
@click.option(
    "--connections",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=256,
    show_default=True,
    help="Open connections of one address, in each process; a --proxy may have any number.",
)
@click.option(
    "--log",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="How the log on standard error is written.",
)
def serve(
    start: Path,
    host: str,
    port: int,
    no_browser: bool,
    workers: int,
    base: str,
    names: tuple[str, ...],
    https: bool,
    max_upload: int,
    proxies: tuple[str, ...],
    patience: float,
    connections: int,
    log: str,
) -> int:
    """Serve the workspace as web pages, for judging in the browser and all that karat shows.

    On this machine alone, a link that is printed lets in whoever types this. With another
    address, or --name, --proxy or --https, people come by accounts: the first link that is
    printed makes an owner, who invites the others.
    """
    need_web(start)
    from karat.formats.own.workspace import find_workspace
    from karat.web.framework.settings import Settings
    from karat.web.server import Serving, base_path, host_names, is_local, proxy_addresses

    root = find_workspace(start).parent
    accounts = not is_local(host) or bool(names or proxies or https)
    settings = Settings(
        root,
        accounts=accounts,
        owner=who(),
        base=base_path(base),
        hosts=host_names(host, names, accounts=accounts),
        secure=https,
        max_upload=max_upload,
        patience_s=patience,
    )
    where = Serving(settings, host, port, workers, proxy_addresses(proxies), log, connections)
    return go(where, browser=not no_browser)


def go(serving: Serving, *, browser: bool) -> int:
    """Print the link, open it if wanted, and serve until somebody stops it.

    Args:
        serving: How.
        browser: Whether to open the link in a browser, where there is a screen for one.
    """
    from dataclasses import replace

    from karat.web.server import first_link, first_owner, listen, run, unreached
    from karat.workflows.accounts.accounts import Accounts
    from karat.workflows.workspace.workspace import open_workspace

    settings = serving.settings
    with open_workspace(settings.workspace, now=clock()) as found:
        say_notes(found.workspace)
        listening = listen(serving.host, serving.port)
        serving = replace(serving, port=listening.getsockname()[1])
        accounts = Accounts(found.store, clock)
        if settings.accounts:
            invited = first_owner(accounts)
            link = first_link(accounts, settings.owner)
        else:
            invited = None
            link = f"/link/{accounts.link(accounts.local(settings.owner))}"
    print(f"karat serves {printable(str(settings.workspace))} at {serving.address}/")
    if link is not None:
        words = "Open this to begin" if not settings.accounts else "The first owner comes by this"
        print(f"{words} (it works once): {serving.address}{link}")
    if invited is not None:
        print(_again(invited, serving))
    if settings.accounts and not settings.secure:
        print(
            "karat: passwords go unencrypted over the network unless a proxy before this speaks "
            "HTTPS; then say --https",
            file=sys.stderr,
        )
    if unreached(serving):
        print(
            f"karat: only this machine reaches {serving.host}: say --host 0.0.0.0, or let a proxy "
            "stand before it and say --proxy",
            file=sys.stderr,
        )
    print("Stop it with Ctrl-C.", flush=True)
    if link is not None and not settings.accounts and browser and has_screen(os.environ):
        _open(f"{serving.address}{link}")
    with listening:
        return run(serving, listening)


def _again(invited: Invitation, serving: Serving) -> str:
    """What to do where the first owner has not come yet: the link was printed at another start."""
    how = ["people", "new-password"] if invited.renews else ["people", "invite"]
    how += [invited.name, *([] if invited.renews else ["--role", "owner"])]
    where = ["-w", str(serving.settings.workspace), "--url", serving.address]
    return printable(
        f"No owner can sign in yet: {invited.name} has not followed the link made for them. "
        f"If it is lost, this prints another:\n  {shlex.join(['karat', *how, *where])}"
    )


def who() -> str:
    """Who types this, as they are called in judgments."""
    try:
        return os.environ.get(RATER, "").strip() or getpass.getuser()
    except (KeyError, OSError):  # a container may know no user by that number
        return "owner"


def has_screen(environment: dict[str, str] | os._Environ[str]) -> bool:
    """Whether a browser that is opened would be seen."""
    if sys.platform in {"win32", "darwin"}:
        return "SSH_CONNECTION" not in environment
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def need_web(start: Path | None = None) -> None:
    """Say how to get what serves, where it is not installed.

    Raises:
        MissingExtra: a package of the extra ``web``, or of ``postgres`` where the store is there,
            is not installed; all of them are named.
    """
    need("karat serve", "web", start=start)


def _open(link: str) -> None:
    import threading
    import webbrowser

    # Some browsers do not return before they are closed.
    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
