"""Reading source files, and finding what is public in a tree of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from karat.demo._library import Library, best_name, docstring, parse, signature

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


FILES = {
    "shop/__init__.py": (
        '"""A shop."""\nfrom . import _till, stock\nfrom ._till import pay, _count\n'
        "from .stock import *\n__all__ = ['pay', *()] \n__all__ = ['pay'] + stock.__all__\n"
    ),
    "shop/_till.py": 'def pay(sum):\n    """Pay a sum."""\ndef _count():\n    """Hidden."""\n',
    "shop/stock.py": (
        '"""The stock."""\n__all__ = ["Item"]\n'
        'class _Thing:\n    def weigh(self):\n        """Its weight."""\n'
        'class Item(_Thing):\n    """Something to sell."""\n'
        '    def __init__(self, name):\n        """name: what it is called."""\n'
        '    def sell(self):\n        """Sell it."""\n'
        '    def _hide(self):\n        """Hidden."""\n'
        'def unlisted():\n    """Not in __all__."""\n'
    ),
    "shop/test/test_stock.py": '"""A test."""\n',
    "_private.py": '"""Private."""\ndef f():\n    """Private too."""\n',
    "site-packages/other.py": '"""Not the library."""\n',
    "telnetlib.py": '"""Removed from Python."""\n',
}


def library(root: Path) -> Library:
    for name, code in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return Library(root)


def test_each_definition_is_found_once_under_its_best_name(tmp_path: Path) -> None:
    found = {entry.doc_id: entry for entry in library(tmp_path).entries()}
    assert list(found) == [
        "shop",
        "shop.stock",
        "shop.pay",
        "shop.Item",
        "shop.Item.sell",
        "shop.Item.weigh",  # from a base class that has no page of its own
    ]
    assert found["shop.Item"].kind == "class"
    assert found["shop.Item"].signature == "(name)"
    assert found["shop.Item"].text == "Something to sell.\n\nname: what it is called."
    assert found["shop.pay"] == ("shop.pay", "function", "shop", "(sum)", "Pay a sum.")


def test_a_function_may_have_the_docstring_of_another(tmp_path: Path) -> None:
    # As cProfile.run has that of profile.run.
    (tmp_path / "till.py").write_text('def pay(sum):\n    """Pay a sum."""\n')
    (tmp_path / "quick.py").write_text(
        "import till as _slow\ndef pay(sum, tip):\n    pass\npay.__doc__ = _slow.pay.__doc__\n"
        "def owe(sum):\n    pass\n"
    )
    assert [(entry.doc_id, entry.text) for entry in Library(tmp_path).entries()] == [
        ("quick.pay", "Pay a sum."),
        ("till.pay", "Pay a sum."),
    ]


def test_the_best_name_is_the_package_above_then_the_module_itself() -> None:
    assert (
        best_name(("asyncio.tasks", "gather"), ["asyncio.tasks.gather", "asyncio.gather"])
        == "asyncio.gather"
    )
    assert best_name(("json", "dumps"), ["a.dumps", "json.dumps"]) == "json.dumps"
    assert best_name(("posixpath", "join"), ["os.path.join"]) == "os.path.join"
    # Nobody imports from a private module: the shortest public name.
    assert best_name(("_py_abc", "f"), ["x.y.f", "abc.f"]) == "abc.f"
