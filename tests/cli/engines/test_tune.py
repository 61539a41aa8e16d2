"""``karat tune`` in a workspace, as somebody types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Typed = Callable[..., Any]  # conftest.py

SEARCH = """
import random


def search(text, weight=1.0):
    right = weight > random.Random(text).uniform(0.2, 4)
    return ["right"] if right else ["other", "more", "right"]
"""


@pytest.mark.deep  # in the demo: tests/net; the rest: tests/contracts
def test_the_golden_set_of_a_workspace_is_tuned_on(typed: Typed, tmp_path: Path) -> None:
    items = [{"query": f"text {n}", "relevant_docs": ["right"]} for n in range(60)]
    (tmp_path / "golden.json").write_text(json.dumps(items))
    (tmp_path / "tuned_shop.py").write_text(SEARCH)
    typed("init .")
    typed("golden import golden.json")
    with (tmp_path / "karat.toml").open("a") as file:
        file.write(
            '\n[engine.shop]\nkind = "python"\nfunction = "tuned_shop:search"\n'
            'params = { weight = 1.0, "odd name" = "a" }\n'
        )
    wrong = typed("tune shop --param weight=1,3", code=2).err
    assert "has no keyword 'odd name'" in wrong
    text = (tmp_path / "karat.toml").read_text().replace(', "odd name" = "a"', "")
    (tmp_path / "karat.toml").write_text(text)

    typed("golden split")
    done = typed("tune shop --param weight=1.5,3,4.5 -o best.toml")
    assert "shop: 4 combinations asked (all combinations)" in done.out
    assert done.out.rstrip().endswith("better on held-out queries")
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert (tmp_path / "best.toml").read_text() == "params = { weight = 4.5 }\n"
    assert (tmp_path / "held_out.jsonl").read_text().count("\n") == 1

    found = json.loads(typed("tune shop --param weight=1.5,3,4.5 --format json").out)
    assert (found["verdict"], found["uses"], found["level"]) == ("better", 2, 0.025)
    assert found["held_out"]["n"] + found["dev"]["n"] == 60
    assert found["params"] == {"weight": 4.5}

    typed("tune shop --param weight=0.2:0.4 --trials 3 -o none.toml", code=1)
    assert not (tmp_path / "none.toml").exists()
    assert (tmp_path / "held_out.jsonl").read_text().count("\n") == 2
