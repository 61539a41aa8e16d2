"""The board and a release in a real browser: sound on both sizes, and usable without scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.release_road import Road
from tests.web.conftest import LAPTOP, PHONE, PageOf, axe, sound
from tests.web.release_shop import clock, road, walked, workspace

from karat.workflows.release import pipeline

__all__ = ["clock", "road", "walked", "workspace"]


@pytest.mark.parametrize(
    "size", [LAPTOP, pytest.param(PHONE, marks=pytest.mark.deep)], ids=["laptop", "phone"]
)
def test_they_are_sound(size: dict[str, Any], page_of: PageOf, road: Road) -> None:
    with page_of("egon", "engineer", **size) as page:
        for path in ("/releases", "/releases/hybrid", "/releases/synonyms"):
            page.goto(path)
            for each in page.locator("main details > summary").all():
                each.click()
            sound(page, on_both=True)
            assert axe(page) == [], path


def test_it_prints_on_one_sheet(page_of: PageOf, road: Road, tmp_path: Path) -> None:
    with page_of("egon", "engineer") as page:
        page.goto("/releases/hybrid")
        page.emulate_media(media="print")
        assert not page.locator(".acts").is_visible()
        assert page.locator("#story").is_visible()
        sheets = re.findall(rb"/Count (\d+)", page.pdf(path=tmp_path / "a.pdf", format="A4"))
        page.emulate_media(media="null")
    assert sheets == [b"1"]


def test_a_rollback_without_scripts(page_of: PageOf, app: FastAPI, road: Road) -> None:
    with page_of("egon", "engineer", **LAPTOP, java_script_enabled=False) as page:
        page.goto("/releases")
        page.get_by_role("link", name="hybrid").click()
        page.locator("#rolled-back > summary").click()
        page.locator("#rolled-back [name=reason]").fill("wrong prices")
        page.get_by_role("button", name="Roll back hybrid").click()
        assert page.url.endswith("/releases/hybrid"), "the box is required"
        page.locator("#rolled-back [name=sure]").check()
        page.get_by_role("button", name="Roll back hybrid").click()
        page.get_by_role("status").wait_for()
        assert "rolled back (wrong prices)" in page.get_by_role("status").inner_text()
    assert json.loads(road.rollout.read_text())["stopped"]
    assert pipeline.state_of(app.state.site.workspace, "hybrid").rolled_back is not None
