"""The page in a real browser: no request, no message, nothing wider than the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.choosing import deep_but

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from karat.tables import Qrels, Run
from karat.workflows.offline.compare import compare
from karat.workflows.offline.report import write_report

EVIL = '"><script>document.title = "taken"</script>'


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 queries, of which 19 gain and q9 loses, five of them in a slice; one of a stranger."""
    grades = {f"q{n}": {"good": 1, "bad": 0} for n in range(20)} | {EVIL: {EVIL: 1}}
    grades |= {f"q{n}": {"good": 1, "bad": 0, "other": 1} for n in range(5)}
    old = Run.from_dict({q: {"bad": 3.0, "good": 2.0, "u": 1.0} for q in grades}, "old")
    after = {q: {"good": 3.0, "u": 2.0, EVIL * 5: 1.0} for q in grades} | {"q9": {"bad": 1.0}}
    new = Run.from_dict(after, "new" * 30)
    path = tmp_path_factory.mktemp("page") / "report.html"
    qrels = Qrels.from_dict(grades)
    found = compare(qrels, old, new, ["nDCG@3", "AP"], by="relevant_documents")
    write_report(path, found, runs=[old, new], qrels=qrels)
    return path


class Workspace:
    """A page in a context without a network, and what it asked for and said."""

    def __init__(self, chromium: Any, report: Path, place: str = "", **settings: Any) -> None:
        self.context = chromium.new_context(offline=True, **settings)
        self.page = self.context.new_page()
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.set_default_timeout(5_000)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(f"{report.as_uri()}{place}")

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, kind: object, *rest: object) -> None:
        self.context.close()
        if kind is None:
            assert self.said == []
            assert [url for url in self.asked if not url.startswith(("file:", "data:"))] == []


def shown(page: Any) -> int:
    return int(page.locator("#query-list > li:visible").count())


def focused(page: Any, what: str) -> str:
    return str(page.evaluate(f"String(document.activeElement.{what})"))


# Ordinarily one width and scheme, and keys; everything else a page does only with --deep.
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        pytest.param(390, "dark", marks=pytest.mark.deep),
        pytest.param(1280, "dark", marks=pytest.mark.deep),
        pytest.param(390, "light", marks=pytest.mark.deep),
    ],
)
def test_a_browser_finds_nothing_wrong(
    chromium: Any, report: Path, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 800}
    with Workspace(chromium, report, "#q2", viewport=size, color_scheme=scheme) as page:
        page.wait_for_function("document.querySelector('#q2 details').open")
        page.locator("#q1 summary").focus()
        page.keyboard.press("Enter")
        assert page.locator("#q1 section").first.is_visible()
        page.get_by_role("button", name="Worse").click()
        assert shown(page) == 1
        page.get_by_role("button", name="All", exact=True).click()
        page.get_by_label("Words of a query").fill("q7")
        assert shown(page) == 1
        page.get_by_label("Words of a query").fill("")
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "taken" not in page.title()


@pytest.mark.deep
def test_a_mark_says_its_numbers_and_leads_to_its_queries_by_keyboard(
    chromium: Any, report: Path
) -> None:
    with Workspace(chromium, report, viewport={"width": 1280, "height": 800}) as page:
        tip = page.locator("#tip")
        assert page.locator("figure .wide svg .mark[tabindex='0']").count() == 3  # one of a chart
        page.locator("figure .wide svg .mark").first.focus()
        assert tip.inner_text().startswith("nDCG@3: went from")
        page.keyboard.press("ArrowDown")
        assert tip.inner_text().startswith("AP: went from")
        assert focused(page, "getAttribute('aria-label')") == tip.inner_text()
        page.keyboard.press("Escape")
        assert not tip.is_visible()
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.id === 'query-view'")
        assert page.locator("#query-view option:checked").inner_text() == "AP"
        # The numbers in the list are those of the measure.
        assert page.locator("#q1 .change:visible").count() == 1
        assert page.locator("#q1 .change").nth(1).is_visible()


