"""Lines without axes."""

from __future__ import annotations

from karat.reports.charts.sparkline import sparkline


def test_it_spans_the_lowest_to_the_highest_and_bridges_gaps() -> None:
    # 116 x 24 pixels inside a border of 2; upwards is less in SVG.
    assert sparkline([0.1, None, 0.3, 0.2]) == "2.0,26.0 79.3,2.0 118.0,14.0"


def test_one_value_is_no_line() -> None:
    assert sparkline([None, 0.4]) == ""
    assert sparkline([]) == ""
