"""Shadow logs: round trip, kills, and errors that name file, line and fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karat.errors import InputError
from karat.formats import read_run
from karat.formats.own.shadow_log import ShadowLog, read_limits, read_shadow_log
from karat.tables.experiments.shadow import Increase, ShadowLimits

HEADER = {
    "engines": {"baseline": "old", "candidate": "new"},
    "about": {"baseline": {"engine": "a", "parameters": {"k": 3}}, "candidate": {}},
    "requests": 3,
    "digest": "one",
}


def line(number: str, **more: Any) -> dict[str, Any]:
    answers = {
        "baseline": {"state": "ok", "latency_us": 900, "doc_ids": ["b", "a"], "scores": [1, 2]},
        "candidate": {"state": "failed", "error": "timeout after 1 s", "latency_us": 1_000_000},
    }
    return {"id": number, "query": f"q{number}", "phase": "warm", "answers": answers} | more


def written(path: Path, *lines: dict[str, Any], **how: bool) -> Path:
    with ShadowLog(path, HEADER, **how) as log:
        for each in lines:
            log.append(each)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.jsonl", line("1", query_id="x"), line("2", late_us=7, phase="cold")
    )
    found = read_shadow_log(path)
    assert found.requests.rows() == [("1", "q1", "x", "warm", 0), ("2", "q2", None, "cold", 7)]
    assert list(found.runs) == ["baseline", "candidate"]
    # In the order returned, whatever the scores say.
    assert found.runs["baseline"].of("1")["doc_id"].to_list() == ["b", "a"]
    answers = found.runs["candidate"].answers.select("state", "latency_us", "error").row(0)
    assert answers == ("failed", 1_000_000, "timeout after 1 s")
    assert found.about["baseline"] == {"engine": "a", "parameters.k": "3"}
    assert (found.names["again"], found.planned, found.dropped) == ("old", 3, 0)


def test_drops_are_counted_for_each_process(tmp_path: Path) -> None:
    lines = [line("a-1", dropped=1), line("b-1", dropped=5), line("a-2", dropped=3)]
    path = written(tmp_path / "s.jsonl", *lines, {"id": "b-end", "dropped": 9})
    found = read_shadow_log(path)
    assert (found.dropped, found.requests.height) == (12, 3)


@pytest.mark.parametrize("cut", [1, 20])
def test_a_line_that_was_cut_is_left_out(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "s.jsonl", line("1"), line("2"))
    path.write_bytes(path.read_bytes()[:-cut])
    resumed = ShadowLog(path, HEADER, resume=True)
    assert resumed.done == ({"1"})
    resumed.append(line("2"))
    resumed.close()
    assert read_shadow_log(path).requests["id"].to_list() == ["1", "2"]
    assert read_shadow_log(path).notes == []


def test_another_process_does_not_touch_a_line_that_was_cut(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", line("1"), line("2"))
    path.write_bytes(path.read_bytes()[:-20])
    written(path, line("3"))
    found = read_shadow_log(path)
    assert found.requests["id"].to_list() == ["1", "3"]
    assert found.notes == ["1 line was cut when a process stopped, and left out"]


def test_a_log_of_something_else_is_not_appended_to(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", line("1"))
    with pytest.raises(InputError, match="of other engines, queries or settings"):
        ShadowLog(path, {**HEADER, "digest": "two"})
    (tmp_path / "other").write_text("no\n")
    with pytest.raises(InputError, match="not a shadow log"):
        ShadowLog(tmp_path / "other", HEADER)
    with pytest.raises(InputError, match="cannot be written"):
        ShadowLog(tmp_path / "none" / "s.jsonl", HEADER)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"id": 3}, "a request has no id"),
        ({"id": "1"}, "duplicate id '1'"),
        ({"query": 3}, "query and phase are not text"),
        ({"query_id": 3}, "query_id is not text"),
        ({"dropped": -1}, "dropped is not a whole number of 0 or more"),
        ({"late_us": "x"}, "late_us is not a whole number of 0 or more"),
        ({"answers": {"third": {}}}, "answers are of baseline, candidate, again"),
        ({"answers": {"baseline": {"state": "fine"}}}, "the state of baseline is not one of"),
        ({"answers": {"baseline": {"state": "ok", "doc_ids": [3]}}}, "doc_ids of baseline"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    path = written(tmp_path / "s.jsonl", line("1"), line("2", **change))
    with pytest.raises(InputError) as error:
        read_shadow_log(path)
    assert what in str(error.value)
    assert (error.value.file, error.value.line) == (str(path), 3)


def test_it_is_not_read_as_a_run(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", line("1"))
    with pytest.raises(InputError, match="expected a run, got a shadow log"):
        read_run(path)
    head = json.loads(path.read_text().splitlines()[0])
    path.write_text(json.dumps(head | {"karat_shadow_log": 2}) + "\n")
    with pytest.raises(InputError, match="unsupported shadow log version 2"):
        read_shadow_log(path)
    path.write_text("")
    with pytest.raises(InputError, match="the file is empty"):
        read_shadow_log(path)


def limits(path: Path, text: str) -> ShadowLimits:
    (path / "limits.toml").write_text(f"[shadow]\n{text}\n")
    return read_limits(path / "limits.toml")


def test_limits(tmp_path: Path) -> None:
    assert limits(tmp_path, "") == ShadowLimits()
    text = 'min_requests = 50\nmax_errors = "0.5%"\nmax_p95_ms = 80\nmax_p95_increase = 5'
    found = limits(tmp_path, f"{text}\nmin_overlap = false\nmax_dropped = 0.2")
    assert found == ShadowLimits(
        min_requests=50, max_errors=0.005, max_p95_ms=80, max_dropped=0.2, min_overlap=None,
        max_p95_increase=Increase(5, relative=False),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("max_error = 1", "unknown key 'max_error'"),
        ('max_errors = "x"', "[shadow] max_errors is 'x', not a share from 0 to 1"),
        ("max_errors = true", "[shadow] max_errors is True, not a share from 0 to 1"),
        ("max_errors = 20", "[shadow] max_errors is 20, not a share from 0 to 1"),
        ("min_requests = 0", "[shadow] min_requests is 0"),
        ("max_p95_increase = [1]", "[shadow] max_p95_increase is [1]"),
    ],
)
def test_limits_that_are_none(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InputError) as error:
        limits(tmp_path, text)
    assert what in str(error.value)
    assert error.value.line == 2