@pytest.mark.deep
def test_a_slice_narrows_the_list_to_its_queries(chromium: Any, report: Path) -> None:
    with Workspace(chromium, report, viewport={"width": 1280, "height": 800}) as page:
        table = page.get_by_role("region", name="nDCG@3 by relevant_documents")
        table.get_by_role("link", name="2 to 3", exact=True).click()
        page.wait_for_url("**#*")
        page.wait_for_function("document.querySelector('#query-count').innerText.startsWith('5 ')")
        assert shown(page) == 5
        assert page.locator("#query-count").inner_text() == "5 of 21 shown"
        page.evaluate("location.hash = '#q21'")  # a query outside of the slice
        page.wait_for_function("document.querySelector('#q21 details').open")
        assert shown(page) == 21


@pytest.mark.deep
def test_headings_order_tables_by_keyboard(chromium: Any, report: Path) -> None:
    with Workspace(chromium, report, viewport={"width": 1280, "height": 800}) as page:
        page.evaluate("document.querySelectorAll('[data-paper]').forEach(f => { f.open = true; })")
        table = page.locator("[data-paper] table.sorts").first
        button = table.get_by_role("button", name="value")
        button.focus()
        values = []
        for order in ("ascending", "descending"):
            page.keyboard.press("Enter")
            assert table.locator("th[aria-sort]").get_attribute("aria-sort") == order
            values.append(table.locator("td[data-head=Value]").all_inner_texts())
        assert values[0] == sorted(values[0])
        assert values[1] == values[0][::-1]


@pytest.mark.deep
def test_a_finger_is_told_first_and_led_on_second(chromium: Any, report: Path) -> None:
    size = {"width": 390, "height": 800}
    with Workspace(chromium, report, viewport=size, has_touch=True, is_mobile=True) as page:
        mark = page.locator("h2#queries ~ figure .narrow svg .mark").first
        mark.scroll_into_view_if_needed()
        mark.tap()
        assert page.locator("#tip").inner_text().endswith("Tap again to go there.")
        assert "#" not in page.url
        mark.tap()
        page.wait_for_url("**#q*")
        # Nothing hidden can be reached: a card has no headings to press.
        assert page.locator(".cards .sort:enabled").count() == 0


@pytest.mark.deep
def test_paper_has_every_measure(chromium: Any, report: Path, tmp_path: Path) -> None:
    with Workspace(chromium, report, viewport={"width": 1280, "height": 800}) as page:
        page.emulate_media(media="print")
        assert not page.locator("#query-tools").is_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("[data-paper]:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("[data-paper][open]").count() == 0
        assert page.pdf(path=tmp_path / "page.pdf", format="A4").startswith(b"%PDF")


@pytest.mark.deep
def test_it_reads_without_scripts(chromium: Any, report: Path) -> None:
    with Workspace(chromium, report, java_script_enabled=False) as page:
        page.locator("#q1 summary").click()
        assert page.locator("#q1 section").first.is_visible()
        assert not page.locator("#query-tools").is_visible()
        assert not page.locator("#tip").is_visible()
        # A link of a chart leads where a script would lead it, and its title is the browser's.
        assert "nDCG@3: went from" in page.locator("svg .mark title").first.text_content()


def contrast(page: Any, front: str, back: str) -> float:
    """Of two of the page's colours, as WCAG 2.2 defines it."""

    def luminance(name: str) -> float:
        text = page.evaluate(
            f"getComputedStyle(document.documentElement).getPropertyValue('{name}')"
        )
        parts = [int(text.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(front), luminance(back)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.deep
@pytest.mark.parametrize("scheme", deep_but(["light"], ["light", "dark"]))
def test_every_colour_of_text_can_be_read(chromium: Any, report: Path, scheme: str) -> None:
    with Workspace(chromium, report, color_scheme=scheme) as page:
        for front in ("--ink", "--quiet", "--up", "--down", "--link"):
            for back in ("--back", "--card"):
                assert contrast(page, front, back) >= 4.5, (front, back)  # WCAG AA
        for back in ("--up-back", "--down-back"):
            assert contrast(page, "--ink", back) >= 4.5
