"""``karat golden pool`` and ``queue``, as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Typed = Callable[..., Any]  # conftest.py


def test_the_queue_says_in_json_what_it_took(typed: Typed, tmp_path: Path) -> None:
    typed("init shop")
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,door\nq2,wall\n", encoding="utf-8")
    typed("golden import queries.csv -w shop")
    (tmp_path / "next.csv").write_text("query_id,doc_id\nq1,a\nq1,b\n", encoding="utf-8")
    # Two raters for each of two pairs.
    told = {"chosen": 2, "added": 2, "queries": 1, "lacking": [], "waiting": 4, "notes": []}
    assert json.loads(typed("golden queue next.csv -w shop --format json").out) == told
    again = typed("golden queue next.csv -w shop")
    assert "2 pairs of 1 query chosen, 0 of them new; the queue waits for 4" in again.out
    for name in ("one", "two"):
        (tmp_path / f"{name}.trec").write_text("q1 Q0 a 1 3 x\n", encoding="utf-8")
    pooled = json.loads(typed("golden pool one.trec two.trec -w shop -f json").out)
    assert (pooled["added"], pooled["lacking"]) == (0, ["q2"])
    assert pooled["notes"] == ["run 'two' is the same as 'one': it is stored once, with both names"]
