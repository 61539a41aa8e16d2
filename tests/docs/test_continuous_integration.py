"""The commands of docs/how-to/continuous-integration.md that nobody can run here are parsed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from karat.cli.main import karat

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/continuous-integration.md"


def commands(text: str) -> list[list[str]]:
    """Every karat command in a block of a page, without what the shell does with its output."""
    found = []
    for block in re.findall(r"^```(?:yaml|bash)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            start = re.match(r"\s*(?:- )?(?:run: )?(?=karat )", line)
            if start:
                words = shlex.split(line[start.end() :])
                ends = [at for at, word in enumerate(words) if word in {">", "||", "|"}]
                found.append(words[: min(ends, default=len(words))])
    return found


FOUND = commands(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("words", FOUND, ids=" ".join)
def test_a_command_of_the_page_has_these_options(words: list[str]) -> None:
    name, *arguments = words[1:]
    above = click.Context(karat, **karat.context_settings)  # click keeps what --help is called
    karat.commands[name].make_context(name, arguments, parent=above)


def test_all_commands_of_the_page_are_found() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(FOUND) == len(re.findall(r"karat (?:gate|evaluate|trend) .*--", text))
    assert {words[1] for words in FOUND} == {"gate", "evaluate", "trend"}
    assert any("--save-baseline" in words for words in FOUND)
