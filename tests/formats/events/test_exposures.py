"""Tables of exposures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat.errors import InputError
from karat.formats.events.exposures import read_exposures


def written(folder: Path, text: str, name: str = "e.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_growthbook(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "user_id,timestamp,experiment_id,variation_id\nu1,2026-11-02T10:00:00Z,ranker,0\n"
        "007,2026-11-02T10:00:01Z,ranker,1\n",
    )
    found = read_exposures(path)
    assert found.columns == ["user_id", "time_us", "arm"]
    assert found["user_id"].to_list() == ["u1", "007"]
    assert found["arm"].to_list() == ["0", "1"]
    assert found["time_us"].diff()[1] == 1_000_000


def test_openfeature(tmp_path: Path) -> None:
    rows = [
        {"targetingKey": "u1", "flagKey": "ranker", "variant": "on", "timestamp": 1_793_000_000},
        {"targetingKey": "u2", "flagKey": "page", "variant": "off", "timestamp": 1_793_000_000},
    ]
    path = written(tmp_path, "\n".join(map(json.dumps, rows)), "e.jsonl")
    assert read_exposures(path, "ranker")["user_id"].to_list() == ["u1"]
    with pytest.raises(InputError, match="exposures of 2 experiments: page, ranker"):
        read_exposures(path)
    with pytest.raises(InputError, match="no exposures of the experiment rank"):
        read_exposures(path, "rank")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("user_id,arm\nu1,a\n", "no column is the time"),
        (
            "user_id,arm,time\nu1,,2026-11-02\nu2,a,2026-11-02\n",
            "1 of 2 exposures have no user, arm or",
        ),
        ("user_id,arm,time\nu1,a,soon\n", "1 of 1 exposures"),
        ("user_id,arm,time\n", "no exposures in it"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        read_exposures(written(tmp_path, text))
