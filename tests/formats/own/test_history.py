"""Histories: what goes in comes back, no line is lost, and damage is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError
from karat.formats.own import history
from karat.tables.release.history import Answered, Point, Value

POINT = Point(
    "2026-03-01T02:00:00Z", "gate", "bm25", "abc", "fail", "rel=2", "0.1.0",
    (Value("AP", 0.1 + 0.2, 0.25, 0.5, 30), Value("AP", None, attribute="class", slice="a\u2028b")),
    {"queries": "q", "qrels": "j", "run": "r", "corpus": None},
)  # fmt: skip


def test_what_goes_in_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    other = replace(
        POINT, kind="evaluate", verdict=None, commit=None, values=(), answered=Answered(9, 1, 2, 3)
    )  # fmt: skip
    history.append(path, POINT)
    history.append(path, other)
    assert history.read(path) == [POINT, other]
    assert path.read_bytes().count(b"\n") == 2
    assert [each.name for each in tmp_path.iterdir()] == ["trend.jsonl"], "nothing is left behind"


@given(st.text(), st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_and_number_survives(run: str, commit: str, value: float) -> None:
    if any("\ud800" <= c <= "\udfff" for c in run + commit):
        return
    point = replace(POINT, run=run, commit=commit, values=(Value("AP", value),))
    line = history._line(point).rstrip(b"\n")
    assert b"\n" not in line
    assert history._point(line, "x", 1) == point


def test_a_line_without_its_end_is_ended_first(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    history.append(path, POINT)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert history.read(path) == [POINT]
    history.append(path, POINT)
    assert history.read(path) == [POINT, POINT]


def test_a_compressed_history_stays_compressed(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl.gz"
    history.append(path, POINT)
    history.append(path, POINT)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert history.read(path) == [POINT, POINT]


@pytest.mark.deep  # processes that write at once
def test_writers_at_once_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    script = (
        "import sys; from dataclasses import replace; from karat.formats.own import history;"
        "point = history._point(sys.stdin.buffer.read(), 'stdin', 1)\n"
        "for i in range(15): history.append(sys.argv[1], replace(point, run=f'{sys.argv[2]}-{i}'))"
    )
    line = history._line(POINT)
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), name], stdin=subprocess.PIPE)
        for name in "abc"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(line)
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = [point.run for point in history.read(path)]
    assert sorted(found) == sorted(f"{name}-{i}" for name in "abc" for i in range(15))
    assert [run for run in found if run[0] == "a"] == [f"a-{i}" for i in range(15)]


def test_another_file_is_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 d1 1\n")
    with pytest.raises(InputError, match="not a karat history"):
        history.append(path, POINT)
    assert path.read_text() == "q1 0 d1 1\n"
    with pytest.raises(InputError, match="not a karat history"):
        history.read(path)
    with pytest.raises(InputError, match="cannot be written"):
        history.append(tmp_path / "nowhere/trend.jsonl", POINT)


def test_an_empty_file_can_be_begun_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    path.touch()
    with pytest.raises(InputError, match="empty"):
        history.read(path)
    history.append(path, POINT)
    assert history.read(path) == [POINT]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"karat_history": 2},
            "version 2; this karat reads version 1\n  fix: pip install --upgrade",
        ),
        ({"karat_history": True}, "version true"),
        ({"time": "2026-03-01 02:00"}, "time is"),
        ({"time": "2026-13-01T02:00:00Z"}, "time is"),
        ({"kind": "bake"}, "kind is"),
        ({"verdict": "great"}, "verdict is"),
        ({"values": [{"measure": "AP"}]}, "missing field 'value'"),
        ({"values": [dict.fromkeys(("value", "ci_low", "ci_high", "n")) | {"measure": 1}]}, "mea"),
        ({"hashes": {}}, "missing field 'queries'"),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"slices": 1}, "slices is 1"),
        ({"time": "2026-03-01T03:00:00+01:00"}, "not a time in UTC such as 2026-03-01T02:00:00Z"),
        ({"answered": 1}, "answered is not an object"),
        ({"answered": {"queries": 1}}, "answered: missing field 'failed'"),
        ({"answered": {"queries": 1, "failed": 2, "missing": 0, "empty": 0}}, "failed is 2"),
    ],
)
def test_a_damaged_line_is_named(change: dict[str, object], complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    history.append(path, POINT)
    with path.open("a") as stream:
        stream.write("\n" + json.dumps(POINT.to_dict() | change) + "\n")
    with pytest.raises(InputError) as refused:
        history.read(path)
    assert refused.value.line == 3
    assert complaint in str(refused.value)
    assert "fix: " in str(refused.value)


def test_damaged_lines_are_left_out_for_whoever_hears_of_them(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    history.append(path, POINT, replace(POINT, run="b"))
    one, two = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(one + b"\n{}\n" + two + one[:20] + b"\n")
    heard: list[InputError] = []
    assert [point.run for point in history.read(path, None, heard.append)] == [POINT.run, "b"]
    assert [error.line for error in heard] == [3, 5]
    with pytest.raises(InputError) as caught:
        history.read(path)
    assert caught.value.line == 3
    path.write_bytes(one[:20] + b"\n")
    with pytest.raises(InputError) as caught:  # no line is whole: then it is no history
        history.read(path, None, heard.append)
    assert len(heard) == 2


@pytest.mark.parametrize("rest", ['{"karat_history": 1, "ti', "[]", '"x"', '{"a": 1, "a": 2}'])
def test_half_a_line_is_named(rest: str, tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    history.append(path, POINT)
    with path.open("a") as stream:
        stream.write(rest)
    with pytest.raises(InputError, match="line 2") as refused:
        history.read(path)
    assert "version control" in str(refused.value)


def test_lines_of_the_first_karat_are_read(tmp_path: Path) -> None:
    """They have no counts of answers."""
    path = tmp_path / "trend.jsonl"
    row = POINT.to_dict()
    del row["answered"]
    path.write_text(json.dumps(row) + "\n")
    assert history.read(path) == [POINT]


def test_a_last_line_cut_short_is_told_and_never_buried(tmp_path: Path) -> None:
    """A program was stopped while it wrote: what stands before can be read; nothing is added."""
    path = tmp_path / "trend.jsonl"
    history.append(path, POINT, POINT)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:57])
    told: list[str] = []
    assert history.read(path, told.append) == [POINT, POINT]
    assert told == [f"{path}: the last line (3) is truncated and was skipped"]
    with pytest.raises(InputError, match="line 3: the last line is truncated; nothing was app"):
        history.append(path, POINT)
    assert path.read_bytes() == whole + whole[:57]
    path.write_bytes(whole[:57] + b"\n" + whole)
    with pytest.raises(InputError, match="line 1"):
        history.read(path, told.append)
    path.write_bytes(whole[:57])
    with pytest.raises(InputError, match="line 1"):
        history.read(path, told.append)


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    for bad, complaint in (
        (replace(POINT, values=(Value("AP", float("nan")),)), "use finite numbers only"),
        (replace(POINT, time="2026-03-01T03:00:00+01:00"), "time is"),
        (replace(POINT, verdict="great"), "verdict is"),
    ):
        with pytest.raises(InputError, match=complaint):
            history.append(path, POINT, bad)
        assert not path.exists()
    history.append(path, replace(POINT, run="caf\udce9"))  # a file's name in Latin-1
    assert history.read(path)[0].run == "caf?"


def test_a_folder_is_no_history(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the history is not a file"):
        history.append(tmp_path, POINT)
    with pytest.raises(InputError, match="got a folder"):
        history.read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write it")
def test_a_history_that_may_not_be_written_is_said(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    history.append(path, POINT)
    path.chmod(0o444)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        history.append(path, POINT)
