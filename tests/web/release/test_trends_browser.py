"""Trends in a real browser: drawn under our own policy, marked, nothing serious for axe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import LAPTOP_THEN_PHONE, PageOf, sound

from karat.formats.own import history
from karat.tables.release.history import Point, Value

pytest.importorskip("vl_convert")


def put(workspace: Path) -> None:
    evil = "<img src=x onerror=document.title='taken'>"
    line = [
        Point(
            f"2026-03-{day:02}T02:00:00Z", "evaluate", evil, evil, None, "", "1",
            (Value("nDCG@10", 0.8 - 0.01 * day, 0.7, 0.9, 30), Value("AP", 0.0)),
            {"queries": "q", "qrels": "old" if day < 3 else "new", "run": f"r{day}", "corpus": "c"},
        )
        for day in range(1, 15)
    ]  # fmt: skip
    history.append(workspace / "history.jsonl", *line)


@pytest.mark.deep  # without a browser in test_trends.py
@pytest.mark.parametrize("size", LAPTOP_THEN_PHONE)
def test_a_series_is_found_looked_at_and_marked(
    page_of: PageOf, workspace: Path, size: dict[str, Any]
) -> None:
    put(workspace)
    with page_of("egon", "engineer", **size) as page:
        page.goto("/trends")
        untaken(page)
        page.get_by_role("link", name="nDCG@10").click()
        page.wait_for_selector("#points")
        assert page.locator("figure svg:visible").count() == 1
        page.get_by_label("What happened").fill("<b>Release</b> 4")
        page.get_by_label("Time in UTC").fill("2026-03-05T10:00")
        page.get_by_role("button", name="Add the annotation").click()
        page.wait_for_selector("#marks li")
        assert "<b>Release</b> 4" in page.locator("#marks").inner_text()
        assert "Numbered vertical line: an annotation" in page.locator("figcaption").inner_text()
        untaken(page)
        page.get_by_role("button", name="Remove").click()
        page.wait_for_selector("#marks .nothing")


def untaken(page: Any) -> None:
    """Nobody took the page over, and it shuts nobody out."""
    assert page.title() != "taken"
    assert page.locator("main img").count() == 0
    sound(page, on_both=True)
