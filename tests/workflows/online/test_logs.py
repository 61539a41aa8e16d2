"""Logs evaluated without an event store: the importer reads them, and nothing is left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import karat
from karat.errors import InputError, UsageError
from karat.workflows.online.import_events import import_events

# ann searches and clicks the second of two; bob finds nothing; the time of the last row is none.
LOG: dict[str, list[Any]] = {
    "action": ["search", "click", "search", "hover"],
    "query_id": ["a", "a", "b", "b"],
    "user_id": ["ann", "ann", "bob", "bob"],
    "query": ["red shoes", None, "red shose", None],
    "timestamp": ["2026-11-16T09:00:00Z", "2026-11-16T09:00:05Z", "2026-11-16T23:30:00Z", "noon"],
    "doc_id": [None, "p2", None, None],
    "position": [None, 2, None, None],
    "total_hits": [2, None, 0, None],
}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def in_pandas(columns: dict[str, list[Any]]) -> Any:
    frame = pytest.importorskip("pandas").DataFrame(columns)
    times = pytest.importorskip("pandas").to_datetime(frame["timestamp"], errors="coerce")
    return frame.assign(timestamp=times)


@pytest.mark.parametrize(
    "frame_of",
    [
        pl.DataFrame,
        in_pandas,
        pytest.param(lambda log: pytest.importorskip("pyarrow").table(log), marks=pytest.mark.deep),
        lambda log: pl.DataFrame(log).to_dicts(),
    ],
)
def test_a_frame_is_evaluated_as_its_import_would_be(
    frame_of: Callable[..., Any], temporary: Path
) -> None:
    found = karat.evaluate_online(frame_of(LOG), "ZeroResults")
    assert [row.value for row in found.results] == [0.5]  # bob's, of two searches
    assert found.value("zeroresults") == 0.5
    with pytest.raises(UsageError, match="'CTR' was not computed; available: ZeroResults"):
        found.value("CTR")
    assert found.events == 3
    assert "1 row left out, no valid time (the data frame, row 4)" in found.notes
    assert any("nothing in the log identifies bots" in note for note in found.notes)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    "given",
    [
        "log.csv",
        pytest.param(Path("log.parquet"), marks=pytest.mark.deep),
        ["log.jsonl"],
        pytest.param("*.jsonl", marks=pytest.mark.deep),
    ],
)
def test_a_file_is_evaluated_as_its_import_would_be(given: Any, temporary: Path) -> None:
    log = pl.DataFrame(LOG)
    log.write_csv("log.csv")
    log.write_ndjson("log.jsonl")
    log.write_parquet("log.parquet")
    found = karat.evaluate_online(given, "ZeroResults")
    assert [(row.value, row.n) for row in found.results] == [(0.5, 2)]
    [left_out] = [note for note in found.notes if note.startswith("1 row left out, no valid time")]
    assert "(log." in left_out
    assert not list(temporary.iterdir())


def test_a_mapping_and_a_time_zone_are_those_of_the_import() -> None:
    log = {("what" if name == "action" else name): column for name, column in LOG.items()}
    Path("mapping.toml").write_text('[columns]\naction = "what"\n')
    found = karat.evaluate_online(
        pl.DataFrame(log), "ZeroResults", by="day", mapping="mapping.toml", timezone="Asia/Tokyo"
    )
    # 23:30 in UTC is the next day in Tokyo.
    assert [row.slice.get("day") for row in found.results] == [None, "2026-11-16", "2026-11-17"]
    import_events(Path("store"), _written(), now=10**16)
    for given in ({"mapping": "mapping.toml"}, {"timezone": "UTC"}):
        with pytest.raises(UsageError, match="applies to the import of a log, and these events"):
            karat.evaluate_online("store", **given)  # type: ignore[arg-type]


def _written() -> list[str | Path]:
    pl.DataFrame(LOG).write_ndjson("log.jsonl")
    return ["log.jsonl"]


def test_a_note_tells_what_the_importer_does_not_know() -> None:
    _written()
    log = Path("log.jsonl").read_text().replace('"noon"', '"2026-11-16T23:31:00Z"')
    Path("log.jsonl").write_text(log + "{\n")
    notes = karat.evaluate_online("log.jsonl", "ZeroResults").notes
    assert "unknown actions, kept as other: hover (1)" in notes
    assert "1 row left out, not a JSON object, or truncated (log.jsonl, line 5)" in notes


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (
            pl.DataFrame({"x": [1]}),
            r"^the data frame: no row is an event.*\n  fix: .*mapping=FILE$",
        ),
        (pl.DataFrame(LOG).head(0), "there are no events in the log"),
        (pl.DataFrame({"x": [object()]}), "cannot be written as Parquet"),
        ("log.csv", "log.csv: there is no such file"),
        ("store", "no events in store"),
        ([1, 2], "a list that does not hold paths is not a log of events"),
        (7, "events: a int is not a data frame"),
    ],
)
def test_what_is_not_a_log_is_refused(events: Any, says: str, temporary: Path) -> None:
    with pytest.raises(InputError, match=says):
        karat.evaluate_online(events)
    assert not list(temporary.iterdir())
