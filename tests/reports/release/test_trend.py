"""A trend for eyes: 80 columns."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from typing import Any

from karat.reports.release.trend import show
from karat.reports.release.trend_page import to_html
from karat.reports.writers.terminal import console
from karat.tables.release.history import Answered, Point, Value
from karat.workflows.release.trend import trend


def points(n: int = 12, label: str = "", clock: bool = False) -> list[Point]:
    """A fall in small steps, with other judgments from the third point on."""
    return [
        Point(
            f"2026-03-01T{i:02}:30:00Z" if clock else f"2026-03-{i + 1:02}T02:00:00Z",
            "gate", "bm25", label or f"{i:040x}", "pass", "", "1",
            (Value("nDCG@10", v := 0.8 - 0.004 * i, v - 0.05, v + 0.05, 30),),
            {"queries": "q", "qrels": "old" if i < 2 else "new", "run": f"r{i}", "corpus": f"c{i}"},
        )
        for i in range(n)
    ]  # fmt: skip


def shown(found: Any, width: int = 80) -> list[str]:
    out = StringIO()
    show(found, console(out, width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_table_fits_and_says_what_happened() -> None:
    lines = shown(trend(points(14)))
    assert max(map(len, lines)) <= 80
    assert lines[0] == "nDCG@10 of bm25"
    assert lines[1].startswith("DRIFT: −0.0440 since 2026-03-03 (0000000), 11 of 11 steps")
    cut = next(i for i, line in enumerate(lines) if "─ break ─" in line)
    assert "judgments" in lines[cut]
    after = next(line for line in lines[cut:] if "2026-03-03" in line)
    assert "0.7920" in after
    assert "−0.0040" not in after, "no change across a break"
    last = next(line for line in lines if "2026-03-12" in line)
    assert re.search(r"0\.7560 +30 +├─*●─*┤ +−0\.0040 +pass +code, corpus$", last)


def test_a_bar_stands_where_its_value_is() -> None:
    rows = [line for line in shown(trend(points())) if "●" in line]
    places = [row.index("●") for row in rows]
    assert places == sorted(places, reverse=True)
    assert places[0] > places[-1]


def test_several_points_a_day_have_a_clock_and_old_ones_are_left_out() -> None:
    lines = shown(trend(points(12, clock=True), last=3))
    assert max(map(len, lines)) <= 80
    assert sum("●" in line for line in lines) == 3
    assert any("03-01 11:30" in line for line in lines)
    assert "9 earlier points not shown (--last 12)" in lines


def test_values_that_are_all_the_same_or_not_there() -> None:
    value = Value("AP", 0.5)
    same = [Point(f"2026-03-0{i}T02:00:00Z", "gate", "a", None, None, "", "1", (v,), {})
            for i, v in enumerate([value, value, Value("AP", None)], start=1)]  # fmt: skip
    lines = shown(trend(same))
    assert sum("●" in line for line in lines) == 2
    assert any("no value" in line and "0.0000" not in line for line in lines)
    page = to_html(trend(same))
    assert "NaN" not in page


def test_strangers_command_neither_terminal_nor_page() -> None:
    found = trend(points(3, label="<script>\x1b[2J"))
    assert not any("\x1b" in line for line in shown(found))
    assert "<script" not in to_html(found)


def test_a_point_that_says_nothing_is_hollow_and_told_in_words() -> None:
    line = points(8)[2:]
    line[2] = replace(line[2], answered=Answered(30, 12, 0, 0))
    line[3] = replace(line[3], verdict="unhealthy")
    line[4] = replace(
        line[4], verdict="error", values=(Value("nDCG@10", 0.01, None, None, 3),)
    )  # fmt: skip
    lines = shown(trend(line))
    assert max(map(len, lines)) <= 80
    by_day = {day: next(x for x in lines[2:] if f"03-{day:02} " in x) for day in range(3, 9)}
    assert ["●" in by_day[day] for day in range(3, 9)] == [True, True, False, False, False, True]
    assert ["○" in by_day[day] for day in (5, 6, 7)] == [True, True, False]
    assert "‹" in by_day[7], "below all that count, so at the edge"
    assert re.search(r"0\.0100 +3 ", by_day[7]), "n is shown"
    assert "unhealthy" in by_day[6]
    assert "−" not in by_day[6], "no change is told"
    assert "−0.0160" in by_day[8], "from the last that counts: four steps of .004"
    assert "2026-03-05 (0000000): 12 of 30 queries got no answer (left out)" in lines
    assert "2026-03-06 (0000000): gate: unhealthy (left out)" in lines


def test_the_newest_point_comes_first_in_what_is_said() -> None:
    line = points(4)[2:]
    line[1] = replace(line[1], answered=Answered(30, 0, 20, 10))
    first = " ".join(shown(trend(line))[1:3])
    assert "the newest point does not count (no document for any of 30 queries)" in first


def test_the_column_is_explained_where_it_is_shown() -> None:
    found = trend(points())
    assert not any("significant:" in line for line in shown(found)), "left out for want of room"
    assert any("Sig." in line for line in shown(found, 120))
    assert any("significant:" in line for line in shown(found, 120))


def test_minus_signs_are_minus_signs() -> None:
    line = [replace(p, values=(Value("x", v, v - 0.5, v + 0.5, 30),))
            for p, v in zip(points(4)[2:], (0.0, 0.25), strict=True)]  # fmt: skip
    assert any("−0.5 " in row for row in shown(trend(line)))
    assert not any("-0.5" in row for row in shown(trend(line)))
