"""Make the pictures of pages in docs/images from the demo as `karat serve` really shows it.

    python tests/docs/make_screenshots.py

Needs Chromium, and playwright to drive it.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[2] / "docs/images"
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """The demo on a loopback port: its address, and the path that lets one in."""
    import uvicorn

    from karat.web.app import create_app
    from karat.web.framework.settings import Settings

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = create_app(Settings(folder, accounts=False, owner="anna"))
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        accounts = app.state.site.accounts
        yield f"http://127.0.0.1:{port}", f"/link/{accounts.link(accounts.local('anna'))}"
    finally:
        server.should_exit = True
        thread.join()


def make(folder: Path) -> None:
    """Take the pictures of a demo."""
    from playwright.sync_api import Browser, sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with served(folder) as (base, link), sync_playwright() as driver:
        browser: Browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport=LAPTOP)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(base + link)
        page.goto(f"{base}/golden/python-help/agreement")
        page.screenshot(path=IMAGES / "web-agreement.png")
        page.goto(f"{base}/judge/python-help")
        page.screenshot(path=IMAGES / "web-judge.png")
        page.goto(f"{base}/comparisons/new")
        page.click("form button.main")
        page.wait_for_selector(".decision", timeout=60_000)
        page.screenshot(path=IMAGES / "web-comparison.png")
        page.get_by_role("link", name="Queries").last.click()
        page.locator("#queries tbody a[href*='/queries/']").first.click()
        page.locator("#rankings a.opens").first.click()
        page.wait_for_selector("#drawer h2")
        page.screenshot(path=IMAGES / "web-side-by-side.png")
        page.goto(f"{base}/online")
        page.wait_for_selector("main svg", timeout=60_000)
        page.locator("#over-time").scroll_into_view_if_needed()
        page.screenshot(path=IMAGES / "web-online.png")
        page.goto(f"{base}/online/watch")
        page.wait_for_selector("#verdict", timeout=60_000)
        page.screenshot(path=IMAGES / "web-watch.png")
        state = context.storage_state()
        phone = browser.new_context(
            viewport=PHONE,  # type: ignore[arg-type]
            color_scheme="dark",
            storage_state=state,
        )
        small = phone.new_page()
        small.goto(f"{base}/judge/python-help")
        small.screenshot(path=IMAGES / "web-judge-phone.png")
        browser.close()


if __name__ == "__main__":
    from karat.cli.main import karat

    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "demo"
        karat(["demo", str(target), "--no-serve"], standalone_mode=False)
        make(target)
    sys.exit(0)
