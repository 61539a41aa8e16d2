"""Where code is: each layer has rooms by subject, and no room is too full."""

from __future__ import annotations

import ast
import functools
import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from karat.cli.main import HOMES

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/karat"
SUBJECTS = {
    "offline",
    "release",
    "golden",
    "judging",
    "online",
    "experiments",
    "diagnosis",
    "engines",
    "accounts",
    "workspace",
    "lint",
}
# Layers with a room for each subject, and their other rooms.
LAYERS = {
    "workflows": set(),
    "web": {"framework", "api", "static", "templates"},
    "reports": {"writers", "phrases", "charts", "html"},
    "cli": set(),
    "tables": set(),
}
FULL = 30  # files of Python in a folder, private ones and __init__.py too
LONG = 60  # lines of a function, without its docstring
# Modules that put the parts of a room together: who uses each is no question of size.
LISTS = {"__main__", "main", "server", "app", "api", "registry", "catalogue", "opening"}
# Functions that were longer when this rule was made. No other may be, and these may not grow.
LONGER = {
    "cli/offline/compare.py compare": 102,
    "cli/offline/evaluate.py evaluate": 95,
    "cli/release/gate.py _gate": 80,
    "cli/workspace/demo.py demo": 74,
    "demo/build.py build": 78,
    "online/simulate/tasks.py _ask": 79,
    "reports/html/page.py _shown": 66,
    "web/framework/lists.py listed": 81,
    "web/offline/runs.py _run_page": 76,
    "workflows/golden/export.py export_golden_set": 78,
    "workflows/golden/import_.py import_exchange": 77,
    "workflows/lint/fields.py look": 61,
    "workflows/online/offline_correlation.py against": 92,
    "workflows/online/reducers.py facts_of": 72,
}


def test_rooms_are_named_after_subjects() -> None:
    strange = [
        f"{kind}/{layer}/{folder.name}"
        for layer, others in LAYERS.items()
        for kind, top in (("src/karat", PACKAGE), ("tests", ROOT / "tests"))
        if (top / layer).is_dir()
        for folder in (top / layer).iterdir()
        if folder.is_dir() and folder.name not in SUBJECTS | others | {"__pycache__"}
    ]
    assert not strange, f"not a subject: {', '.join(strange)}; one of {', '.join(sorted(SUBJECTS))}"


def test_the_layers_that_are_wide_have_no_loose_modules() -> None:
    loose = [path.name for path in (PACKAGE / "workflows").glob("*.py")]
    assert loose == ["__init__.py"], f"give them a subject: {', '.join(loose)}"


def test_no_room_is_too_full() -> None:
    sizes = Counter(
        path.parent.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "versions" not in path.parts
    )
    full = [f"{folder} ({size})" for folder, size in sizes.items() if size > FULL]
    assert not full, f"more than {FULL} files: {', '.join(full)}"


def test_a_module_of_one_neighbour_is_private() -> None:
    """What only a module of its own folder uses is a part of that one: ``_name.py``."""
    only = {module: next(iter(users)) for module, users in used().items() if len(users) == 1}
    public = {
        module: user
        for module, user in only.items()
        if not module.rpartition(".")[2].startswith("_") and user.rpartition(".")[2] not in LISTS
    }
    parts = [
        f"{module} (of {user})"
        for module, user in public.items()
        if module.rpartition(".")[0] == user.rpartition(".")[0]
    ]
    assert not parts, f"name them _….py or merge them: {', '.join(parts)}"
    share = len(public) / len(used())
    assert share < 0.15, f"{share:.1%} of the modules have one user elsewhere: fragments?"


@functools.cache
def parsed() -> dict[Path, ast.Module]:
    gc.disable()  # it would walk millions of nodes again and again, and find nothing
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    finally:
        gc.freeze()
        gc.enable()


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a tree; without looking at what they are made of."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()):
            yield child
            yield from statements(child)


@functools.cache
def used() -> dict[str, set[str]]:
    """Each module, packages left out, and the modules that import it."""
    names = {
        path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in parsed()
        if "versions" not in path.parts
    }
    found: dict[str, set[str]] = {
        name: set() for path, name in names.items() if path.name != "__init__.py"
    }
    for path, module in names.items():
        user = module.removesuffix(".__init__")
        for node in statements(parsed()[path]):
            if isinstance(node, ast.ImportFrom):
                for name in node.names:
                    imported = f"{node.module}.{name.name}"
                    found.get(imported, found.get(node.module or "", set())).add(user)
            elif isinstance(node, ast.Import):
                for name in node.names:
                    found.get(name.name, set()).add(user)
    for home in HOMES.values():
        found[f"karat.cli.{home}"].add("karat.cli.main")
    return found


def test_tests_are_where_the_code_is() -> None:
    """A test that has the name of a module is in that module's room."""
    homes = {
        (path.parent.relative_to(PACKAGE).as_posix(), path.stem.strip("_"))
        for path in PACKAGE.rglob("*.py")
    }
    rooms = {folder for folder, _ in homes}
    astray = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if (folder := path.parent.relative_to(ROOT / "tests").as_posix()) not in rooms
        and folder.partition("/")[0] in {name for name, _ in homes if "/" not in name}
    ]
    assert not astray, f"no such folder in src/karat: {', '.join(astray)}"


def test_functions_are_short() -> None:
    lengths = {
        f"{path.relative_to(PACKAGE).as_posix()} {node.name}": length(node)
        for path, tree in parsed().items()
        for node in statements(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    long = [f"{name} ({size})" for name, size in lengths.items() if size > LONGER.get(name, LONG)]
    assert not long, f"more than {LONG} lines without the docstring: {', '.join(long)}"
    short = [name for name in LONGER if lengths.get(name, 0) <= LONG]
    assert not short, f"no longer too long; take them from the list: {', '.join(short)}"


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function, from its ``def`` to its end, without its docstring."""
    first = node.body[0]
    docstring = isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None
    own = (first.end_lineno or 0) - first.lineno + 1 if docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - own
