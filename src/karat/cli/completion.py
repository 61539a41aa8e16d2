"""karat completion, and what the Tab key offers for files, measures and metrics."""

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


class _Offered(click.types.StringParamType):
    """Text that is read elsewhere, of which the shell can complete some values.

    Args:
        offer: What to offer for the beginning of a word.
    """

    def __init__(self, offer: Callable[[str], list[CompletionItem]]) -> None:
        self.offer = offer

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """What the shell shows."""
        return self.offer(incomplete)


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


def completed(command: click.Command) -> None:
    """Give the parameters of a command, and of those below it, what the Tab key offers.

    What a parameter takes is known by its metavar, so that each command says it once.
    """
    for param in command.params:
        names = set(re.findall(r"[A-Z_]+", param.metavar or ""))
        if param.type is not click.STRING:
            continue
        if names & _FILES:
            param.type = _Offered(_files)
        elif "MEASURE" in names:
            param.type = _Offered(_measures)
        elif "METRIC" in names:
            param.type = _Offered(_metrics)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            completed(below)


@click.command(
    epilog=options.examples(
        'eval "$(karat completion bash)"',
        'eval "$(karat completion zsh)"',
        "karat completion fish > ~/.config/fish/completions/karat.fish",
    )
)
@click.argument("shell", type=click.Choice(tuple(_INSTALL)))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and file names in a shell.

    The last line of the script says where to put it.
    """
    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root()
    name = root.info_name or "karat"
    script = found(root.command, {}, name, f"_{name.upper()}_COMPLETE").source()
    click.echo(f"{script.rstrip()}\n\n# To install it: {_INSTALL[shell]}")
