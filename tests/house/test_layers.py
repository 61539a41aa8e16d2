"""The staircase holds: docs/decisions/0001-the-staircase.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.choosing import deep_but

KNOW = {
    "tables",
    "measures",
    "fusion",
    "stats",
    "golden",
    "online",
    "experiments",
    "diagnosis",
    "release",
}
LINT = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package under a folder, with that folder's pyproject.toml."""
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def contracts(root: Path) -> dict[str, Any]:
    """The contracts of pyproject.toml by the first word of their names."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    found = settings["tool"]["importlinter"]["contracts"]
    return {contract["name"].partition(" ")[0].strip(":"): contract for contract in found}


def test_every_import_goes_up_the_staircase(root: Path) -> None:
    done = lint(root)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_second_contract_names_every_folder_of_know(root: Path) -> None:
    there = {path.parent.name for path in (root / "src/karat").glob("*/__init__.py")}
    named = {name.removeprefix("karat.") for name in contracts(root)["KNOW"]["source_modules"]}
    lacking = sorted((there & KNOW) - named)
    assert not lacking, f"name {lacking} in source_modules of the KNOW contract in pyproject.toml"
    assert named <= KNOW


def test_every_folder_is_a_package(root: Path) -> None:
    """Import-linter does not see a folder without __init__.py."""
    package = root / "src/karat"
    folders = {path.parent for path in package.rglob("*.py")}
    blind = [str(each.relative_to(root)) for each in folders if not (each / "__init__.py").exists()]
    assert not blind, f"no __init__.py in {sorted(blind)}"


def downwards(package: Path) -> str:
    """An upper folder asks a lower one, inside a function."""
    (package / "tables/planted.py").write_text("def f():\n    from karat import measures\n")
    return "karat.tables is not allowed to import karat.measures"


def to_a_clock(package: Path) -> str:
    """A folder of KNOW asks the time."""
    (package / "stats/planted.py").write_text("from time import monotonic\n")
    return "karat.stats is not allowed to import time"


def by_way_of_the_door(package: Path) -> str:
    """An upper folder reaches a lower one through the lazy names of karat/__init__.py."""
    (package / "tables/planted.py").write_text("import karat\n")
    (package / "__init__.py").write_text("def f():\n    from karat import measures\n")
    return "karat.tables is not allowed to import karat.measures"


def sideways(package: Path) -> str:
    """Two of the folders that touch the world know of each other."""
    for sibling in ("formats", "store"):
        (package / sibling).mkdir(exist_ok=True)
        (package / sibling / "__init__.py").touch()
    (package / "store/planted.py").write_text("from karat import formats\n")
    return "karat.store is not allowed to import karat.formats"


def among_subjects(package: Path) -> str:
    """One subject of a layer knows of another."""
    (package / "workflows/judging/planted.py").write_text(
        "from karat.workflows.golden import pooling\n"
    )
    return "karat.workflows.judging is not allowed to import karat.workflows.golden"


def to_the_release(package: Path) -> str:
    """A subject that all may import knows of the one that imports all."""
    (package / "web/offline/planted.py").write_text("from karat.web.release import trends\n")
    return "karat.web.offline is not allowed to import karat.web.release"


def off_the_stairs(package: Path) -> str:
    """A folder that has no step."""
    (package / "planted").mkdir()
    (package / "planted/__init__.py").touch()
    return "karat.planted"


@pytest.mark.parametrize(
    "plant",
    deep_but(  # each is a process that reads all of karat
        [among_subjects],
        [
            downwards,
            among_subjects,
            to_a_clock,
            by_way_of_the_door,
            sideways,
            to_the_release,
            off_the_stairs,
        ],
    ),
)
def test_a_planted_violation_is_caught(
    root: Path, tmp_path: Path, plant: Callable[[Path], str]
) -> None:
    shutil.copy(root / "pyproject.toml", tmp_path)
    skip = shutil.ignore_patterns("__pycache__", "*.jsonl", "*.tsv")
    shutil.copytree(root / "src/karat", tmp_path / "src/karat", ignore=skip)
    said = plant(tmp_path / "src/karat")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout


def test_transactions_begin_in_the_store_and_in_workflows_only(root: Path) -> None:
    package = root / "src/karat"
    begun = [
        f"{path.relative_to(package)}:{number}"
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] not in ("store", "workflows")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\b(store|engine)\.(begin|read|connect)\(\)", line)
    ]
    assert not begun, f"a verb of workflows reads and writes the store: {', '.join(begun)}"
