"""Faults planted over the whole package: what the tests caught once, they catch again.

A reorganisation may move tests and code, and lose a test on the way. The faults of ``faults.toml``
show it: each that is caught according to ``caught.toml`` still has to be.
"""

from __future__ import annotations

import ast

import pytest
from tests.net.faults.plant import ROOT, faults, plant, recorded

TABLE, RECORDED = faults(), recorded()
CAUGHT = [name for name, outcome in RECORDED.items() if outcome.caught]


@pytest.mark.parametrize("name", TABLE)
def test_a_fault_can_be_planted(name: str) -> None:
    fault = TABLE[name]
    text = (ROOT / fault.file).read_text()
    planted = fault.planted(text)
    # Other code, and code at all: anything would catch what cannot be parsed.
    assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(text))
    assert [each for each in fault.tests if not (ROOT / each).is_file()] == []


def test_every_folder_has_a_fault() -> None:
    folders = {path.parent.name for path in (ROOT / "src/karat").glob("*/__init__.py")}
    assert folders - {fault.file.split("/")[2] for fault in TABLE.values()} == set()
    assert len(TABLE) == 42


def test_every_fault_was_planted_once() -> None:
    assert list(RECORDED) == list(TABLE)


@pytest.mark.deep
@pytest.mark.parametrize("name", CAUGHT)
def test_what_was_caught_is_still_caught(name: str) -> None:
    assert plant(TABLE[name]).caught
