"""``karat try``, as somebody types it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.choosing import deep_but
from tests.searchable_shop import declare
from tests.web.conftest import make_shop

Typed = Callable[..., Any]  # conftest.py


@pytest.fixture(scope="module")
def _shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_shop(tmp_path_factory.mktemp("try") / "shop", {})
    declare(root)
    return root


@pytest.fixture
def shop(_shop: Path, tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = Path(shutil.copytree(_shop, tmp_path / "shop"))
    monkeypatch.chdir(root)
    return root


def test_two_variants_are_side_by_side_in_80_columns(shop, typed):
    out = typed("try shop q1 --against titles").out
    assert "'red shoes' (q1)" in out
    assert "nDCG@10" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    row = next(line for line in out.splitlines() if line.split()[:1] == ["1"])
    assert "Red shoes" in row
    found = json.loads(typed("try shop q1 --param title=0 --against-param title=9 -f json").out)
    assert [each["params"] for each in found["variants"]] == [{"title": 0}, {"title": 9}]
    assert [each["engine"] for each in found["variants"]] == ["shop", "shop"]


@pytest.mark.deep  # tests/net does it in the demo
def test_all_queries_are_stored_listed_and_forgotten(shop, typed):
    out = typed("try shop --all --name first").out
    assert "stored as first" in out
    assert "nDCG@10" in out
    found = json.loads(typed("try shop --all --param title=0 --format json").out)
    assert found["try"]["before"] == "first"
    assert found["try"]["changes"][0]["key"] == "parameters.title"
    listed = typed("try --list").out
    assert "shop-try-1" in listed
    assert "parameters.title 1.0 → 0" in " ".join(listed.split())
    assert "first is the baseline" in typed("try --promote first").err
    assert json.loads(Path("baseline.json").read_text(encoding="utf-8"))["run"] == "first"
    found = json.loads(typed("try --list shop --forget first -f json").out)
    assert [row["name"] for row in found["tries"]] == ["shop-try-1"]


@pytest.mark.parametrize(
    ("line", "code", "says"),
    deep_but(
        {"try away shoes", "try shopp shoes", "try shop", "try --forget first"},
        [
            ("try away shoes", 4, "cannot reach 127.0.0.1"),
            ("try away --all", 4, "cannot reach 127.0.0.1"),
            ("try shop shoes --against away", 4, "Red shoes"),
            ("try shopp shoes", 2, "did you mean"),
            ("try shop shoes --param titel=2", 2, "titel"),
            ("try shop", 2, "karat try ENGINE --all"),
            ("try shop shoes --template none.sql", 2, "none.sql"),
            ("try titles shoes --template karat.toml", 2, "has no template"),
            ("try shop titles --all", 2, "asks one engine"),
            ("try --list shop titles", 2, "at most one engine"),
            ("try --forget first", 2, "there is no try 'first'"),
            ("try --promote first", 2, "there is no try 'first'"),
        ],
    ),
)
def test_mistakes_have_exit_codes_and_a_way_out(shop, typed, line, code, says):
    done = typed(line, code=code)
    assert says in done.out + done.err
