"""A trend for eyes: 80 columns, and a page that asks nobody for anything."""

from __future__ import annotations

import builtins
import re
from io import StringIO
from typing import Any

import pytest

from karat.errors import MissingExtra
from karat.reports.terminal import console
from karat.reports.trend import show_trend, to_html
from karat.tables.history import Point, Value
from karat.workflows.trend import trend


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
    show_trend(found, console(out, width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_table_fits_and_says_what_happened() -> None:
    lines = shown(trend(points()))
    assert max(map(len, lines)) <= 80
    assert lines[0] == "nDCG@10 of bm25"
    assert lines[1].startswith("DRIFT: −0.0360 since 2026-03-03, 9 of 9 steps")
    cut = next(i for i, line in enumerate(lines) if "not comparable" in line)
    assert "judgments" in lines[cut]
    after = next(line for line in lines[cut:] if "2026-03-03" in line)
    assert "0.7920" in after
    assert "−0.0040" not in after, "no change across a break"
    last = next(line for line in lines if "2026-03-12" in line)
    assert re.search(r"0\.7560 +├─*●─*┤ +−0\.0040 +no +code, corpus$", last)


def test_a_bar_stands_where_its_value_is() -> None:
    rows = [line for line in shown(trend(points())) if "●" in line]
    places = [row.index("●") for row in rows]
    assert places == sorted(places, reverse=True)
    assert places[0] > places[-1]


def test_several_points_a_day_have_a_clock_and_old_ones_are_left_out() -> None:
    lines = shown(trend(points(12, clock=True), last=3))
    assert max(map(len, lines)) <= 80
    assert sum("●" in line for line in lines) == 3
    assert any("2026-03-01 11:30" in line for line in lines)
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


def test_the_page_is_whole() -> None:
    page = to_html(trend(points()))
    assert page.count("<svg") == 2, "one for light, one for dark"
    # Nothing is loaded: no address but the names of SVG's own namespaces.
    addresses = set(re.findall(r"https?://[^\"'<\s]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "DRIFT: −0.0360" in page
    assert page.count('<tr class="break">') == 1
    assert page.index("2026-03-12 02:00") < page.index("2026-03-01 02:00")


@pytest.mark.parametrize("absent", ["jinja2", "vl_convert"])
def test_without_the_extra(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == absent:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"karat\[web\]"):
        to_html(trend(points(1)))
