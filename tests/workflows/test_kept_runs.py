"""Runs of a workspace are kept by what they hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from karat.errors import UsageError
from karat.tables import Run
from karat.workflows.kept_runs import keep_runs, kept_runs
from karat.workflows.workspace import Opened

Tick = Callable[[], int]


def test_a_run_comes_back_as_it_was(shop: Opened, tick: Tick) -> None:
    first = Run.from_dict({"q1": {"a": 2.5, "b": 1}}, "lexical")
    keep_runs(shop, [first], now=tick())
    keep_runs(shop, [first], now=tick())
    (found,) = kept_runs(shop)
    assert (found.name, found.to_dict()) == ("lexical", first.to_dict())
    assert len(list(shop.workspace.runs.iterdir())) == 1


def test_the_newest_of_a_name_is_meant(shop: Opened, tick: Tick, tmp_path: Path) -> None:
    for score in (1, 2):
        keep_runs(shop, [Run.from_dict({"q1": {"a": score}}, "lexical")], now=tick())
    (tmp_path / "other.trec").write_text("q1 Q0 b 1 3 x\n", encoding="utf-8")
    keep_runs(shop, [tmp_path / "other.trec"], now=tick())
    assert kept_runs(shop, ["lexical"])[0].to_dict() == {"q1": {"a": 2}}
    assert [run.name for run in kept_runs(shop)] == ["lexical", "other"]
    with pytest.raises(UsageError, match="did you mean lexical"):
        kept_runs(shop, ["lexicl"])
