"""Every command ends its help with examples that can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from karat.cli.main import karat


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        yield " ".join((*path, name)), command


COMMANDS = {"": karat, **dict(commands(karat))}


def examples(command: click.Command) -> list[str]:
    return [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_one_to_three_examples_of_itself(name: str) -> None:
    epilog = COMMANDS[name].epilog or ""
    assert epilog.startswith("\b\nExamples:\n"), "epilog=options.examples(…)"
    found = examples(COMMANDS[name])
    assert 1 <= len(found) <= 3
    for line in found:
        assert re.search(rf"\bkarat {name}".rstrip() + r"\b", line)
        assert len(line) <= 74, "help is 78 columns wide"


@pytest.mark.parametrize("line", [line for each in COMMANDS.values() for line in examples(each)])
def test_an_example_can_be_typed(line: str) -> None:
    inside = re.search(r"\$\(([^)]*)\)", line)
    words = shlex.split(inside[1] if inside else re.split(" >>? ", line)[0])
    assert words.pop(0) == "karat"
    command: click.Command = karat
    context = click.Context(karat, **karat.context_settings)
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context("karat", words, parent=context)
