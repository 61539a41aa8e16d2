"""What the API says names what its callers can do, and no option of a command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

TYPED = re.compile(r"(?<![\w-])--[a-z]|\bkarat (lint|golden|evaluate|gate|measures|init)\b")
TWICE = b"q1 Q0 d1 1 2 x\nq1 Q0 d1 2 1 x\n"


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("evaluate", {"json": {"runs": ["old"], "measures": ["nDGC"]}}),
        ("evaluate", {"json": {"runs": ["old"], "threshold": 0.5}}),
        ("gate", {"json": {"policy": '{"karat_baseline": 1}', "candidate": "old"}}),
        ("comparisons", {"json": {"baseline": "old", "candidates": ["new"], "measures": ["x"]}}),
        ("runs", {"params": {"name": "b.trec"}, "content": TWICE}),
        ("runs", {"params": {"name": "b.json"}, "content": b'{"q1": {"d1": "x"}}'}),
        ("runs", {"params": {"name": "b.trec"}, "content": b"q1 Q0 d1 1 x x\n"}),
        ("golden/shop/import", {"params": {"name": "run.trec"}, "content": b"q1 Q0 d1 1 2 x\n"}),
    ],
)
def test_errors_name_no_option(program: TestClient, path: str, asked: dict[str, Any]) -> None:
    answer = program.post(f"/api/{path}", **asked)
    assert answer.status_code == 400, answer.text
    said = answer.json()["error"]
    assert said["fix"]
    assert not TYPED.search(f"{said['message']} {said['fix']}"), said


def test_notes_name_no_option(program: TestClient, tmp_path: Path) -> None:
    lines = "".join(f"q{q} Q0 {d} 1 {ord(d)} x\n" for q in range(1, 5) for d in "vwxyz")
    made = program.post("/api/runs", params={"name": "none.trec"}, content=lines.encode()).json()
    asked = {"runs": ["old", made["id"]], "measures": ["nDCG@5", "P@5", "RR@10"]}
    notes = program.post("/api/evaluate", json=asked).json()["notes"]
    assert any("collapse folds chunks" in note for note in notes), notes
    assert any(" more (the full results list them)" in note for note in notes), notes
    assert not [note for note in notes if TYPED.search(note)]
