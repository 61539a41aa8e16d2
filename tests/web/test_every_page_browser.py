"""Every page of the demo in a real browser: axe finds nothing, and nothing is too wide."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.net.test_pages import ASKS, LEFT_OUT, address
from tests.web.conftest import LAPTOP, PHONE, PageOf, axe
from tests.web.framework.test_auth import routes_of

from karat.store.sql import people

NO_PAGES = {"/healthz", "/link/{token}", "/invited/{token}", "/golden/{name}/exchange/file"}
"""Answers that are not pages, or lead to another."""


@pytest.fixture
def workspace(built_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's, which has something on every page."""
    monkeypatch.delenv("KARAT_STORE", raising=False)
    return Path(shutil.copytree(built_demo / "demo", tmp_path / "demo"))


@pytest.mark.deep
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_axe_finds_nothing_on_any_page(
    size: dict[str, Any], colours: str, page_of: PageOf, app: FastAPI
) -> None:
    """Its rules of best practice included."""
    paths = {route.path for route in routes_of(app) if route.method == "GET"}
    left_out = NO_PAGES | LEFT_OUT.keys() - {"/online/alerts"}
    pages = sorted(path for path in paths - left_out if "/api/" not in path)
    found = []
    with app.state.site.workspace.store.begin() as connection:
        people.add(connection, "olga", "owner", None, app.state.site.clock())
    with page_of("olga", "owner", **{**size, "color_scheme": colours}) as page:
        for path in pages:
            for asks in ASKS.get(path, ("",)):
                page.goto(address(path) + asks)
                page.wait_for_load_state()
                waits = page.locator("[data-waits]")
                if waits.count():  # it loads itself anew until its numbers are there
                    waits.first.wait_for(state="detached", timeout=120_000)
                    page.wait_for_load_state("networkidle")
                page.evaluate(
                    "document.querySelectorAll('main details').forEach(e => e.open = true)"
                )
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > size["viewport"]["width"]:
                    found.append(f"{path}{asks}: {wide} px wide")
                found += [f"{path}{asks}: {each}" for each in axe(page)]
    assert len(pages) > 40
    assert found == []
