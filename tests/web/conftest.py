"""A small workspace, an app over it, and browsers of people in each role."""

from __future__ import annotations

import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
import uvicorn
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from starlette.datastructures import State
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from karat.formats.own.workspace import find_workspace, read_workspace
from karat.store.sql import people
from karat.tables import Pairs
from karat.tables.accounts.people import Person, Role
from karat.tables.golden.golden_sets import Exchange
from karat.tables.run import Run
from karat.web.app import create_app
from karat.web.framework.auth import csrf_of
from karat.web.framework.settings import Settings
from karat.web.framework.state import AppState
from karat.workflows.accounts import _passwords
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.golden.pooling import enqueue
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import make_workspace, open_workspace

NOW = 1_800_000_000_000_000
NAMES: dict[Role, str] = {"rater": "rita", "engineer": "egon", "owner": "olga"}
QUERIES = ("q1", "q2", "q3", "q4")
DOCUMENTS = ("d1", "d2", "d3", "d4", "d5")
AppOf = Callable[[Settings], FastAPI]


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

    loop: BlockingPortal | None = None
    """Where apps run; without one, each request starts a thread and an event loop of its own."""

    def __init__(self, app: FastAPI, person: Person | None = None, **how: object) -> None:
        super().__init__(
            app,
            base_url="http://127.0.0.1",
            headers={"accept": "text/html"},
            client=("127.0.0.1", 50_000),
            **how,  # type: ignore[arg-type]
        )
        self.site: AppState = app.state.site
        self.portal = self.loop
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
PageOf = Callable[..., AbstractContextManager[Any]]
LAPTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "color_scheme": "dark",
}
LAPTOP_THEN_PHONE = [
    pytest.param(LAPTOP, id="laptop"),
    # On a laptop ``sound`` looks at the width of a telephone and at dark colours: ``on_both``.
    pytest.param(PHONE, id="phone", marks=pytest.mark.deep),
]
"""Sizes for what is done alike on both."""


def with_deep(*cases: Any) -> list[Any]:
    """Cases of a test that only ``--deep`` runs: a build has others that take the same way."""
    told = (each if isinstance(each, tuple) else (each,) for each in cases)
    return [pytest.param(*each, marks=pytest.mark.deep) for each in told]


NO_PAUSE = """addEventListener("DOMContentLoaded", () => {
    const place = document.getElementById("judging");
    if (place) place.dataset.pause = "%s";
});"""
"""A card that has just come takes an answer at once: nobody here reads it."""


@pytest.fixture(scope="session", autouse=True)
def _one_loop() -> Iterator[None]:
    """One event loop for all browsers, as a server has."""
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Browser, "loop", portal)
        yield


