"""``karat lint`` of files that cannot be read: findings, in every format of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl

from karat.workflows.lint.lint import lint


def test_findings_with_advice_are_json(tmp_path: Path) -> None:
    """A fix that reads otherwise on pages is a text like any other in JSON."""
    files = {
        "a.csv": "q1 0 d1 1\n".encode("utf-16"),
        "b.tsv": b"q1\td1\t1\nq2\td2\t2\n",
        "c.txt": b"a\nb\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = lint([tmp_path / name for name in files])
    fixes = [finding["fix"] for finding in json.loads(json.dumps(found.to_dict()))["findings"]]
    assert any(fix.startswith("iconv -f UTF-16") for fix in fixes)


def test_damaged_parquet_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    rows = {"query_id": ["1"] * 99, "doc_id": list(map(str, range(99))), "score": [1.0] * 99}
    pl.DataFrame(rows).write_parquet(path)
    sound = path.read_bytes()
    says = set()
    for name in (b"query_id", b"doc_id", b"score"):
        for place in re.finditer(name, sound):
            at = place.start()
            path.write_bytes(sound[:at] + bytes([sound[at] | 0x80]) + sound[at + 1 :])
            says |= {finding.message[:27] for finding in lint([path]).findings}
    assert "the Parquet data is damaged" in says


def test_half_of_a_surrogate_pair_is_a_finding(tmp_path: Path) -> None:
    """No UTF-8 can hold it, so neither can a table."""
    (tmp_path / "a.json").write_text('{"q\\ud800": {"d1": 1}}')
    (tmp_path / "b.jsonl").write_text(
        '{"query_id": "q1", "doc_id": "d1", "score": 1}\n'
        '{"query_id": "q1", "doc_id": "\\uD8001", "score": 0.5}\n'
    )
    found = lint([tmp_path / "a.json", tmp_path / "b.jsonl"])
    said = [(f.code, f.lines) for f in found.findings if "surrogate pair" in f.message]
    assert said == [("unreadable-file", (1,)), ("not-json", (2,))]
