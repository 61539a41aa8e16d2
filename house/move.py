"""Move modules to their rooms: ``python house/move.py`` from the root of a clean checkout.

Reads house/moves.txt, moves the modules and the tests that follow them, and rewrites what names
them: imports, dotted names and paths, in code, tests, docs and settings. Then run
``ruff check --select I --fix . && ruff format .``. Kept until no more modules move.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "karat"
SKIP = ("CHANGELOG.md", "LICENSE", "docs/decisions/", "requirements/", "house/")
SKIP += ("tests/net/expected/", "tests/net/old/")
TEXTS = {".py", ".md", ".toml", ".j2", ".cfg", ".yml", ".yaml", ".txt", ".sh", ".mako", ".js", ""}
# A path that is written without src/karat or .py before or after it is read as one of these.
PLAIN_FOLDERS = {"workflows", "web", "tables", "store", "reports", "formats", "cli", "connectors"}
PACKAGES = {
    "offline": "Evaluating, comparing, explaining and fusing runs",
    "release": "Gates, baselines, certificates and trends",
    "golden": "Golden sets: queries, sampling, pools, agreement, editions",
    "judging": "Judging: queues, and what people rate",
    "online": "Events and online metrics",
    "engines": "Live search",
    "accounts": "Accounts, sign-in and tokens",
    "workspace": "The workspace: stored runs, evaluations and comparisons, backup",
    "lint": "Checking input files",
}
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NAMED += (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
LAYERS = {"workflows": "", "web": ": pages", "reports": ": reports", "cli": ": commands",
          "tables": ": tables"}  # fmt: skip
OTHER = {
    "web/framework": "What all pages share: sign-in, forms, lists, jobs, errors.",
    "reports/writers": "One writer for each medium.",
    "reports/phrases": "How numbers and verdicts are put into words.",
    "reports/charts": "Charts, as SVG.",
    "formats/tables": "Files of judgments, runs, queries and documents.",
    "formats/events": "Files of events.",
    "formats/own": "Files that only karat writes: baselines, policies, certificates, histories.",
    "engines": "The engines that karat computes with.",
    "engines/frames": "Frame engines: Polars, DuckDB and Spark.",
    "clients": "What speaks for karat to others: search functions, its own server, webhooks.",
    "store/sql": "The store of a workspace, in SQLite or PostgreSQL.",
    "store/events": "The store of events, in Parquet files.",
}


def main() -> int:
    """Move everything; the exit code."""
    files = tracked()
    moves = read_moves(files)
    moves |= following_tests(files, moves)
    modules, changed = module_names(files, moves)
    new_texts: dict[str, str] = {}
    for name in files:
        path = ROOT / name
        if name.startswith(SKIP) or path.suffix not in TEXTS:
            continue
        try:
            before = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        words = Words(modules, changed, moves)
        target = moves.get(name, name)
        after = code(before, name, target, words) if path.suffix == ".py" else words.text(before)
        if after != before:
            new_texts[name] = after
    for old, new in moves.items():
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)
    for name, text in new_texts.items():
        (ROOT / moves.get(name, name)).write_text(text, encoding="utf-8")
    tidy_packages({PurePosixPath(short(old)).parent.as_posix() for old in moves})
    git("add", "--all")
    print(f"{len(moves)} files moved, {len(new_texts)} files rewritten")
    return 0


def tracked() -> list[str]:
    """Every file of the repository."""
    return git("ls-files").splitlines()


def read_moves(files: list[str]) -> dict[str, str]:
    """Old to new path of every file that moves, from the root."""
    moves: dict[str, str] = {}
    for line in (ROOT / "house/moves.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        old, new = line.split()
        if not old.startswith("tests/"):
            old, new = f"src/karat/{old}", f"src/karat/{new}"
        if old.endswith("/"):
            moves |= {name: new + name[len(old) :] for name in files if name.startswith(old)}
        else:
            moves[old] = new
    absent = [old for old in moves if old not in files]
    if absent:
        sys.exit(f"house/moves.txt names what is not there: {', '.join(absent)}")
    return {old: new for old, new in moves.items() if old != new}


def following_tests(files: list[str], moves: dict[str, str]) -> dict[str, str]:
    """Tests follow the module they are named after: the one with the longest such name."""
    owners: dict[str, str] = {}  # tests/A/test_x → path of its module
    for name in files:
        if name.startswith("src/karat/") and name.endswith(".py"):
            owners[test_of(name)] = name
    explicit = {old for old in moves if old.startswith("tests/")}
    found: dict[str, str] = {}
    for name in files:
        path = PurePosixPath(name)
        if not (name.startswith("tests/") and path.name.startswith("test_")) or name in explicit:
            continue
        stem = str(path.with_suffix(""))
        fits = [owner for owner in owners if stem == owner or stem.startswith(owner + "_")]
        owner = max(fits, key=len, default=None)
        if owner is None or owners[owner] not in moves:
            continue
        new = test_of(moves[owners[owner]]) + stem[len(owner) :] + ".py"
        if new != name:
            found[name] = new
    doubled = [new for new, count in Counter(found.values()).items() if count > 1]
    doubled += [new for new in found.values() if new in files and new not in found]
    if doubled:
        sys.exit(f"two tests for one name: {', '.join(doubled)}")
    return found


def test_of(name: str) -> str:
    """Where the test of a module is, without .py: tests/A/test_x for src/karat/A/_x.py."""
    path = PurePosixPath(name[len("src/karat/") :])
    return str(PurePosixPath("tests") / path.parent / f"test_{path.stem.strip('_')}")


def module_names(files: list[str], moves: dict[str, str]) -> tuple[dict[str, str], set[str]]:
    """Old to new dotted name of every module and package; and the old names that changed."""
    names: dict[str, str] = {}
    for name in files:
        if name.endswith(".py") and name.startswith(("src/karat/", "tests/")):
            names[dotted(name)] = dotted(moves.get(name, name))
            parent = dotted(name).rpartition(".")[0]
            while parent:
                names.setdefault(parent, parent)
                parent = parent.rpartition(".")[0]
    for line in (ROOT / "house/moves.txt").read_text(encoding="utf-8").splitlines():
        old, _, new = line.partition(" ")
        if old.endswith("/"):
            names["karat." + old.strip("/").replace("/", ".")] = "karat." + new.strip().strip(
                "/"
            ).replace("/", ".")
    return names, {old for old, new in names.items() if old != new}


def dotted(name: str) -> str:
    """The dotted name of a file of Python."""
    return name.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Words:
    """Rewrites dotted names and paths in text."""

    DOTTED = re.compile(r"(?<![\w.])(?:karat|tests)(?:\.[a-zA-Z_]\w*)+")
    FROM = re.compile(r"from (karat[\w.]*) import (\w+(?:, \w+)*)(?=[;\n\\\"'])")
    QUOTED = re.compile(
        r"(?<=``)(?:workflows|web|tables|store|reports|formats|cli|connectors)(?:\.[a-z_]\w*)+"
    )
    PATH = re.compile(r"(?<![\w./-])((?:\.\./)*(?:src/karat/|karat/)?)([\w-]+/[\w./-]*)")

    def __init__(self, modules: dict[str, str], changed: set[str], moves: dict[str, str]) -> None:
        self.modules = modules
        self.changed = changed
        self.paths = {short(old): short(new) for old, new in moves.items()}
        self.folders = {
            old.removeprefix("karat.").replace(".", "/"): new.removeprefix("karat.").replace(
                ".", "/"
            )
            for old, new in modules.items()
            if old in changed
        }

    def text(self, text: str) -> str:
        """The text with new names for old."""
        out, at = [], 0
        for match in self.FROM.finditer(text):
            out += [self._rewritten(text[at : match.start()]), self._from(*match.groups())]
            at = match.end()
        return "".join([*out, self._rewritten(text[at:])])

    def _rewritten(self, text: str) -> str:
        text = self.DOTTED.sub(self._dotted, text)
        text = self.QUOTED.sub(lambda match: self._dotted(match, "karat."), text)
        return self.PATH.sub(self._path, text)

    def _from(self, module: str, names: str) -> str:
        """A statement inside a string; on one line, whatever the places."""
        groups: dict[str, list[str]] = {}
        for name in names.split(", "):
            full = self.modules.get(f"{module}.{name}")
            home, _, last = (full or f"{self.modules.get(module, module)}.{name}").rpartition(".")
            groups.setdefault(home, []).append(last if last == name else f"{last} as {name}")
        return "; ".join(f"from {home} import {', '.join(own)}" for home, own in groups.items())

    def _dotted(self, match: re.Match[str], root: str = "") -> str:
        whole = root + match.group()
        parts = whole.split(".")
        for size in range(len(parts), 1, -1):
            head = ".".join(parts[:size])
            if head in self.modules:
                whole = ".".join([self.modules[head], *parts[size:]])
                break
        return whole.removeprefix(root)

    def _path(self, match: re.Match[str]) -> str:
        prefix, path = match.groups()
        bare = path.rstrip("./")
        tail = path[len(bare) :]
        if bare in self.paths:
            return prefix + self.paths[bare] + tail
        if bare.startswith("tests/"):
            return match.group()
        if bare in self.folders and (prefix.endswith("karat/") or self._plain(bare)):
            return prefix + self.folders[bare] + tail
        for folder in ("connectors", "formats/engines", "store/migrations"):
            if bare.startswith(folder + "/"):
                return prefix + self.folders[folder] + bare[len(folder) :] + tail
        return match.group()

    @staticmethod
    def _plain(path: str) -> bool:
        return path.partition("/")[0] in PLAIN_FOLDERS


def short(name: str) -> str:
    """A path as it is written below src/karat."""
    return name.removeprefix("src/karat/")


def code(text: str, name: str, target: str, words: Words) -> str:
    """A file of Python with new names: imports by its syntax, the rest as text."""
    tree = ast.parse(text)
    starts = line_starts(text)
    edits: list[tuple[int, int, str]] = []
    renamed: dict[str, str] = {}
    bound, imported = bound_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            edit = import_edit(node, name, target, words, bound, imported, renamed)
            if edit is not None:
                edits.append((*span(node, text, starts), edit))
    for begin, end, old in name_uses(tree, text, starts, set(renamed)):
        edits.append((begin, end, renamed[old]))
    out, at = [], 0
    for begin, end, new in sorted(edits):
        out += [words.text(text[at:begin]), new]
        at = end
    out.append(words.text(text[at:]))
    return deeper("".join(out), name, target)


def import_edit(
    node: ast.ImportFrom,
    name: str,
    target: str,
    words: Words,
    bound: set[str],
    imported: Counter[str],
    renamed: dict[str, str],
) -> str | None:
    """The statement that imports the same from the new places; None where nothing changes."""
    module = node.module or ""
    if node.level:
        if name == target and not any(old.startswith("tests.") for old in words.changed):
            return None
        package = dotted(name).split(".")[: -node.level]
        module = ".".join([*package, *([module] if module else [])])
        if name == target and words.modules.get(module, module) == module:
            return None
    if module.partition(".")[0] not in {"karat", "tests"}:
        return None
    groups: dict[str, list[str]] = {}
    for alias in node.names:
        full = f"{module}.{alias.name}"
        if full in words.modules:
            home, _, last = words.modules[full].rpartition(".")
            given = alias.asname
            if given is None and last != alias.name:
                free = last not in bound and imported[last] == 0 and imported[alias.name] == 1
                free = free and alias.name not in bound
                if free and last not in renamed.values():
                    renamed[alias.name] = last
                else:
                    given = alias.name
            renames = given not in {None, last}
            groups.setdefault(home, []).append(last + (f" as {given}" if renames else ""))
        else:
            home = words.modules.get(module, module)
            asname = f" as {alias.asname}" if alias.asname else ""
            groups.setdefault(home, []).append(alias.name + asname)
    same = f"from {module} import " + ", ".join(
        alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in node.names
    )
    lines = [f"from {home} import {', '.join(names)}" for home, names in groups.items()]
    if lines == [same] and not node.level:
        return None
    indent = " " * node.col_offset
    return f"\n{indent}".join(
        line if len(indent + line) <= 100 else line.replace(" import ", " import (", 1) + ")"
        for line in lines
    )


def bound_names(tree: ast.AST) -> tuple[set[str], Counter[str]]:
    """Names bound otherwise than by import; and how often each name is imported."""
    bound: set[str] = set()
    imported: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, NAMED) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name.partition(".")[0]] += 1
    return bound, imported


def name_uses(
    tree: ast.AST, text: str, starts: list[int], names: set[str]
) -> Iterator[tuple[int, int, str]]:
    """Where these names are read. Inside f-strings by pattern: Python 3.11 misplaces them there."""
    inside: set[int] = set()
    seen: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(child) for child in ast.walk(node)}
            begin, end = span(node, text, starts)
            for part in re.finditer(r"\{[^{}]*", text[begin:end]):
                for word in re.finditer(r"(?<![\w.\"'])[a-z_]+(?=\.)", part.group()):
                    at = begin + part.start() + word.start()
                    if word.group() in names and at not in seen:
                        seen.add(at)
                        yield at, at + len(word.group()), word.group()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names and id(node) not in inside:
            begin, end = span(node, text, starts)
            if begin not in seen:
                seen.add(begin)
                yield begin, end, node.id


def line_starts(text: str) -> list[int]:
    """The offset in characters at which each line begins."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def span(node: ast.stmt | ast.expr, text: str, starts: list[int]) -> tuple[int, int]:
    """Where a node begins and ends, in characters: the syntax tree counts bytes."""
    ends = []
    for line, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)):
        begin = starts[(line or 1) - 1]
        row = text[begin : starts[line or 1]]
        ends.append(begin + len(row.encode()[: column or 0].decode()))
    return ends[0], ends[1]


