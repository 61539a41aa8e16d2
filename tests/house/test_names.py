"""Names: every function has a subject, and what is public says what it does."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/karat"
HOMELESS = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
OURS = ("src", "tests", "benchmarks")
SOURCES = sorted(
    path.relative_to(ROOT).as_posix() for folder in OURS for path in (ROOT / folder).rglob("*.py")
)
MODULES = [path for path in SOURCES if path.startswith("src/")]
KNOW = {"tables", "measures", "fusion", "stats", "golden", "online", "experiments", "diagnosis",
        "release"}  # fmt: skip
"""Layers whose public functions are documented in full; elsewhere, only what names do not say."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_the_name_of_every_file_has_a_subject() -> None:
    homeless = [
        path
        for path in [*SOURCES, "dev.py"]
        if HOMELESS & {part.removesuffix(".py").strip("_") for part in Path(path).parts}
    ]
    assert not homeless, f"a function without a subject has no home: {', '.join(homeless)}"


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


def test_what_is_public_has_a_docstring() -> None:
    bare = []
    for path in MODULES:
        private = any(p.startswith("_") and p != "__init__.py" for p in Path(path).parts)
        source = (ROOT / path).read_text(encoding="utf-8")
        if private or not source.strip():
            continue
        know = Path(path).parts[2] in KNOW
        if not know and re.match(r'"""\S', source):
            continue  # without reading the rest, which takes long
        bare += [
            f"{path}:{getattr(node, 'lineno', 1)} {getattr(node, 'name', 'the module')}"
            for node in undocumented(ast.parse(source))
            if know or isinstance(node, ast.Module)
        ]
    assert not bare, f"no docstring: {', '.join(bare)}"
