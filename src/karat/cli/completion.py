"""karat completion: shell completion of files, measures and metrics."""

from __future__ import annotations

import re
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem, get_completion_class

from karat.cli import options

_FILES = {"BASELINE", "CANDIDATE", "FILE", "HISTORY", "LOG", "PAIRS", "QRELS", "RUN"}
_INSTALL = {
    "bash": """add this line to ~/.bashrc:  eval "$(karat completion bash)\"""",
    "zsh": """add this line to ~/.zshrc, after compinit:  eval "$(karat completion zsh)\"""",
    "fish": "karat completion fish > ~/.config/fish/completions/karat.fish",
}


class _Completed(click.types.StringParamType):
    """Text whose values the shell can complete."""

    def __init__(self, complete: Callable[[str], list[CompletionItem]]) -> None:
        self.complete = complete

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return self.complete(incomplete)


def _files(incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _measures(incomplete: str) -> list[CompletionItem]:
    from karat.measures import DEFAULTS
    from karat.measures.registry import entries

    return _beginning(incomplete, [*DEFAULTS, *(entry.symbol for entry in entries())])


def _metrics(incomplete: str) -> list[CompletionItem]:
    from karat.online.metrics.registry import all_metrics

    return _beginning(incomplete, [metric.name for metric in all_metrics()])


def _beginning(incomplete: str, names: list[str]) -> list[CompletionItem]:
    start = incomplete.casefold()
    return [CompletionItem(n) for n in dict.fromkeys(names) if n.casefold().startswith(start)]


def add_completion(command: click.Command) -> None:
    """Add completion to the parameters of a command and its subcommands, by their metavars."""
    for param in command.params:
        names = set(re.findall(r"[A-Z_]+", param.metavar or ""))
        if param.type is not click.STRING:
            continue
        if names & _FILES:
            param.type = _Completed(_files)
        elif "MEASURE" in names:
            param.type = _Completed(_measures)
        elif "METRIC" in names:
            param.type = _Completed(_metrics)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            add_completion(below)


@options.command(
    'eval "$(karat completion bash)"',
    'eval "$(karat completion zsh)"',
    "karat completion fish > ~/.config/fish/completions/karat.fish",
)
@click.argument("shell", type=click.Choice(tuple(_INSTALL)))
def completion(shell: str) -> None:
    """Print a shell script that completes commands, options and file names.

    The last line of the script says how to install it.
    """
    script_class = get_completion_class(shell)
    assert script_class is not None
    root = click.get_current_context().find_root()
    name = root.info_name or "karat"
    script = script_class(root.command, {}, name, f"_{name.upper()}_COMPLETE").source()
    click.echo(f"{script.rstrip()}\n\n# To install it: {_INSTALL[shell]}")
