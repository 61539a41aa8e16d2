"""A small workspace, an app over it, and browsers of people in each role."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from karat.store import people
from karat.tables import Pairs
from karat.tables.exchange import Exchange
from karat.tables.people import Person, Role
from karat.tables.run import Run
from karat.web import account, audit_log
from karat.web import people as people_pages
from karat.web.access import csrf_of
from karat.web.app import PAGES, create_app
from karat.web.settings import Settings
from karat.web.site import Site
from karat.workflows.exchanging import take_exchange
from karat.workflows.kept_runs import keep_runs
from karat.workflows.pool import enqueue
from karat.workflows.workspace import make_workspace, open_workspace

NOW = 1_800_000_000_000_000
NAMES: dict[Role, str] = {"rater": "rita", "engineer": "egon", "owner": "olga"}
QUERIES = ("q1", "q2", "q3", "q4")
DOCUMENTS = ("d1", "d2", "d3", "d4", "d5")
OWN = (people_pages.ROUTER, account.ROUTER, audit_log.ROUTER)
ROUTERS = (*(each for each in PAGES if not any(each is own for own in OWN)), *OWN)


class Clock:
    """Microseconds UTC, for as long as nobody says otherwise."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let so much time go by."""
        self.now += int(seconds * 1_000_000)


class Browser(TestClient):
    """A browser; of somebody, if it was given a session."""

    def __init__(self, app: FastAPI, person: Person | None = None, **how: object) -> None:
        super().__init__(
            app,
            base_url="http://127.0.0.1",
            headers={"accept": "text/html"},
            client=("127.0.0.1", 50_000),
            **how,  # type: ignore[arg-type]
        )
        self.site: Site = app.state.site
        self.person = person
        if person is not None:
            self.hold(self.site.accounts.start_session(person, "A browser"))

    def hold(self, secret: str) -> None:
        """Take a session's cookie."""
        self.cookies.set(self.site.cookie, secret, domain="127.0.0.1")

    @property
    def secret(self) -> str | None:
        """The session's secret, as the cookie holds it."""
        held: str | None = self.cookies.get(self.site.cookie)
        return held

    @property
    def csrf(self) -> str:
        """What the forms of this session hold; scripts send it as ``x-csrf``."""
        return csrf_of(self.secret or "")

    def fill(self, path: str, **fields: object) -> object:
        """Send a form of ours, and stay where it leads to."""
        return self.post(path, data={"csrf": self.csrf, **fields}, follow_redirects=False)


ClientOf = Callable[[Role], Browser]


@pytest.fixture(scope="session")
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("web") / "shop"
    make_workspace(root, now=NOW, name="shop", environment={})
    words = ("red shoes", "garden hose", "tall ladder", "wool hat")
    pairs = [(q, d) for q in QUERIES for d in DOCUMENTS]
    facts = [
        {"query_id": q, "doc_id": d, "rater": rater, "grade": float((i + j) % 4), "reason": None}
        for j, rater in enumerate(("rita", "ben", "cleo"))
        for i, (q, d) in enumerate(pairs)
        if d != "d5"  # nobody has judged the last document yet
    ]
    found = Exchange(
        "csv",
        queries=pl.DataFrame({"query_id": QUERIES, "text": words}),
        documents=pl.DataFrame(
            {
                "doc_id": DOCUMENTS,
                "title": [f"Document {d}" for d in DOCUMENTS],
                "text": [f"What {d} says of shoes, hoses and hats." for d in DOCUMENTS],
            }
        ),
        judgments=pl.DataFrame(facts, schema_overrides={"reason": pl.String}),
    )
    with open_workspace(root, now=NOW, environment={}) as opened:
        take_exchange(opened, found, file="judged.csv", sha256="0" * 64, now=NOW)
        keep_runs(opened, [_run("old", 1), _run("new", -1)], now=NOW)
        last = pl.DataFrame({"query_id": QUERIES, "doc_id": ["d5"] * len(QUERIES)})
        enqueue(opened, Pairs(last, "pool"), now=NOW)
    return root


def _run(name: str, step: int) -> Run:
    rows = [(q, d, 5.0 - k) for q in QUERIES for k, d in enumerate(DOCUMENTS[::step])]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    return Run.from_frame(frame, name=name)


@pytest.fixture
def workspace(_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a workspace: 4 queries × 5 documents, judged by 3 people but for one; 2 runs.

    The golden set is called ``shop``, its grades are 0 to 3, its runs ``old`` and ``new``; the
    last document of each query waits in the queue.
    """
    monkeypatch.delenv("KARAT_STORE", raising=False)
    return Path(shutil.copytree(_workspace, tmp_path / "shop"))


@pytest.fixture
def clock() -> Clock:
    """The time that the app has."""
    return Clock()


@pytest.fixture
def site_settings(workspace: Path) -> Settings:
    """How the app is served: with accounts."""
    return Settings(workspace, hosts=("127.0.0.1", "localhost"))


@pytest.fixture
def app(site_settings: Settings, clock: Clock) -> Iterator[FastAPI]:
    """The app, running."""
    made = create_app(site_settings, clock, routers=ROUTERS)
    with TestClient(made, base_url="http://127.0.0.1"):
        yield made


@pytest.fixture
def stranger(app: FastAPI) -> Browser:
    """The browser of somebody who has not signed in."""
    return Browser(app)


@pytest.fixture
def client_of(app: FastAPI, clock: Clock) -> ClientOf:
    """Browsers, signed in as rita (rater), egon (engineer) or olga (owner)."""

    def signed_in(role: Role) -> Browser:
        with app.state.site.workspace.store.begin() as c:
            person = people.find(c, NAMES[role])
            person = person or people.add(c, NAMES[role], role, None, clock())
        return Browser(app, person)

    return signed_in