@pytest.fixture(scope="session", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    """Hashes of a millisecond; tests/workflows/accounts/test_passwords.py tests the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_passwords, "COST", {"time_cost": 1, "memory_cost": 64, "parallelism": 1})
        yield


@pytest.fixture(scope="session")
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shop(tmp_path_factory.mktemp("web") / "shop", {})


def make_shop(root: Path, environment: dict[str, str]) -> Path:
    """Make the workspace that the fixture ``workspace`` gives, its store where the URL says."""
    make_workspace(root, now=NOW, name="shop", environment=environment)
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
    with open_workspace(root, now=NOW, environment=environment) as opened:
        import_exchange(opened, found, file="judged.csv", sha256="0" * 64, now=NOW)
        store_runs(opened, [_run("old", 1), _run("new", -1)], now=NOW)
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


@pytest.fixture(scope="session")
def app_of() -> AppOf:
    """An app for settings; made once, for that takes longer than most tests of it."""
    made: dict[tuple[object, ...], FastAPI] = {}

    def found(settings: Settings) -> FastAPI:
        # What it is made from; the rest of the settings it finds in its state.
        images = read_workspace(find_workspace(settings.workspace)).images
        key = (settings.hosts, settings.secure, images)
        if key not in made:
            made[key] = create_app(settings)
        return made[key]

    return found


@pytest.fixture
def app(app_of: AppOf, site_settings: Settings, clock: Clock) -> Iterator[FastAPI]:
    """The app, as if it had just been started."""
    made = app_of(site_settings)
    with open_workspace(site_settings.workspace, now=clock()) as opened:
        made.state = State()
        made.state.site = AppState(site_settings, opened, Accounts(opened.store, clock), clock)
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


@pytest.fixture(scope="module")
def _server() -> Iterator[tuple[dict[str, FastAPI], str]]:
    """A server on a free port of this machine: the app that it serves now, and its address."""
    now: dict[str, FastAPI] = {}

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await now["app"](scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(serve, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < end
        time.sleep(0.01)
    yield now, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def served(app: FastAPI, _server: tuple[dict[str, FastAPI], str]) -> str:
    """The app on a free port of this machine: its address."""
    now, address = _server
    now["app"] = app
    return address


class Window:
    """A context of the browser, that reaches this machine alone, for one test after another.

    A new one takes as long as most tests of a page.
    """

    def __init__(self, chromium: Any, address: str, pause: str, settings: dict[str, Any]) -> None:
        self.context = chromium.new_context(base_url=address, **settings)
        self.context.add_init_script(NO_PAUSE % pause)
        self.others: list[str] = []
        self.context.route(re.compile(rf"^(?!{re.escape(address)}/|data:|blob:)"), self._refuse)
        self.busy = False

    def _refuse(self, route: Any) -> None:
        self.others.append(route.request.url)
        route.abort()

    def clear(self) -> None:
        """Forget who was signed in, and close what is open."""
        self.context.clear_cookies()
        for page in self.context.pages:
            page.close()
        self.others.clear()
        self.busy = False


@pytest.fixture(scope="module")
def _windows() -> dict[str, list[Window]]:
    return {}


@pytest.fixture
def page_of(chromium: Any, app: FastAPI, served: str, _windows: dict[str, list[Window]]) -> PageOf:
    """Pages of people; of somebody who is signed in.

    A name of None is a stranger's. When it closes, nothing was asked of another host, and the
    page had nothing to complain of.
    """

    @contextmanager
    def opened(
        name: str | None,
        role: Role = "rater",
        pause: str = "0",
        clocked: bool = False,
        **settings: Any,
    ) -> Iterator[Any]:
        site: AppState = app.state.site
        settings = settings or LAPTOP
        alike = _windows.setdefault(f"{pause} {clocked} {settings}", [])
        window = next((each for each in alike if not each.busy), None)
        if window is None:
            window = Window(chromium, served, pause, settings)
            alike.append(window)
        window.busy = True
        if name is not None:
            with site.workspace.store.begin() as c:
                who = people.find(c, name) or people.add(c, name, role, None, site.clock())
            secret = site.accounts.start_session(who, "A browser")
            window.context.add_cookies([{"name": site.cookie, "value": secret, "url": served}])
        if clocked:  # the tests that share this window have one that is not the machine's
            window.context.clock.install()
        page = window.context.new_page()
        page.set_default_timeout(30_000)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        try:
            yield page
        except BaseException:
            alike.remove(window)
            window.context.close()
            raise
        others = [*window.others]
        window.clear()
        assert others == []
        # A line that a test cuts is told by the browser itself.
        assert [text for text in said if "Failed to load resource" not in text] == []

    return opened


class Colours:
    """Whether ``sound`` looks at the contrast of every page, which takes longer than all else."""

    everywhere = False


@pytest.fixture(scope="session", autouse=True)
def _colours_everywhere(deep: bool) -> Iterator[None]:
    """A build looks at the colours of a few pages, ``on_both``: all have the same styles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Colours, "everywhere", deep)
        yield


def sound(page: Any, *, on_both: bool = False) -> None:
    """Nothing is wider than the screen, and axe finds nothing serious that shuts people out.

    ``on_both`` looks at the width of a telephone and at the other colours, too.
    """
    colours = on_both or Colours.everywhere
    first = "{}" if colours else "{rules: {'color-contrast': {enabled: false}}}"
    from playwright.sync_api import Error

    for tries in range(5):
        page.wait_for_load_state()  # before its styles are there, a page has other widths
        try:
            _fits(page, page.viewport_size["width"])
            assert _grave(page, first) == []
            if not on_both:
                return
            _fits(page, PHONE["viewport"]["width"])
            dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            page.emulate_media(color_scheme="light" if dark else "dark")
            try:
                assert _grave(page, "{runOnly: ['color-contrast']}") == []
            finally:
                page.emulate_media(color_scheme="dark" if dark else "light")
        except Error:  # it loaded itself anew meanwhile, as pages do whose numbers have come
            if tries == 4:
                raise
        else:
            return


def _fits(page: Any, width: int) -> None:
    # Not innerWidth: a telephone zooms out to what is too wide.
    size = page.viewport_size
    page.set_viewport_size(size | {"width": width})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size(size)


def _grave(page: Any, how: str) -> list[tuple[str, list[str]]]:
    grave = [each for each in _found(page, how) if each["impact"] in {"serious", "critical"}]
    return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in grave]


def axe(page: Any) -> list[str]:
    """What axe finds on a page, its rules of best practice included."""
    return [f"{each['id']} {each['nodes'][0]['html'][:200]}" for each in _found(page, "{}")]


def _found(page: Any, how: str) -> list[dict[str, Any]]:
    axe = pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python")
    if page.evaluate("typeof axe === 'undefined'"):  # else it is there from before
        # As the tools of developers would: a page's own policy lets no script in.
        page.evaluate(_axe(Path(axe.__file__).parent))
    ask = f"axe.run({{resultTypes: ['violations'], preload: false, ...{how}}})"
    return list(page.evaluate(ask)["violations"])


@cache
def _axe(folder: Path) -> str:
    return (folder / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def bench(root: Path) -> Iterator[ModuleType]:
    """The benchmark of raters who judge at once, as a module."""
    path = root / "benchmarks/web_judging.py"
    spec = spec_from_file_location("bench_web_judging", path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    yield made
    del sys.modules[spec.name]


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'karat.db'}"
    made: str = request.getfixturevalue("database")()
    return made