def deeper(text: str, name: str, target: str) -> str:
    """Paths from a test's own place: as many folders up as it has moved down."""
    more = target.count("/") - name.count("/")
    if not more or not name.startswith("tests/"):
        return text

    def up(match: re.Match[str]) -> str:
        return f"{match.group(1)}{int(match.group(2)) + more}]"

    return re.sub(r"(__file__\)[^\n]{0,20}\.parents\[)(\d+)\]", up, text)


def tidy_packages(emptied: set[str]) -> None:
    """Give each new package its ``__init__.py``, and remove those of packages moved out of."""
    folders = {path.parent for path in SRC.rglob("*.py")}
    folders |= {folder.parent for folder in folders}
    for folder in sorted(folder for folder in folders if folder.is_relative_to(SRC)):
        inner = folder.relative_to(SRC).as_posix()
        first = folder / "__init__.py"
        if first.exists() or "migrations" in inner:
            continue
        layer, _, subject = inner.partition("/")
        text = OTHER.get(inner) or PACKAGES[subject] + LAYERS[layer] + "."
        first.write_text(f'"""{text}"""\n', encoding="utf-8")
    for first in list(SRC.rglob("__init__.py")):
        files = [path for path in first.parent.rglob("*") if path.suffix not in {".pyc", ""}]
        if files == [first] and first.parent.relative_to(SRC).as_posix() in emptied:
            git("rm", "-q", "-f", str(first))


def git(*args: str) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", *args], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
