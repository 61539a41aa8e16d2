"""What four people come for, by clicks from home; and the tutorial about one change, walked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.net.commands import NOW
from tests.web.conftest import LAPTOP, LAPTOP_THEN_PHONE, PHONE, Clock, PageOf, axe, sound

from karat.tables.accounts.people import Role
from karat.web.framework.settings import Settings

TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/one-change.md"
HOUR = r"\d{4}-\d\d-\d\d \d\d:00"


@pytest.fixture(scope="module")
def demo(built_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo, whose numbers are computed once."""
    return Path(shutil.copytree(built_demo / "demo", tmp_path_factory.mktemp("people") / "demo"))


@pytest.fixture
def site_settings(demo: Path) -> Settings:
    """The demo, served."""
    return Settings(demo, hosts=("127.0.0.1", "localhost"))


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


class Visit:
    """Somebody who opened home, and only clicks."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.goto("/")
        computed(page)
        self.clicks = 0

    def click(self, name: str, within: str = "main") -> None:
        self.page.locator(within).get_by_role("link", name=re.compile(name)).first.click()
        self.clicks += 1
        assert self.clicks <= 2
        computed(self.page)

    def sees(self, *parts: str) -> str:
        """The text of parts of the page, all in the first screen, above a bar at its bottom."""
        size, bar = self.page.viewport_size, self.page.locator("nav.stages")
        below = bar.bounding_box()["y"] if bar.count() else 0
        height = below if below > size["height"] / 2 else size["height"]
        found = []
        for part in parts:
            place = self.page.locator(part).first
            place.wait_for()
            box = place.bounding_box()
            assert 0 <= box["x"] < box["x"] + box["width"] <= size["width"], (part, box)
            assert 0 <= box["y"] < box["y"] + box["height"] <= height, (part, box)
            found.append(" ".join(place.inner_text().split()))
        return "\n".join(found)


Visits = Callable[..., Iterator[Visit]]


@pytest.fixture
def visits(page_of: PageOf) -> Visits:
    """Visits of home, with a laptop and a telephone; axe finds nothing where they end."""

    @contextmanager
    def opened(name: str, role: Role, size: dict[str, Any]) -> Iterator[Visit]:
        with page_of(name, role, **size) as page:
            visit = Visit(page)
            yield visit
            sound(page)
            assert axe(page) == []

    def each(name: str, role: Role = "engineer") -> Iterator[Visit]:
        for size in (LAPTOP, PHONE):
            with opened(name, role, size) as visit:
                yield visit

    return each


def test_an_engineer_sees_whether_a_change_may_ship_and_what_would_change_that(
    visits: Visits,
) -> None:
    for visit in visits("egon"):
        visit.click("^Gate of semantic failed")
        said = visit.sees("#verdict", ".next-step .lead", ".next-step p:nth-of-type(2)")
        assert re.match(r"Hold: nDCG@10 drops by at most [\d.]+%", said), said
        assert "allowed" in said
        assert "beyond the limit" in said or "reaches into what is allowed" in said
    for visit in visits("egon"):
        visit.click("^Comparison$")
        visit.click("^hybrid$", ".pills")
        said = visit.sees("#verdict .decision", "#verdict > p:nth-of-type(2)")
        assert re.match(r"(Ship|Hold|Cannot tell) .*\n", said), said
        assert (
            "nDCG@10 drops by at most" in said
        )  # the rule that decides, or is nearest to its limit
        assert re.search(r"\d queries detect a drop of|beyond the limit", said), said


def test_a_rater_sees_a_card_and_how_much_is_left(visits: Visits) -> None:
    for visit in visits("rita", "rater"):
        assert re.search(r"\d+ judged, \d+ left", visit.sees("#query", ".doc h3", "#far"))
        visit.sees(".grades button:last-of-type", "#answer [value=later]")


def test_a_manager_sees_how_search_is_and_what_changed(visits: Visits, tmp_path: Path) -> None:
    for visit in visits("mona"):
        assert "rose from" in visit.sees(".how")
        numbers = [f".stats div:nth-of-type({at})" for at in (1, 2, 3)]
        said = visit.sees(*numbers).splitlines()
        assert [len(re.findall("against the (?:week|point) before", each)) for each in said] == [
            *(1, 1, 1)
        ]
        assert sheets(visit.page, tmp_path) == 1
        visit.click("^Release", "nav.stages")
        assert "semantic" in visit.sees(".board li:first-of-type .title")
        visit.click("^hybrid-2$")
        assert "finished" in visit.sees("h1", ".title .chip", ".rail")
        assert sheets(visit.page, tmp_path) == 1


def sheets(page: Any, folder: Path) -> int:
    """How many sheets of A4 a page prints on."""
    [count] = re.findall(rb"/Count (\d+)", page.pdf(path=folder / "a.pdf", format="A4"))
    return int(count)


def test_on_call_sees_since_when_for_whom_and_what_was_released(visits: Visits) -> None:
    for visit in visits("egon"):
        said = visit.sees(".how", ".how + p")
        assert re.match(rf"ZeroResults of query_class=misspelt rose from .* since {HOUR}", said)
        assert re.search(r"\nReleased before: \d{4}.* hybrid-2: .* \(times in UTC\)", said), said
        visit.click("^ZeroResults of query_class=misspelt rose")
        said = visit.sees(
            ".lead", ".facts dd:nth-of-type(1)", ".facts dd:nth-of-type(2)", "[value=acknowledged]"
        )
        assert re.search(rf"since {HOUR}, explains \d+ more", said), said
        assert re.search(rf"\n{HOUR} \(95 %: .*\n\d{{4}}-.* hybrid-2: ", said), said


def go(page: Any, name: str, within: str = "main") -> None:
    """Click a link that the tutorial names."""
    assert f"**{name}**" in TUTORIAL.read_text("utf-8")
    page.locator(within).get_by_role("link", name=re.compile(rf"^{name}\b")).first.click()
    computed(page)


@pytest.mark.parametrize("screen", LAPTOP_THEN_PHONE)
def test_one_change_from_a_failing_query_to_a_release(
    page_of: PageOf, screen: dict[str, Any]
) -> None:
    menu, tabs = "nav.stages", "nav.tabs"
    with page_of("egon", "engineer", **screen) as page:
        page.goto("/")
        page.locator(menu).get_by_role("link", name="Online").click()
        go(page, "Worst queries", tabs)  # counted once
        go(page, "Home", menu)
        sound(page)
        page.get_by_role("link", name="fails most").click()
        computed(page)
        assert page.locator("h1").inner_text().startswith("Worst queries")
        page.locator("#queries a[href*='/diagnosis/']").first.click()
        computed(page)
        query = page.locator("h1").inner_text()
        go(page, "Try a fix in the playground")
        assert query in page.content()
        go(page, "Offline", menu)
        go(page, "Comparisons", tabs)
        page.get_by_role("link", name="semantic, hybrid against bm25").click()
        computed(page)
        go(page, "hybrid", ".pills")
        decision = page.locator("#verdict .decision")
        decision.wait_for()
        assert re.match(r"Ship|Hold|Cannot tell", decision.inner_text())
        go(page, "Queries")
        go(page, "Priorities")
        go(page, "Release", menu)
        go(page, "Gates", tabs)
        assert page.locator("#check").count() == 1
        go(page, "Experiments", tabs)
        go(page, "Board", tabs)
        sound(page)
        page.locator("main a[href*='/releases/']").first.click()
        computed(page)
        assert page.locator("#evidence").count() == 1
