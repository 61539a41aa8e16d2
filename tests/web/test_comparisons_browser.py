"""Comparing and judging in a real browser: on a desk and on a telephone, no other host asked."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from tests.web.conftest import Browser, ClientOf

pytest.importorskip("altair")
pytest.importorskip("vl_convert")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
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


@pytest.fixture
def served(app: FastAPI) -> Iterator[str]:
    """The app on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(app, port=port, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(200):
        if server.started:
            break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def egon(client_of: ClientOf) -> Browser:
    return client_of("engineer")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_two_runs_are_compared_and_a_missing_grade_is_given(
    chromium: Any, served: str, egon: Browser, width: int, scheme: str
) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    context.add_cookies([{"name": egon.site.cookie, "value": egon.secret, "url": served}])
    page = context.new_page()
    page.set_default_timeout(30_000)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto(f"{served}/runs")
        healthy(page)
        page.get_by_role("link", name="Compare runs").click()
        healthy(page)
        page.get_by_role("button", name="Compare", exact=True).click()
        page.wait_for_selector("#queries")
        healthy(page)
        listed(page)
        page.locator("#queries tbody a", has_text="red shoes").click()
        page.wait_for_selector("#beside")
        healthy(page)
        lacking = page.locator(".grade.unjudged").count()
        assert lacking == 2  # d5, in both rankings
        page.locator("form[data-in-place] button[value='3']").first.click()
        page.wait_for_function("document.querySelectorAll('.grade.unjudged').length === 0")
        assert "/queries/q1" in page.url
        assert "Grade 3 is recorded for d5" in page.locator("#said").inner_text()
        assert "older than 1 judgment" in page.locator("#beside").inner_text()
        healthy(page)
        page.get_by_role("button", name="Compute it again").click()
        page.wait_for_selector("#queries")
        assert "given since" not in page.locator("main").inner_text()
        assert [url for url in asked if not url.startswith((served, "data:"))] == []
        assert said == []
    finally:
        context.close()


def test_the_last_list_that_was_asked_for_is_shown(
    chromium: Any, served: str, egon: Browser
) -> None:
    context = chromium.new_context()
    context.add_cookies([{"name": egon.site.cookie, "value": egon.secret, "url": served}])
    page = context.new_page()
    page.set_default_timeout(30_000)
    late: list[Any] = []
    try:
        egon.fill("/comparisons/new", baseline=1, candidate=[2], measure=["nDCG@3"])
        page.goto(f"{served}/comparisons/1")
        while not page.locator("#queries").count():
            page.wait_for_timeout(100)
            page.goto(f"{served}/comparisons/1")
        page.route("**outcome=worse**", lambda route: late.append(route))  # noqa: PLW0108 - it marks what it calls
        page.evaluate("window.stayed = true")
        page.locator("#queries .tabs a", has_text="worse").click()
        page.locator("#queries .tabs a", has_text="better").click()
        chosen = page.locator("#queries .tabs a[aria-current]", has_text="better")
        chosen.wait_for()
        assert len(late) == 1
        with suppress(Exception):  # the browser gave it up already, if all is well
            late[0].continue_()
        page.wait_for_timeout(200)
        assert chosen.count() == 1
        assert "outcome=better" in page.url
        assert page.evaluate("window.stayed") is True
        taken = page.evaluate(
            """() => ["altKey", "ctrlKey", "metaKey", "shiftKey"].map((key) => {
              let taken;
              addEventListener("click", (event) => {
                taken = event.defaultPrevented;
                event.preventDefault();
              }, { once: true });
              const how = { [key]: true, bubbles: true, cancelable: true };
              const link = document.querySelector("#queries .tabs a");
              link.dispatchEvent(new MouseEvent("click", how));
              return taken;
            })"""
        )
        assert taken == [False] * 4
    finally:
        context.close()


def listed(page: Any) -> None:
    """Filter the list in place: by a link, by the form, and back."""
    every = page.locator("#queries tbody tr").count()
    page.evaluate("window.stayed = true")
    page.locator("#queries .tabs a", has_text="worse").click()
    page.wait_for_url("**outcome=worse**")
    worse = page.locator("#queries tbody tr").count()
    assert page.locator("#queries .tabs a[aria-current]", has_text=f"worse {worse}").count() == 1
    page.go_back()
    page.locator("#queries .tabs a[aria-current]", has_text=f"all {every}").wait_for()
    page.wait_for_function(f"document.querySelectorAll('#queries tbody tr').length === {every}")
    page.locator("#queries input[type=search]").fill("shoes")
    page.locator("#queries form.filters button").click()
    page.wait_for_function("document.querySelectorAll('#queries tbody tr').length === 1")
    assert page.evaluate("window.stayed") is True


def healthy(page: Any) -> None:
    """Nothing wider than the screen, and nothing serious for those who cannot see it."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe = pytest.importorskip("axe_playwright_python")
    page.add_script_tag(path=str(Path(axe.__file__).parent / "axe.min.js"))
    found = page.evaluate("axe.run()")["violations"]
    serious = [each for each in found if each["impact"] in {"serious", "critical"}]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == []
