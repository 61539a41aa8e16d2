"""Finding what is public in a tree of source files."""

from __future__ import annotations

from pathlib import Path

from karat.demo._library import Library, best_name

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
