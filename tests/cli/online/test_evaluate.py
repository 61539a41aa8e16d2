"""karat online evaluate and karat online metrics, as typed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.event_stores import keep_events

from karat.online.metrics.registry import DEFAULT, all_metrics

Typed = Callable[..., Any]
SECOND = 1_000_000
DAY = 86_400 * SECOND
FIRST = 20_758 * DAY + 9 * 3600 * SECOND  # 2026-11-01 09:00


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Two users on two days: four searches, one of them found nothing, two were clicked."""
    rows: list[dict[str, Any]] = []
    for number, (user, day, found, clicked) in enumerate(
        [("u1", 0, 10, True), ("u1", 1, 0, False), ("u2", 0, 10, True), ("u2", 1, 5, False)]
    ):
        at = FIRST + day * DAY
        query = f"q{number}"
        common = {"user_id": user, "query_id": query, "arm": user[1]}
        rows.append(common | {"time_us": at, "kind": "search", "query": "pie", "returned": found})
        if clicked:
            click = {"time_us": at + 5 * SECOND, "kind": "click", "doc_id": "d", "position": 2}
            back = {"time_us": at + 65 * SECOND, "kind": "hide", "doc_id": "d"}
            rows += [common | click, common | back]
    folder = tmp_path / "log"
    keep_events(folder, pl.DataFrame(rows, schema_overrides={"position": pl.Int32}))
    return folder


def test_numbers_of_a_log(typed: Typed, events: Path) -> None:
    done = typed(f"online evaluate --events {events} -m ctr -m ZeroResults -m ctr@1 -m Conversion")
    lines = [line.split() for line in done.out.splitlines()]
    # Results were seen in three searches, two of them clicked: 66.7 %, at position 2 both.
    assert next(line for line in lines if line[:1] == ["CTR"])[:3] == ["CTR", "66.7", "%"]
    assert next(line for line in lines if line[:1] == ["CTR@1"])[1:3] == ["0.0", "%"]
    assert next(line for line in lines if line[:1] == ["ZeroResults"])[1:3] == ["25.0", "%"]
    assert next(line for line in lines if line[:1] == ["Conversion"])[1] == "–"
    assert "· Conversion: –: the log has no purchases" in done.out
    assert "2 days are less than a week" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_usual_metrics_by_day_and_arm(typed: Typed, events: Path) -> None:
    done = typed(f"online evaluate --events {events} --by day --by day,arm -f json")
    found = json.loads(done.out)
    assert [r["metric"] for r in found["results"] if not r["slice"]] == list(DEFAULT)
    of = {tuple(r["slice"].values()): r["value"] for r in found["results"] if r["metric"] == "CTR"}
    assert of[("2026-11-01",)] == 1.0
    assert of[("2026-11-02",)] == 0.0
    assert of[("2026-11-02", "1")] is None  # nothing was seen: null, not 0
    assert of[("2026-11-02", "2")] == 0.0


def test_one_screen_or_everything(typed: Typed, events: Path) -> None:
    line = f"online evaluate --events {events} --by day"
    brief, full, chosen = (typed(f"{line}{more}").out for more in ("", " --full", " -m SAT -m CTR"))
    assert "(all: --full)" in brief
    rows = [text.count("\n SessionsPerUser") for text in (brief, full)]
    assert rows == [1, 2]  # of all; of all, and of the two days side by side
    assert "--full" not in full + chosen


def test_other_formats(typed: Typed, events: Path) -> None:
    rows = typed(f"online evaluate --events {events} -m CTR --by hour -f csv")
    found = list(csv.DictReader(io.StringIO(rows.out)))
    assert [(row["slice_hour"], row["n"]) for row in found] == [("", "3"), ("09", "3")]
    assert "karat: 2 days are less than a week" in rows.err
    assert "| CTR | 66.7 % |" in typed(f"online evaluate --events {events} -m CTR -f md").out


def test_days_and_rules(typed: Typed, events: Path) -> None:
    line = f"online evaluate --events {events} -m SAT -f json"
    one = json.loads(typed(f"{line} --from 2026-11-02 --to 2026-11-02").out)
    assert one["period"] == ["2026-11-02", "2026-11-02"]
    assert one["results"][0]["n"] == 1
    # Both clicks were read for a minute: enough at 30 s, not at 90 s.
    assert json.loads(typed(line).out)["results"][0]["value"] == pytest.approx(2 / 3)
    strict = json.loads(typed(f"{line} --rule satisfied=90s").out)
    assert strict["results"][0]["value"] == 0.0
    assert strict["rules"] == "rules@1 satisfied=90s"


def test_mistakes_are_told(typed: Typed, events: Path, tmp_path: Path) -> None:
    where = f"--events {events}"
    for line, said in {
        f"online evaluate {where} -m CTRR": "did you mean CTR",
        f"online evaluate {where} --by dya": "did you mean day",
        f"online evaluate {where} --by class": "--queries FILE",
        f"online evaluate {where} --rule idel=2min": "did you mean idle",
        f"online evaluate {where} --from yesterday": "is not a date",
        f"online evaluate {where} --from 2027-01-01": "the log holds 2026-11-01 to 2026-11-02",
        f"online evaluate {where} -m ndcg@10": "online against",
        f"online evaluate {where} --by country": "fix: slice by day",
        f"online evaluate --events {tmp_path / 'none'}": "no events",
        "online metrics CTRR": "did you mean CTR",
    }.items():
        assert said in typed(line, code=2).err, line


def test_the_catalogue(typed: Typed) -> None:
    assert all(metric.name in typed("online metrics").out for metric in all_metrics()[:3])
    assert typed("online metrics dwell").out.startswith("Dwell: median dwell")
    one = json.loads(typed("online metrics latency:p95 -f json").out)
    assert (one["name"], one["unit"], one["guardrail"]) == ("Latency(p95)", "milliseconds", True)
    assert len(json.loads(typed("online metrics -f json").out)) == len(all_metrics())
    page = Path(__file__).parents[3] / "docs/reference/online-metrics.md"
    assert typed("online metrics -f md").out == page.read_text(encoding="utf-8")


def test_only_one_arm(typed: Typed, events: Path) -> None:
    here = f"online evaluate --events {events} -m ctr -m ZeroResults -f json"
    found = json.loads(typed(f"{here} --only arm=2").out)
    # u2's two searches: both found something, one was clicked.
    values = {row["metric"]: (row["value"], row["n"]) for row in found["results"]}
    assert values == {"CTR": (0.5, 2), "ZeroResults": (0.0, 2)}
    assert "only searches with arm=2 are counted" in found["notes"]
    assert "its arms are 1, 2" in typed(f"{here} --only arm=b", code=2).err
