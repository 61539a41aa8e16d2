"""Reading one source file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from karat.demo.sources import docstring, parse, signature

CODE = '''
"""What the module is for."""
from .near import one, two as zwei
from ..far import *
try:
    from _fast import speed
except ImportError:
    def speed(n):
        """Slow but sure."""

__all__ = ["speed", "again"]
__all__ += ["later"]
__all__.append("last")

def twice(): pass
if True:
    def twice():
        """The one with a docstring."""

again = twice

class Dice:
    def roll(self): """Roll."""

_dice = Dice()
roll = _dice.roll

print(undefined, "would fail if it ran")
'''


def test_everything_that_binds_a_name_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(CODE, encoding="utf-8")
    source = parse("top.package.module", path)
    assert source.doc == "What the module is for."
    assert source.imports["one"] == ("top.package.near", "one")
    assert source.imports["zwei"] == ("top.package.near", "two")
    assert source.stars == ["top.far"]
    assert docstring(source.definitions["speed"]) == "Slow but sure."
    assert docstring(source.definitions["twice"]) == "The one with a docstring."
    assert source.aliases == {"again": "twice"}
    assert source.bound == {"roll": ("Dice", "roll")}
    assert [ast.unparse(part) for part in source.exported] == [
        "['speed', 'again']",
        "['later']",
        "['last']",
    ]


@pytest.mark.parametrize(
    ("code", "method", "expected"),
    [
        ("def f(a, b=1, *, c: int = 2): ...", False, "(a, b=1, *, c: int=2)"),
        ("def f(self): ...", True, "()"),
        ("def f(self, a, *rest): ...", True, "(a, *rest)"),
        ("def f(self, /, a): ...", True, "(a)"),
        ("def f(self, /): ...", True, "()"),
        ("@staticmethod\ndef f(a): ...", True, "(a)"),
        ("async def f(cls, **named): ...", True, "(**named)"),
        ("def f(*all): ...", True, "(*all)"),
    ],
)
def test_a_signature_is_as_written_and_without_self(code: str, method: bool, expected: str) -> None:
    node = ast.parse(code).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    assert signature(node, method=method) == expected
