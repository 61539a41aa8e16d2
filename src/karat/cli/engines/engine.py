"""karat engine."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options


@options.group("karat engine list", "karat engine check prod")
def engine() -> None:
    """List and check the search engines declared in karat.toml."""


@options.command("karat engine list --format json", of=engine, name="list")
@options.output("table", "json")
def list_(output: str) -> None:
    """List the declared engines."""
    from karat.formats.own.engines import read_engines
    from karat.reports.engines.engines import engines_json, engines_table

    engines = list(read_engines(Path()).values())
    options.print_rows(engines_table(engines), engines_json(engines), output)


@options.command(
    "karat engine check prod",
    "karat engine check prod --query 'red shoes' --format json",
    of=engine,
)
@click.argument("name")
@options.option(
    "--query text TEXT", "The query to ask.  [default: the first of the workspace's golden set]"
)
@options.output("table", "json")
@click.pass_context
def check(ctx: click.Context, name: str, text: str | None, output: str) -> None:
    """Check an engine: reachable, version, index, a query, and ids that match the judgments.

    Exit codes: 0 all checks pass, 1 one fails, 4 the engine does not answer.
    """
    from karat.formats.own.engines import read_engine
    from karat.reports.engines.engines import checks_json, checks_table
    from karat.workflows.engines.check import check_engine, exit_code, golden_set

    config = read_engine(name, Path())
    checks = check_engine(config, *golden_set(text))
    options.print_rows(checks_table(config, checks), checks_json(config, checks), output)
    ctx.exit(exit_code(checks))


@options.command("karat engine import quepid-case.json >> karat.toml", of=engine, name="import")
@click.argument("case", type=click.Path(path_type=Path))
def import_(case: Path) -> None:
    """Print the engine of a Quepid case as a declaration for karat.toml.

    CASE is /api/export/cases/ID.json of Quepid. Its queries and ratings: karat golden import CASE.
    Credentials are left out.
    """
    import sys

    from karat.formats.exchange.quepid_engines import engine_of_case

    declaration, notes = engine_of_case(case)
    print(f"\n{declaration}", end="")  # the file may end with a comment
    for note in notes:
        print(f"karat: {note}", file=sys.stderr)
