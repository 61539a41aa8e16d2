"""karat golden split."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened, tell
from karat.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console


@options.command("karat golden split", "karat golden split golden.json --share 0.3")
@click.argument("golden", metavar="[GOLDEN]", required=False)
@folder
@options.option("--share", "Share of the queries for development, such as 0.7 or 2/3.", "1/2")
@options.option(
    "--salt TEXT", "With GOLDEN: salt of the permanent random numbers.  [default: karat]"
)
@options.option("--uses", "List the uses of the held-out part, and exit.")
@options.output("table", "json")
def split(
    golden: str | None, start: Path, share: str, salt: str | None, uses: bool, output: str
) -> None:
    """Split a golden set into queries to develop on and queries that are held out.

    GOLDEN is the file of a golden set, to which the parts are written; without it, the workspace's
    golden set is split. Each query gets the attribute part, dev or held_out, and keeps it: run this
    again after adding queries. Then evaluate, compare and gate take --part, and every use of the
    held-out part is counted.
    """
    if uses:
        tell(_uses(golden, start), output, _show_uses)
        return
    from karat.golden.splitting import SALT, read_share

    of_dev = read_share(share)
    if golden is not None:
        from karat.workflows.offline.parts import split_file

        made = split_file(golden, of_dev, SALT if salt is None else salt)
    elif salt is not None:
        raise UsageError("a workspace has its own salt", fix="leave --salt out, or name a file")
    else:
        with opened(start) as found:
            from karat.workflows.golden.sampling import split_queries

            made = split_queries(found, of_dev, now=clock())
    result = {**asdict(made), "golden": golden}
    tell(result, output, _show)


def _show(made: dict[str, Any], out: Console) -> None:
    from karat.reports.phrases.numbers import counted

    new = counted(len(made["new"]), "query is", "queries are")
    out.print(
        f"dev {made['dev']:,}, held_out {made['held_out']:,}; {new} new in a part", highlight=False
    )
    if not (made["dev"] and made["held_out"]):
        out.print("one part has no queries: add queries, or choose another share", highlight=False)
    if made["golden"] is None:
        out.print(
            "editions and exports made before this have no parts; next: karat golden freeze NAME",
            highlight=False,
        )


def _uses(golden: str | None, start: Path) -> list[dict[str, Any]]:
    from karat.formats.own.workspace import find_workspace
    from karat.workflows.offline.parts import uses_of

    path = find_workspace(start) if golden is None else Path(golden)
    return [use.to_dict() for use in uses_of(path)]


def _show_uses(uses: list[dict[str, Any]], out: Console) -> None:
    from karat.cli.mistakes import printable

    if not uses:
        out.print("the held-out part has not been used")
    for number, use in enumerate(uses, 1):
        runs = ", ".join(f"{run['name']} ({run['sha256'][:8]})" for run in use["runs"])
        code = f", commit {use['commit'][:12]}" if use["commit"] else ""
        line = f"{number}  {use['time'][:19]}Z  {runs}  by {use['by']}{code}"
        out.print(printable(line), highlight=False, markup=False, soft_wrap=True)
