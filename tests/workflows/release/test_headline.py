"""The quality of search in one number."""

from __future__ import annotations

from pathlib import Path

from tests.web.test_home import gate_point

from karat.workflows.release.stored_trends import _history, headline


def test_it_is_of_the_run_that_was_measured_most_often(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    runs = ("main", "main", "other")
    lines = [gate_point(run, None, f"2026-03-0{at}T02:00:00Z") for at, run in enumerate(runs, 1)]
    path.write_text("".join(lines))
    found = headline([_history("history.jsonl", path)])
    assert found is not None
    number, history, series = found
    assert (history, series.run) == ("history.jsonl", "main")
    assert (number.value, number.change, number.better) == (0.5, 0.0, None)
    assert number.points == [0.5, 0.5]
    assert number.since == "2026-03-02"


def test_without_a_history_there_is_none() -> None:
    assert headline([]) is None
