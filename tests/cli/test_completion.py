"""karat completion: the script for a shell, and what the Tab key offers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from karat.cli.main import karat

from .conftest import Typed


def offered(*words: str) -> set[tuple[str, str]]:
    """Kind and value of what is offered for the last word."""
    *before, last = words
    found = ShellComplete(karat, {}, "karat", "_KARAT_COMPLETE")
    return {(item.type, item.value) for item in found.get_completions(before, last)}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_says_how_to_install_it(typed: Typed, shell: str) -> None:
    script = typed(f"completion {shell}").out
    assert f"_KARAT_COMPLETE={shell}_complete" in script
    assert script.splitlines()[-1].startswith("# To install it: ")
    assert f"karat completion {shell}" in script.splitlines()[-1]
    if shell == "zsh":  # which reads the command from the first line
        assert script.startswith("#compdef karat\n")


def test_an_unknown_shell_names_the_others(typed: Typed) -> None:
    assert "bash" in typed("completion bsh", code=2).err


def test_files_measures_and_metrics_are_offered() -> None:
    for words in (
        ("evaluate", "q"),
        ("evaluate", "qrels.txt", "bm25.trec", "q"),
        ("gate", "--policy", "q"),
        ("online", "import", "q"),
        ("trend", "q"),
    ):
        assert offered(*words) == {("file", "q")}
    assert offered("evaluate", "q", "r", "-m", "ndc") == {("plain", "nDCG@10"), ("plain", "nDCG")}
    assert ("plain", "CTR") in offered("online", "evaluate", "-m", "c")
    assert offered("golden", "expo") == {("plain", "export")}
    # What only looks like a file name is not one.
    assert offered("explain", "q", "r", "q4") == set()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "karat"
    program.write_text(f"#!{sys.executable}\nfrom karat.cli.main import main\nmain()\n")
    program.chmod(0o755)
    script = """
    eval "$(karat completion bash)"
    compopt() { echo "compopt $1 $2"; }
    try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _karat_completion karat; echo "$*: ${COMPREPLY[*]}"; }
    try karat comple
    try karat evaluate q
    """
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "karat comple: completion",
        "compopt -o default",
        "karat evaluate q: ",
    ], done.stderr


def test_every_parameter_that_names_a_file_is_completed() -> None:
    def parameters(command: click.Command) -> list[click.Parameter]:
        below = command.commands.values() if isinstance(command, click.Group) else ()
        return [*command.params, *(param for each in below for param in parameters(each))]

    lacking = {
        param.metavar
        for param in parameters(karat)
        if param.type is click.STRING and str(param.metavar).strip("[]…") in {"FILE", "QRELS"}
    }
    assert not lacking
