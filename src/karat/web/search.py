"""Search for objects of the workspace, queries and pages; and the page about the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Response

from karat.tables.golden.golden_sets import addressable
from karat.web.api.openapi import described
from karat.web.framework.auth import AReader
from karat.web.framework.navigation import STAGES
from karat.web.framework.pages import PlainPage, show
from karat.workflows.workspace.search import Hit, best, search

ROUTER = APIRouter()
_LONGEST = 200  # characters of a search


@dataclass(frozen=True)
class Link:
    """A hit; ``where`` is its page, without the base."""

    kind: str
    name: str
    where: str


@ROUTER.get("/search")
def found(call: AReader, q: str = "", golden: str = "") -> Response:
    """Find objects of the workspace, queries of a golden set, and pages."""
    words = q.strip()[:_LONGEST]
    golden = golden or call.site.workspace.golden.name
    hits = [
        Link(hit.kind, hit.name, _page_of(hit, golden))
        for hit in search(call.site.workspace, words, golden)
        if hit.kind != "golden set" or addressable(hit.name)
    ]
    pages = [
        (Link("page", tab.name, tab.at(golden)), f"{tab.name} {stage.name}")
        for stage in STAGES
        for tab in stage.tabs
    ]
    pages += [
        (Link("page", name, f"/{name.lower()}"), name) for name in ("Judge", "Account", "API")
    ]
    hits += best(words, pages) if words else [link for link, _ in pages]
    return show(call, PlainPage("search.html.j2", "Search", words=words, golden=golden, hits=hits))


@ROUTER.get("/api")
def api(call: AReader) -> Response:
    """The operations of the API, and how to use them."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described(call.site.settings.base)["paths"].items():
        for method, operation in methods.items():
            shown = {"method": method.upper(), "path": path, "summary": operation["summary"]}
            shown["scope"] = operation["x-needs"]["scope"]
            parts.setdefault(operation["tags"][0], []).append(shown)
    return show(call, PlainPage("api.html.j2", "API", parts=list(parts.items())))


def _page_of(hit: Hit, golden: str) -> str:
    key = quote(hit.key, safe="")
    if hit.kind == "query":
        return f"/golden/{quote(golden, safe='')}/queries/{key}"
    folder = {"golden set": "golden"}.get(hit.kind, f"{hit.kind}s")
    return f"/{folder}/{key}"
