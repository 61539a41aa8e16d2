"""The ledger of a held-out part."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from karat.errors import InputError
from karat.formats.own.held_out import NAME, Use, append, place, uses

USE = Use("2026-03-01T02:00:00.000000Z", "g.json", 4, (("bm25", "ab" * 32),), "anna", None)


def test_uses_are_added_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "g.json.held_out.jsonl"
    assert uses(path) == []
    assert list(append(path, USE)) == []
    assert list(append(path, USE)) == [USE]
    assert uses(path) == [USE, USE]
    assert path.read_bytes().count(b"\n") == 2


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with ThreadPoolExecutor(4) as pool:
        before = list(pool.map(lambda _: len(append(path, USE)), range(12)))
    assert sorted(before) == list(range(12))  # each saw all that came before it
    assert len(uses(path)) == 12


def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / NAME
    append(path, USE)
    data = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        append(path, USE)
    assert path.read_bytes() == data
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[]", "is not a use"),
        ('{"karat_history": 1}', "is not a use"),
        ('{"karat_held_out": 1, "runs": []}', "is not a use"),
        ('{"karat_held_out": 2}', "a newer karat"),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_added(line: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / NAME
    append(path, USE)
    path.write_bytes(path.read_bytes() + line.encode() + b"\n")
    data = path.read_bytes()
    for change in (lambda: uses(path), lambda: append(path, USE)):
        with pytest.raises(InputError, match=says) as caught:
            change()
        assert (caught.value.file, caught.value.line) == (str(path), 2)
    assert path.read_bytes() == data


def test_the_ledger_is_in_the_workspace_or_beside_the_golden_set(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    (alone / "folder/qrels").mkdir(parents=True)
    (alone / "folder/queries.jsonl").touch()
    assert place(alone / "g.json") == alone / "g.json.held_out.jsonl"
    # An export that is made anew replaces the folder: its ledger is not in it.
    assert place(alone / "folder") == alone / "folder.held_out.jsonl"
    assert place(alone / "folder/qrels/test.tsv") == alone / "folder.held_out.jsonl"
    (tmp_path / "karat.toml").touch()
    assert place(alone / "g.json") == place(alone / "folder") == tmp_path / NAME
