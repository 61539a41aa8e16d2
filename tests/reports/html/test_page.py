"""The page in a real browser: no request, no message, nothing wider than the screen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from karat.tables import Qrels, Run
from karat.workflows.compare import compare
from karat.workflows.report import write_report

EVIL = '"><script>document.title = "taken"</script>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    program = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if program is None:
        pytest.skip("needs Chromium on PATH, or its path in CHROMIUM")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    grades = {f"q{n}": {"good": 1, "bad": 0} for n in range(20)} | {EVIL: {EVIL: 1}}
    old = Run.from_dict({q: {"bad": 3.0, "good": 2.0, "u": 1.0} for q in grades}, "old")
    new = Run.from_dict({q: {"good": 3.0, "u": 2.0, EVIL * 5: 1.0} for q in grades}, "new" * 30)
    path = tmp_path_factory.mktemp("page") / "report.html"
    qrels = Qrels.from_dict(grades)
    found = compare(qrels, old, new, ["nDCG@3", "AP"], by="relevant_documents")
    write_report(path, found, runs=[old, new], qrels=qrels)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_finds_nothing_wrong(browser: Any, report: Path, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
    )
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{report.as_uri()}#q2")
    assert page.locator("#q2 details").get_attribute("open") is not None
    page.keyboard.press("Tab")
    page.locator("#q1 summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#q1 section").first.is_visible()
    page.get_by_role("button", name="Worse").click()
    assert page.locator("#query-list > li:visible").count() == 0
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_label("Words of a query").fill("q7")
    assert page.locator("#query-list > li:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "taken" not in page.title()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()


def test_it_reads_without_scripts(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator("#q1 summary").click()
    assert page.locator("#q1 section").first.is_visible()
    assert not page.locator("#query-tools").is_visible()
    context.close()
