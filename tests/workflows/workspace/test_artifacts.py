"""Kept files: read once, again when they change, and not taken from under a reader."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from karat.workflows.workspace.artifacts import (
    GRACE_S,
    HEAD,
    ArtifactCache,
    ArtifactCorrupted,
    ArtifactFiles,
    read_artifact,
    write_artifact,
)

ROWS = pl.DataFrame({"n": [1, 2]})


@dataclass
class Held:
    files: ArtifactFiles


def read(folder: Path) -> Held | None:
    files = read_artifact(folder)
    return None if files is None else Held(files)


def test_files_of_before_stay_for_a_while(tmp_path: Path) -> None:
    for number in range(3):
        write_artifact(tmp_path, {"number": number}, {"rows": ROWS})
    there = sorted(tmp_path.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert len(there) == 3  # all of them within a moment
    files = read_artifact(tmp_path)
    assert files is not None
    assert files.head["number"] == 2
    for path in there:
        os.utime(path, (1, path.stat().st_mtime - GRACE_S - 60))
    write_artifact(tmp_path, {"number": 3}, {"rows": ROWS})
    left = set(tmp_path.glob("*.parquet"))
    assert files.tables["rows"] in left  # it was replaced this very moment
    assert len(left) == 2


def test_what_is_at_hand_is_read_once_and_again_when_it_changes(tmp_path: Path) -> None:
    calls = []

    def counted(folder: Path) -> Held | None:
        calls.append(folder)
        return read(folder)

    at_hand = ArtifactCache(2, counted)
    assert at_hand.get(tmp_path / "a") is None
    write_artifact(tmp_path / "a", {}, {"rows": ROWS})
    first = at_hand.get(tmp_path / "a")
    assert first is not None  # that there was nothing is not remembered
    assert at_hand.get(tmp_path / "a") is first
    assert len(calls) == 2
    write_artifact(tmp_path / "a", {"n": 1}, {"rows": ROWS})
    assert at_hand.get(tmp_path / "a") is not first
    for name in ("b", "c"):
        write_artifact(tmp_path / name, {}, {"rows": ROWS})
        at_hand.get(tmp_path / name)
    before = len(calls)
    at_hand.get(tmp_path / "a")  # the third of two
    assert len(calls) == before + 1


@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_what_spoils_is_forgotten(tmp_path: Path, harm: str) -> None:
    at_hand = ArtifactCache(2, read)
    write_artifact(tmp_path, {}, {"rows": ROWS})
    held = at_hand.get(tmp_path)
    assert held is not None
    path = held.files.tables["rows"]
    path.unlink() if harm == "gone" else path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(ArtifactCorrupted, match="reload"), held.files.reading():
        pl.read_parquet(path)
    assert at_hand.get(tmp_path) is None
    write_artifact(tmp_path, {}, {"rows": ROWS})
    assert at_hand.get(tmp_path) is not None


@pytest.mark.parametrize("head", [b"", b"{", b"[" * 50_000, b'{"body": "[[["}'])
def test_a_damaged_head_is_none(tmp_path: Path, head: bytes) -> None:
    write_artifact(tmp_path, {}, {"rows": ROWS})
    (tmp_path / HEAD).write_bytes(head)
    assert read_artifact(tmp_path) is None
