"""The tutorial about one change, walked in a browser: each page leads to the next."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.net.commands import NOW
from tests.web.conftest import LAPTOP_THEN_PHONE, Clock, PageOf, sound

from karat.web.framework.settings import Settings

TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/one-change.md"


@pytest.fixture
def site_settings(built_demo: Path, tmp_path: Path) -> Settings:
    """The demo, served."""
    shutil.copytree(built_demo / "demo", tmp_path / "demo")
    return Settings(tmp_path / "demo", hosts=("127.0.0.1", "localhost"))


@pytest.fixture
def clock() -> Clock:
    """The day on which the demo was built."""
    clock = Clock()
    clock.now = NOW * 1_000_000
    return clock


def computed(page: Any) -> None:
    """Wait for the numbers of the page."""
    page.wait_for_load_state()
    page.locator("[data-waits]").first.wait_for(state="detached", timeout=120_000)


def go(page: Any, name: str, within: str = "main") -> None:
    """Click a link that the tutorial names."""
    assert f"**{name}**" in TUTORIAL.read_text("utf-8")
    page.locator(within).get_by_role("link", name=re.compile(rf"^{name}\b")).first.click()
    computed(page)


@pytest.mark.parametrize("screen", LAPTOP_THEN_PHONE)
def test_one_change_from_a_failing_query_to_a_release(
    page_of: PageOf, screen: dict[str, Any]
) -> None:
    with page_of("egon", "engineer", **screen) as page:
        page.goto("/online/queries")  # counted once
        computed(page)
        page.goto("/")
        assert page.locator(".how").bounding_box()["y"] < page.viewport_size["height"]
        sound(page)
        page.get_by_role("link", name="fails most").click()
        computed(page)
        assert page.locator("h1").inner_text().startswith("Worst queries")
        page.locator("#queries a[href*='/diagnosis/']").first.click()
        computed(page)
        query = page.locator("h1").inner_text()
        go(page, "Try a fix in the playground")
        assert query in page.content()
        page.goto("/comparisons/1?candidate=hybrid")
        decision = page.locator("#verdict .decision")
        decision.wait_for()
        assert re.match(r"Ship|Hold|Cannot tell", decision.inner_text())
        go(page, "Queries")
        go(page, "Priorities")
        page.goto("/gates")
        page.goto("/releases")
        sound(page)
        page.locator("main a[href*='/releases/']").first.click()
        computed(page)
        assert page.locator("#evidence").count() == 1
