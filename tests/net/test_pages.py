"""What every page of the demo's workspace says, and what every route of the API answers."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from starlette.testclient import TestClient
from tests.net.commands import NOW, masked, readable, repeatable, typed
from tests.net.snapshots import Snapshots
from tests.net.visible import visible
from tests.web.conftest import Browser
from tests.web.framework.test_auth import routes_of

from karat.store.sql import people
from karat.web.app import create_app
from karat.web.framework.settings import Settings

IDS = {
    "name": "python-help",
    "golden": "python-help",
    "query_id": "q01",
    "edition": "first",
    "run_id": "1",
    "run": "bm25",
    "comparison_id": "1",
    "judge": "fake",
    "experiment": "hybrid",
    "release": "hybrid-2",
    "gate_id": "1",
    "alert_id": "1",
    "alert": "1",
    "place": "history.jsonl",
    "history": "history.jsonl",
    "person_id": "1",
    "token": "wrong",
    "job_id": "wrong",
    "try_name": "wrong",
}
"""What the demo's workspace has, by the name of a route's parameter."""
ASKS: dict[str, tuple[str, ...]] = {
    "/golden/{name}/pair": ("?query=q01&document=json",),
    "/golden/{name}/changes": ("?old=first",),
    "/golden/{name}/exchange/file": ("?to=csv",),
    "/golden/{name}/pairs": ("", "?q=json&per=5"),
    "/comparisons/{comparison_id}": (
        "",
        *(f"?view={view}" for view in ("slices", "queries", "priorities", "notes")),
        "?candidate=hybrid",
    ),
    "/comparisons/{comparison_id}/queries/{query_id:path}": ("", "?doc=json"),
    "/runs/{run_id}": ("", "?measure=RR%4010"),
    "/runs/{run_id}/diagnosis": ("", "?stage=semantic&stage=bm25"),
    "/runs/{run_id}/diagnosis/{query_id:path}": ("?stage=semantic&stage=bm25",),
    "/api/golden/{golden}/pair": ("?query=q01&document=json",),
    "/api/golden/{golden}/diff": ("?old=first",),
    "/api/golden/{golden}/coverage": ("?run=bm25",),
    "/api/golden/{golden}/export": ("?format=csv",),
    "/api/golden/{golden}/doubts": ("?judge=fake&budget=9",),
    "/api/golden/{golden}/documents": ("?per=5",),
    "/api/golden/{golden}/judgments": ("?per=20",),
    "/api/golden/{golden}/pairs": ("?per=20&sort=-doc_id",),
    "/api/runs": ("", "?format=json"),
    "/api/runs/{run:path}/explain": ("?query_id=q01",),
    "/api/runs/{run:path}/diagnosis": ("?stage=semantic&stage=bm25",),
    "/api/online/against": ("?run=bm25",),
    "/api/online/rows": ("?per=10",),
}
"""What is asked of a route, where that is not nothing; each is recorded."""
NAMED = {"/api/measures/{name:path}": "nDCG@10", "/api/online/metrics/{name:path}": "CTR@5"}
LEFT_OUT = {
    "/static/{name}": "files as they lie in the package, whose names hold sums of their content",
    "/jobs/{job_id}": "how far a computation is, which tests/web/engines looks at",
    "/api/jobs/{job_id}": "likewise",
    "/shadow/{shadow}": "the demo has no shadow log; tests/web/experiments has",
    "/api/shadow/{shadow}": "likewise",
    "/playground/tries/{try_name:path}": "the demo has no tries; tests/web/engines has",
    "/online/alerts": "its alerts are of the watches asked for; tests/web/online lists it",
}
"""Routes that are not recorded, and why."""
SLOW = {"/api", *(f"/online{page}" for page in ("", "/against", "/queries", "/rows", "/watch"))}
"""Pages whose numbers test_outputs.py compares, or tests/web/online works out by hand; and one of
all routes, which test_surface.py compares."""
WAITING = ("data-waits", "being computed")
"""What a page says whose numbers are not there yet."""


@pytest.fixture(scope="module")
def served(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo's folder, with something before its adjudicator."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(demo / "demo", folder / "demo")
    typed("golden disagreements -w demo --queue", folder)
    return folder


def test_every_page_says_what_it_said(
    served: Path, snapshots: Callable[[str], Snapshots], deep: bool
) -> None:
    """The API's answers are compared with --deep: tests/web/api asks for them one by one."""
    kept = snapshots("pages")
    names = []
    with repeatable("pages"):
        app = create_app(Settings(served / "demo", hosts=("127.0.0.1",)), lambda: NOW * 1_000_000)
        with TestClient(app, base_url="http://127.0.0.1"):
            site = app.state.site
            with site.workspace.store.begin() as connection:
                olga = people.add(connection, "olga", "owner", None, NOW * 1_000_000)
            site.accounts.make_token(olga, "a token", ["read"])
            site.accounts.invite("dora", "rater", "olga")
            owner, stranger = Browser(app, olga), Browser(app)
            for path in sorted(each.path for each in routes_of(app) if each.method == "GET"):
                if path in LEFT_OUT:
                    continue
                if not deep and (path in SLOW or path.startswith("/api/")):
                    continue
                for number, asks in enumerate(ASKS.get(path, ("",))):
                    browser = stranger if path in {"/sign-in", "/invited/{token}"} else owner
                    answer = settled(browser, path, asks)
                    kind = answer.headers.get("content-type", "").partition(";")[0]
                    form = {"text/html": "txt", "application/json": "json"}.get(kind, "text")
                    name = f"{named(path)}{f'-{number}' * bool(number)}.{form}"
                    names.append(name)
                    leads = answer.headers.get("location", "")
                    said = visible(answer.text) if form == "txt" else readable(answer.text)
                    head = f"GET {path} {asks}\n{answer.status_code} {kind} {leads}".rstrip()
                    kept.check(name, masked(f"{head}\n{said}", served))
    assert len(names) == len(set(names))
    if deep:
        kept.holds_only(names)


def settled(browser: Browser, path: str, asks: str) -> httpx2.Response:
    """The answer of a route, once nothing of it is being computed any more."""
    until = time.monotonic() + 120
    while True:
        with repeatable(f"{path}{asks}"):
            answer = browser.get(address(path) + asks, follow_redirects=False)
        if not any(mark in answer.text for mark in WAITING):
            return answer
        assert time.monotonic() < until, f"{path} is still being computed"
        time.sleep(0.05)


def address(path: str) -> str:
    """An address of a route, with ids that are there."""
    parts = []
    for part in path.split("/"):
        if not part.startswith("{"):
            parts.append(part)
            continue
        name = part.strip("{}").removesuffix(":path")
        assert name in IDS, f"say in IDS what {name} of {path} may be"
        parts.append(quote(NAMED.get(path, IDS[name]), safe=""))
    return "/".join(parts)


def named(path: str) -> str:
    """The name of a route's file."""
    return re.sub(r"[^\w]+", "-", path.replace(":path", "")).strip("-") or "home"
