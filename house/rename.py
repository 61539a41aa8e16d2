"""Rename things in code: ``python house/rename.py`` from the root of a clean checkout.

Reads house/renames.txt. A name is changed where Python reads it as a name, inside f-strings, in
templates between braces, in lists of arguments and between backticks; words of sentences stay.
Kept until no more names change.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks", "docs")
SKIP = ("docs/decisions/", "tests/net/expected/", "tests/net/old/")
WORD = re.compile(r"[A-Za-z_]\w*")
BRACES = re.compile(r"\{[^{}]*\}")
TAGS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
BLOCK = re.compile(r"```python[^\n]*\n.*?```", re.DOTALL)
ARGUMENT = re.compile(r"(?m)^ +\w+(?=: )")  # described in a docstring
QUOTED = re.compile(r"``[^`\n]+``|`[^`\n]+`")


def main() -> int:
    """Rename everything; the exit code."""
    table = read_table()
    changed = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in RENAMERS or name.startswith(SKIP):
                continue
            names = {old: new for old, new, where in table if matches(name, where)}
            if not names:
                continue
            before = path.read_text(encoding="utf-8")
            after = RENAMERS[path.suffix](before, names)
            if after != before:
                path.write_text(after, encoding="utf-8")
                changed += 1
    print(f"{changed} files changed")
    return 0


def read_table() -> list[tuple[str, str, list[str]]]:
    """Old name, new name, and patterns of the files where it is renamed (all if none)."""
    lines = (ROOT / "house/renames.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return [(old, new, where) for old, new, *where in rows]


def matches(name: str, where: list[str]) -> bool:
    """Whether a file is among these patterns; a pattern that begins with ! leaves files out."""
    wanted = [pattern for pattern in where if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in where if pattern.startswith("!")]
    if any(fnmatch(name, pattern) for pattern in unwanted):
        return False
    return not wanted or any(fnmatch(name, pattern) for pattern in wanted)


def python(text: str, names: Mapping[str, str]) -> str:
    """Names of code, in f-strings, and between backticks in strings and comments."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    out, at = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in {tokenize.NAME, tokenize.STRING, tokenize.COMMENT}:
            continue
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == tokenize.NAME:
            new = names.get(token.string, token.string)
        else:
            new = words(words(token.string, QUOTED, names), ARGUMENT, names)
            prefix = re.match(r"[a-zA-Z]*", token.string)
            if token.type == tokenize.STRING and prefix and "f" in prefix.group().lower():
                new = words(new, BRACES, names)
        out += [text[at:begin], new]
        at = end
    return "".join([*out, text[at:]])


def words(text: str, places: re.Pattern[str], names: Mapping[str, str]) -> str:
    """The text with names changed in these places of it."""
    return places.sub(
        lambda place: WORD.sub(lambda word: names.get(word.group(), word.group()), place.group()),
        text,
    )


def markdown(text: str, names: Mapping[str, str]) -> str:
    """Names between backticks, and in blocks of Python."""
    return words(words(text, BLOCK, names), QUOTED, names)


def template(text: str, names: Mapping[str, str]) -> str:
    """Names in the tags of a template."""
    return words(text, TAGS, names)


def faults(text: str, names: Mapping[str, str]) -> str:
    """Names in pieces of code that a table of planted faults quotes."""
    return WORD.sub(lambda word: names.get(word.group(), word.group()), text)


RENAMERS = {".py": python, ".md": markdown, ".j2": template, ".toml": faults}

if __name__ == "__main__":
    sys.exit(main())
