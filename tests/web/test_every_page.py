"""Every address that can be looked at answers an owner, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.shadow_traffic import write_shadow_log
from tests.web.conftest import Browser, Clock, make_shop
from tests.web.framework.test_auth import Route, routes_of
from tests.web.machine_judge import declare
from tests.web.online_log import plan_experiment, put_users
from tests.web.release_shop import begin

from karat.formats.own import history
from karat.store.sql import people
from karat.tables.release.history import Point, Value
from karat.web.app import create_app
from karat.web.framework.settings import Settings
from karat.workflows.golden.agreement import put_before_adjudicator
from karat.workflows.golden.editions import freeze
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.annotations import add_annotation

IDS = {
    "name": "shop",
    "golden": "shop",
    "query_id": "q1",
    "edition": "2026/03",
    "run_id": "1",
    "run": "old",
    "comparison_id": "1",
    "judge": "mine",
    "experiment": "ranker",
    "shadow": "next",
    "place": "history.jsonl",
    "history": "history.jsonl",
    "person_id": "1",
    "release": "newer",
}
"""What is there, by the name that a parameter of a route has."""
ASKS = {
    "/golden/{name}/pair": "?query=q1&document=d1",
    "/golden/{name}/changes": "?old=2026/03",
    "/golden/{name}/exchange/file": "?to=csv",
    "/runs/{run_id}/diagnosis": "?stage=new&stage=old",
    "/runs/{run_id}/diagnosis/{query_id:path}": "?stage=new&stage=old",
    "/api/golden/{golden}/pair": "?query=q1&document=d1",
    "/api/golden/{golden}/diff": "?old=2026/03",
    "/api/golden/{golden}/coverage": "?run=old",
    "/api/golden/{golden}/export": "?format=csv",
    "/api/runs/{run:path}/explain": "?query_id=q1",
    "/api/runs/{run:path}/diagnosis": "?stage=new&stage=old",
    "/api/online/against": "?run=old",
}
"""What a route cannot do without."""
ELSEWHERE = {
    "/static/{name}",
    "/api/measures/{name:path}",
    "/api/online/metrics/{name:path}",
    "/link/{token}",
    "/invited/{token}",
    "/playground/tries/{try_name:path}",
    "/experiments/planning",  # a week of events
    "/api/experiments/planning",
    "/api/experiments/interleaving",  # interleaved searches
    "/golden/{name}/clicks",  # a log of what was shown
    "/api/golden/{golden}/clicks",
    "/api/golden/{golden}/doubts",  # a certified judge; tests/net/test_pages.py has one
    "/jobs/{job_id}",
    "/api/jobs/{job_id}",
}
"""They ask for what this walk has not put there."""


@pytest.fixture
def owner(
    store_url: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Browser]:
    """A browser of an owner, where there is one of everything."""
    monkeypatch.setenv("KARAT_STORE", store_url)
    root = make_shop(tmp_path / "shop", {"KARAT_STORE": store_url})
    value = Value("nDCG@10", 0.5, 0.4, 0.6, 4)
    of = {"queries": "q", "qrels": "j", "run": "r", "corpus": "c"}
    point = Point("2026-03-01T02:00:00Z", "evaluate", "old", "old", None, "", "1", (value,), of)
    history.append(root / "history.jsonl", point)
    put_users(root)
    declare(root)
    plan_experiment(root)
    write_shadow_log(root / "shadow" / "next.jsonl")
    app = create_app(Settings(root, hosts=("127.0.0.1",)), clock)
    with TestClient(app, base_url="http://127.0.0.1"):
        site = app.state.site
        assert store_url.startswith(site.workspace.store.engine.dialect.name)
        with site.workspace.store.begin() as c:
            person = people.add(c, "olga", "owner", None, clock())
        opened, now = site.opened("shop"), clock()
        freeze(opened, "2026/03", now=now)
        assert put_before_adjudicator(opened, None, person="olga", now=now) == 16
        add_annotation(opened, time="", kind="release", text="4", person="olga", now=now)
        begin(opened, now=now)
        site.accounts.make_token(person, "a token", ["read"])
        site.accounts.invite("dora", "rater", "olga")
        number = stored_comparisons.ask(
            opened, stored_comparisons.Asked([1, 2]), by="olga", now=now
        )
        stored_comparisons.compute(opened, number, clock)
        found = stored_comparisons.find(opened, number)
        assert found is not None
        assert found[1].state == "done"
        yield Browser(app, person)


@pytest.mark.deep  # on SQLite in tests/net/test_pages.py
@pytest.mark.parametrize(
    "store_url",
    # All other tests of pages are on SQLite, tests/net/test_pages.py among them.
    [pytest.param("sqlite", marks=pytest.mark.deep), "postgresql"],
    indirect=True,
)
def test_every_page_answers(owner: Browser, *, deep: bool) -> None:
    walked = [
        each
        for each in routes_of(owner.app)  # type: ignore[arg-type]
        if each.method == "GET" and each.path not in ELSEWHERE
    ]
    assert len(walked) > 60
    for route in walked:
        # In both forms a page asks the store for the same.
        for where in dict.fromkeys(address(route, form) for form in ("html", "json")[: 1 + deep]):
            answer = owner.get(where)
            assert answer.status_code == 200, (where, answer.text[-2000:])
            assert 'class="wrong"' not in answer.text, where


def address(route: Route, form: str) -> str:
    """An address of a route, with ids that are there."""
    parts = []
    for part in route.path.split("/"):
        if not part.startswith("{"):
            parts.append(part)
            continue
        name = part.strip("{}").removesuffix(":path")
        assert name in IDS, f"say in IDS what {name} of {route.path} may be"
        parts.append(quote(IDS[name], safe=""))
    ask = ASKS.get(route.path, "")
    if form == "json" and not route.path.startswith("/api/"):
        ask += ("&" if ask else "?") + "format=json"
    return "/".join(parts) + ask
