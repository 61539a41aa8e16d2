"""Names and sizes: every function has a subject, and every file fits in the head."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/karat"
MOST_LINES = 450
HOMELESS = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
OURS = ("src", "tests", "benchmarks")
SOURCES = sorted(
    path.relative_to(ROOT).as_posix() for folder in OURS for path in (ROOT / folder).rglob("*.py")
)
MODULES = [path for path in SOURCES if path.startswith("src/")]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@pytest.mark.parametrize("path", [*SOURCES, "dev.py"])
def test_a_file_is_small_and_its_name_has_a_subject(path: str) -> None:
    homeless = HOMELESS & {part.removesuffix(".py").strip("_") for part in Path(path).parts}
    assert not homeless, f"{path}: a function without a subject has no home"
    lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
    assert lines < MOST_LINES, f"{path} has {lines} lines: split it by subject"


def test_the_public_names_are_sorted_and_lead_somewhere() -> None:
    karat = importlib.import_module("karat")
    assert list(karat.__all__) == sorted(set(karat.__all__))
    for name in karat.__all__:
        thing = getattr(karat, name)
        if not name.startswith("__"):
            assert (thing.__doc__ or "").strip(), f"karat.{name} has no docstring"
    assert set(karat.__all__) <= set(dir(karat))


def test_an_unknown_name_is_an_attribute_error() -> None:
    karat = importlib.import_module("karat")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = karat.no_such_name


def undocumented(tree: ast.Module) -> Iterator[Definition | ast.Module]:
    """The module, and its public functions and classes, that have no docstring."""
    public = [
        node for node in tree.body if isinstance(node, Definition) and not node.name.startswith("_")
    ]
    for node in (tree, *public):
        if not (ast.get_docstring(node) or "").strip():
            yield node


@pytest.mark.parametrize("path", MODULES)
def test_what_is_public_has_a_docstring(path: str) -> None:
    if any(part.startswith("_") and part != "__init__.py" for part in Path(path).parts):
        pytest.skip("a private module")
    source = (ROOT / path).read_text(encoding="utf-8")
    if not source.strip():
        pytest.skip("empty")
    bare = [
        f"{path}:{getattr(node, 'lineno', 1)} {getattr(node, 'name', 'the module')}"
        for node in undocumented(ast.parse(source))
    ]
    assert not bare, f"no docstring: {', '.join(bare)}"
