"""Asking modules that have no source."""

from __future__ import annotations

import builtins
import sys

import pytest

from karat.demo._compiled import entries, signature, text


def test_builtins_have_no_prefix_and_c_modules_their_public_name() -> None:
    found = {entry.doc_id: entry for entry in entries({})}
    assert found["str.split"].kind == "method"
    assert found["print"].module == "builtins"
    assert found["collections.deque"].kind == "class"
    assert found["io.IOBase.readline"].text.startswith("Read and return a line")
    assert "io.open" not in found  # it is the built-in open
    assert "Convert a function" not in found["str.maketrans"].text


def test_hooks_that_others_put_in_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(entries({}))

    def hook(*_: object) -> None:
        """Somebody else's."""

    monkeypatch.setattr(sys, "excepthook", hook)
    monkeypatch.setattr(builtins, "peep", hook, raising=False)
    assert list(entries({})) == before


def test_only_listed_names_of_a_module_with_source() -> None:
    names = {entry.doc_id for entry in entries({"csv": {"reader"}})}
    assert "csv.reader" in names
    assert "csv.writer" not in names


def test_signatures_are_on_one_line_and_without_self() -> None:
    assert signature(str.split) == "(sep=None, maxsplit=-1)"
    assert signature(list.append) == "(object, /)"
    assert signature(dict.clear) in {"", "()"}  # 3.13 says so, older ones do not
    assert "\n" not in signature(open)
    assert text(len).startswith("Return the number of items")
