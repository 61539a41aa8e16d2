"""karat serve."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.mistakes import printable
from karat.cli.workspace.workspace import clock, folder, need, say_notes
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.tables.accounts.people import Invitation
    from karat.web.server import Serving

RATER = "KARAT_RATER"
"""Environment variable with the user's name, as for ``karat judge``."""
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", re.IGNORECASE)


def _bytes(_context: click.Context, _option: click.Parameter, text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _SIZES[match[2].upper()]) if match else 0
    if not 0 < size < 2**63:
        raise UsageError(f"invalid file size {text!r}", fix="--max-upload 500MB, or 4GB")
    return size


address = options.together(
    options.option(
        "--port", "Port to listen on; 0 for any free port.", 8000, type=click.IntRange(0, 65535)
    ),
    options.option("--no-browser", "Do not open a browser, only print the link."),
)


@options.command(
    "karat serve",
    "karat serve --port 8080 --no-browser",
    "karat serve --host 0.0.0.0 --name search.example.org --https",
)
@folder
@options.option("--host ADDRESS", "Address to listen on; 0.0.0.0 for all interfaces.", "127.0.0.1")
@address
@options.option("--workers", "Number of worker processes.", 1, type=click.IntRange(1, 64))
@options.option(
    "--base-path base PATH",
    "Path prefix under which a proxy serves it, such as /karat.",
    "",
    show_default=False,
)
@options.option(
    "--name names HOST",
    "Host name of the server; requests for others are refused. Repeat for more.",
    multiple=True,
)
@options.option("--https secure", "A proxy serves it over HTTPS: cookies are sent over HTTPS only.")
@options.option("--max-upload SIZE", "Maximum size of an uploaded file.", "4GB", callback=_bytes)
@options.option(
    "--proxy proxies IP",
    "IP address of a trusted reverse proxy (X-Forwarded-*). Repeat for more.",
    multiple=True,
)
@options.option(
    "--timeout patience_s SECONDS",
    "Timeout for a request, for more of it, and for its response to be read.",
    60.0,
    type=click.FloatRange(1, 3600),
)
@options.option(
    "--connections N",
    "Maximum open connections per address and process; unlimited for a --proxy.",
    256,
    type=click.IntRange(1, 1_000_000),
)
@options.option(
    "--log", "Format of the log on standard error.", "text", type=click.Choice(("text", "json"))
)
def serve(
    start: Path,
    host: str,
    port: int,
    no_browser: bool,
    workers: int,
    base: str,
    names: tuple[str, ...],
    secure: bool,
    proxies: tuple[str, ...],
    log: str,
    **limits: Any,
) -> int:
    """Serve the workspace as web pages, for judging and results in the browser.

    On this machine only, the printed link signs you in. With another address, or with --name,
    --proxy or --https, users need accounts: the first printed link creates an owner, who invites
    the others.
    """
    need_web(start)
    from karat.formats.own.workspace import find_workspace
    from karat.web.framework.settings import Settings
    from karat.web.server import Serving, base_path, host_names, is_local, proxy_addresses

    root = find_workspace(start).parent
    accounts = not is_local(host) or bool(names or proxies or secure)
    settings = Settings(
        root,
        accounts=accounts,
        owner=who(),
        base=base_path(base),
        hosts=host_names(host, names, accounts=accounts),
        secure=secure,
        proxies=proxy_addresses(proxies),
        **limits,
    )
    return go(Serving(settings, host, port, workers, log), browser=not no_browser)


def go(serving: Serving, *, browser: bool) -> int:
    from dataclasses import replace

    from karat.web.server import listen, run, unreached
    from karat.workflows.accounts.accounts import Accounts
    from karat.workflows.workspace.workspace import open_workspace

    settings = serving.settings
    with open_workspace(settings.workspace, now=clock()) as found:
        say_notes(found.workspace)
        listening = listen(serving.host, serving.port)
        serving = replace(serving, port=listening.getsockname()[1])
        accounts = Accounts(found.store, clock)
        if settings.accounts:
            invited = accounts.first_owner()
            link = accounts.first_link(settings.owner)
        else:
            invited = None
            link = f"/link/{accounts.link(accounts.local(settings.owner))}"
    print(f"karat serves {printable(str(settings.workspace))} at {serving.address}/")
    if link is not None:
        words = "Open this to begin" if not settings.accounts else "Create the first owner here"
        print(f"{words} (it works once): {serving.address}{link}")
    if invited is not None:
        print(_again(invited, serving))
    if settings.accounts and not settings.secure:
        print(
            "karat: passwords are sent unencrypted unless a proxy in front of this uses HTTPS; "
            "if one does, add --https",
            file=sys.stderr,
        )
    if unreached(serving):
        print(
            f"karat: {serving.host} is reachable from this machine only: use --host 0.0.0.0, or a "
            "reverse proxy and --proxy",
            file=sys.stderr,
        )
    print("Stop it with Ctrl-C.", flush=True)
    if link is not None and not settings.accounts and browser and has_screen(os.environ):
        _open(f"{serving.address}{link}")
    with listening:
        return run(serving, listening)


def _again(invited: Invitation, serving: Serving) -> str:
    how = ["people", "new-password"] if invited.renews else ["people", "invite"]
    how += [invited.name, *([] if invited.renews else ["--role", "owner"])]
    where = ["-w", str(serving.settings.workspace), "--url", serving.address]
    return printable(
        f"No owner can sign in yet: {invited.name} has not used their link yet. "
        f"If it is lost, print a new one:\n  {shlex.join(['karat', *how, *where])}"
    )


def who() -> str:
    try:
        return os.environ.get(RATER, "").strip() or getpass.getuser()
    except (KeyError, OSError):  # a container may have no user with this id
        return "owner"


def has_screen(environment: dict[str, str] | os._Environ[str]) -> bool:
    """Whether there is a screen to show a browser on."""
    if sys.platform in {"win32", "darwin"}:
        return "SSH_CONNECTION" not in environment
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def need_web(start: Path | None = None) -> None:
    """Raise ``MissingExtra`` if a package that serving needs is not installed."""
    need("karat serve", "web", start=start)


def _open(link: str) -> None:
    import threading
    import webbrowser

    # Some browsers block until they are closed.
    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
