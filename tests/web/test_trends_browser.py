"""Trends in a real browser: drawn under our own policy, marked, nothing serious for axe."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from tests.web.conftest import Browser, ClientOf

from karat.formats import history
from karat.tables.history import Point, Value

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


@pytest.mark.parametrize("axe", [False, True], ids=["policy", "axe"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_series_is_found_looked_at_and_marked(
    chromium: Any,
    served: str,
    client_of: ClientOf,
    workspace: Path,
    width: int,
    scheme: str,
    axe: bool,
) -> None:
    put(workspace)
    egon: Browser = client_of("engineer")
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=axe
    )
    context.add_cookies([{"name": egon.site.cookie, "value": egon.secret, "url": served}])
    page = context.new_page()
    page.set_default_timeout(10_000)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto(f"{served}/trends")
        healthy(page, axe=axe)
        page.get_by_role("link", name="nDCG@10").click()
        page.wait_for_selector("#points")
        assert page.locator("figure svg:visible").count() == 1
        page.get_by_label("What happened").fill("<b>Release</b> 4")
        page.get_by_label("When, in UTC").fill("2026-03-05T10:00")
        page.get_by_role("button", name="Add the mark").click()
        page.wait_for_selector("#marks li")
        assert "<b>Release</b> 4" in page.locator("#marks").inner_text()
        assert "Numbered upright: a mark" in page.locator("figcaption").inner_text()
        healthy(page, axe=axe)
        page.get_by_role("button", name="Remove").click()
        page.wait_for_selector("#marks .nothing")
        assert said == []
    finally:
        context.close()


def healthy(page: Any, *, axe: bool) -> None:
    """The page fits, nobody took it over, and axe finds nothing serious."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.title() != "taken"
    assert page.locator("main img").count() == 0
    if not axe:
        return
    program = pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python")
    page.evaluate((Path(program.__file__).parent / "axe.min.js").read_text())
    found = page.evaluate("axe.run()")["violations"]
    serious = [each["id"] for each in found if each["impact"] in {"serious", "critical"}]
    assert serious == []
