"""A trend as a page: it asks nobody for anything, and says in words what it draws."""

from __future__ import annotations

import base64
import builtins
import hashlib
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from karat.errors import MissingExtra
from karat.reports.release import trend_page
from karat.reports.release.trend import marks as marks_of
from karat.reports.release.trend_page import to_html
from karat.tables.release.history import Answered, Point, Value
from karat.workflows.release.trend import trend


def points(n: int = 12) -> list[Point]:
    """A fall in small steps, with other judgments from the third point on."""
    return [
        Point(
            f"2026-03-{i + 1:02}T02:00:00Z", "gate", "bm25", f"{i + 1:07}{'a' * 33}", "pass", "",
            "1", (Value("nDCG@10", v := 0.8 - 0.004 * i, v - 0.05, v + 0.05, 30),),
            {"queries": "q", "qrels": "old" if i < 2 else "new", "run": f"r{i}", "corpus": f"c{i}"},
        )
        for i in range(n)
    ]  # fmt: skip


def rows_of(line: list[Point]) -> tuple[list[dict[str, Any]], dict[int, list[str]]]:
    """What is drawn of each point, and the labels of the axis."""
    marks = trend(line).series[0].marks
    return trend_page._rows(marks), trend_page._dates(marks, 600)


def test_the_page_is_whole() -> None:
    page = to_html(trend(points(14)))
    assert page.count("<svg") == 2, "one for a wide screen, one for a telephone"
    # Nothing is loaded: no address but the names of SVG's own namespaces.
    addresses = set(re.findall(r"https?://[^\"'<\s]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}';" in page
    assert "style=" not in page, "the policy would stop it"
    assert "DRIFT: −0.0440 since 2026-03-03 (0000003), 11 of 11 steps" in page
    assert page.count('class="break"') == 1
    table = page.partition("<table")[2]
    assert table.index("2026-03-12 02:00") < table.index("2026-03-01 02:00")


@pytest.mark.parametrize("absent", ["jinja2", "vl_convert"])
def test_without_the_extra(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == absent:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"karat\[report\]"):
        to_html(trend(points(1)))


def test_a_point_that_says_nothing_is_off_the_line_and_told_in_words() -> None:
    line = points(8)[2:]
    line[2] = replace(line[2], answered=Answered(30, 12, 0, 0))
    line[3] = replace(line[3], verdict="error", values=(Value("nDCG@10", 0.01, n=3),))
    line[4] = replace(line[4], values=(Value("nDCG@10", None, n=0),))
    rows, _ = rows_of(line)
    assert [row["kind"] for row in rows] == [
        "counts", "counts", "hollow", "beyond", "none", "counts"
    ]  # fmt: skip
    assert rows[3]["shape"] == "triangle-down"
    assert rows[3]["value"] == pytest.approx(0.722), "the lowest end of an interval that counts"
    assert rows[4]["value"] is None, "and not 0"
    page = to_html(trend(line))
    for said in (
        "2026-03-05 (0000005): 12 of 30 queries got no answer (left out)",
        "2026-03-06 (0000006): gate: error (left out)",
        "2026-03-07 (0000007): no value (left out)",
        "pass: 12 of 30 queries got no answer",
        "6 points from 2026-03-03 to 2026-03-08: lowest 0.7720 on 2026-03-08 (0000008), highest",
        "3 left out",
        "Hollow: left out",
        "Dotted vertical line: no value",
    ):
        assert said in page


def test_points_stand_evenly_in_order_with_few_dates() -> None:
    line = [replace(point, time=f"2026-03-01T{i:02}:00:00Z") for i, point in enumerate(points())]
    line[-1] = replace(line[-1], time="2027-01-01T00:00:00Z")
    rows, labels = rows_of(line)
    assert [row["at"] for row in rows] == list(range(12))
    # An hour is 5 letters of 7.2 pixels and 14 between two: 50, and a point has 600 / 12.
    assert list(labels) == list(range(12))
    assert labels[0] == ["00:00", "2026-03-01"], "the hour, as days repeat"
    assert labels[1] == ["01:00"]
    assert labels[11] == ["00:00", "2027-01-01"]
    assert [row["at"] for row in rows if row["cut"]] == [2]


@pytest.mark.parametrize(("commit", "first"), [("v1", "v1"), (None, "#1")])
def test_points_of_one_minute_are_told_by_their_commit(commit: str | None, first: str) -> None:
    line = [
        replace(point, time=f"2026-03-01T02:00:{i:02}Z", commit=commit and f"v{i + 1}")
        for i, point in enumerate(points(3))
    ]
    labels = rows_of(line)[1]
    assert labels[0] == [first, "2026-03-01"]
    assert len({tuple(label) for label in labels.values()}) == 3


@pytest.mark.parametrize("width", [300, 660])
@pytest.mark.parametrize("days", [1, 4, 10])
def test_labels_below_a_chart_do_not_run_into_each_other(width: int, days: int) -> None:
    line = [
        replace(point, time=f"2026-03-{1 + i * days // 10:02}T02:00:{i:02}Z", commit=f"n{i}")
        for i, point in enumerate(points(10))
    ]
    labels = trend_page._dates(trend(line).series[0].marks, width)
    assert 9 in labels, "the newest"
    for row in (0, 1):
        # 6.7 pixels a digit of 12 pixels in Chromium's system-ui.
        ends = [
            (width / 10 * at - 3.35 * len(each[row]), 6.7 * len(each[row]))
            for at, each in labels.items()
            if len(each) > row
        ]
        assert all(a + wide < b for (a, wide), (b, _) in pairwise(ends)), labels
    if days == 1 and width == 660:
        assert [each[0] for each in labels.values()] == [f"n{i}" for i in range(10)], "all of them"


def test_what_changed_is_said_as_in_a_terminal() -> None:
    marks = trend(points(4)).series[0].marks
    [column] = [each for each in marks_of(marks).columns if each.name == "changed"]
    assert [column.cell(mark) for mark in marks] == [
        "", "code, corpus", "judgments, code, corpus", "code, corpus"
    ]  # fmt: skip


def test_a_fall_stands_above_all_series() -> None:
    line = points(4)[2:]
    line[1] = replace(line[1], values=(Value("nDCG@10", 0.0, None, None, 30),))
    page = to_html(trend(line))
    assert "1 of 1 series is significantly worse than before" in page
    assert "<strong>WORSE since 2026-03-04 (0000004): −0.7920 in one step" in page


def test_a_long_history_is_cut_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trend_page, "MOST", 5)
    page = to_html(trend(points()))
    assert "5 of 12 points" in page
    assert "2026-03-07 02:00" not in page
    assert "7 of 12 points" in to_html(trend(points(), last=7))


def test_strangers_put_nothing_into_the_page() -> None:
    line = [replace(point, run="<script>\x1b\x00", commit="<b>") for point in points(3)]
    page = to_html(trend(line))
    assert "<script" not in page
    assert "<b>" not in page
    assert "\x1b" not in page


def test_what_happened_stands_between_the_points_before_and_after_it() -> None:
    marks = trend(points(4)).series[0].marks  # at 02:00 of four days

    def at(time: str) -> float | None:
        return trend_page._at(marks, time)

    assert at("2026-03-01T01:59:59Z") is None, "before all that is shown"
    assert at("2026-03-02T02:00:00.000000Z") == 1
    assert at("2026-03-02T14:00:00Z") == 1.5, "half way, by the time between"
    assert at("2026-03-02T02:00:01Z") == 1.15, "not upon the point"
    assert at("2026-03-03T01:59:59Z") == 1.85
    assert 3 < (at("2027-01-01T00:00:00Z") or 0) < 3.5, "after all, and within the chart"


def test_remarks_are_drawn_with_their_labels_and_told() -> None:
    series = trend(points(4)).series[0]
    remarks = [
        trend_page.Remark("2026-03-02T14:00:00Z", "7", "<b>out</b>"),
        trend_page.Remark("2026-02-01T00:00:00Z", "8", "long before"),
    ]
    found = trend_page.section(series, series.marks, remarks)
    for drawn in found["charts"].values():
        (label,) = re.findall(r'^<svg role="group" aria-label="([^"]*)"', drawn)
        assert "annotation 7 on 2026-03-02: &lt;b&gt;out&lt;/b&gt;" in label
        assert "long before" not in label
        assert ">7</text>" in drawn
        assert ">8</text>" not in drawn
        assert "<b>" not in drawn
        assert drawn.count("aria-label=") == 1, (
            "a reader of a screen hears its title and its points"
        )
    assert found["remarked"]
    assert not trend_page.section(series, series.marks)["remarked"]
