"""karat lint."""

import click


@click.command()
@click.argument("files", nargs=-1, required=True)
def lint(files: tuple[str, ...]) -> None:
    """Say what is wrong with these files, line by line."""
    raise NotImplementedError  # the founder of lint writes this file (click, not typer)
