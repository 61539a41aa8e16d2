"""Lists: pages that meet, filters, and never an error of ours whatever an address says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.choosing import deep_but
from tests.web.api.conftest import error_of, rows_of
from tests.web.conftest import Clock

from karat.store.sql import people
from karat.web.app import create_app
from karat.web.framework.settings import Settings

LISTS = (
    "/api/golden",
    "/api/golden/shop/queries",
    "/api/golden/shop/documents",
    "/api/golden/shop/pairs",
    "/api/golden/shop/judgments",
    "/api/golden/shop/grades",
    "/api/golden/shop/disagreements",
    "/api/golden/shop/editions",
    "/api/runs",
    "/api/comparisons",
    "/api/trends",
    "/api/measures",
    "/api/judge",
)


@pytest.mark.parametrize(
    "path",
    deep_but(
        {"/api/golden/shop/queries", "/api/golden/shop/judgments", "/api/runs", "/api/measures"},
        LISTS,
    ),
)
def test_pages_meet_and_make_the_whole(program: TestClient, path: str) -> None:
    whole = rows_of(program, path)
    found, address, pages = [], f"{path}?per=3", 0
    while address is not None:
        answer = program.get(address).json()
        assert answer["found"] == len(whole)
        assert len(answer["items"]) <= 3
        found += answer["items"]
        address, pages = answer["next"], pages + 1
    assert found == whole
    assert pages == max(1, -(-len(whole) // 3))


@pytest.mark.parametrize(
    "params",
    deep_but(
        [{"per": 0}, {"page": 10**30}, {"rator": "ann"}, {"sort": "nothing"}],
        [
            {"per": 1001},
            {"per": 0},
            {"page": 0},
            {"page": "x"},
            {"page": 10**30},
            {"rator": "ann"},
            {"grade": "two"},
            {"sort": "nothing"},
        ],
    ),
)
def test_what_cannot_be_meant_is_refused(program: TestClient, params: dict[str, object]) -> None:
    answer = program.get("/api/golden/shop/judgments", params=params)
    assert error_of(answer)[:2] == (400, "usage")


def test_a_page_beyond_the_end_is_empty(program: TestClient) -> None:
    answer = program.get("/api/golden/shop/judgments", params={"page": 10**6}).json()
    assert (answer["items"], answer["next"]) == ([], None)


def test_rows_are_chosen_sorted_and_searched(program: TestClient) -> None:
    path = "/api/golden/shop/judgments"
    ben = rows_of(program, path, rater="ben")
    assert len(ben) == 16  # 4 queries × 4 documents
    assert {row["rater"] for row in ben} == {"ben"}
    high = rows_of(program, path, rater="ben", grade=">=2", sort="-grade")
    assert [row["grade"] for row in high] == sorted(
        (row["grade"] for row in ben if row["grade"] >= 2), reverse=True
    )
    assert {row["query_id"] for row in rows_of(program, path, q="ladder")} == {"q3"}
    answer = program.get(path, params={"rator": "ben"}).json()
    assert answer["error"]["nearest"][0] == "rater"


def test_the_next_page_is_where_a_proxy_serves_it(workspace: Path, program: TestClient) -> None:
    app = create_app(Settings(workspace, base="/search/karat"))
    with TestClient(app, base_url="http://127.0.0.1", headers=program.headers) as client:
        for prefix in ("", "/search/karat"):  # taken off by the proxy, or left
            found = client.get(f"{prefix}/api/golden/shop/judgments?per=5&rater=ben").json()
            assert found["next"] == (
                "/search/karat/api/golden/shop/judgments?per=5&rater=ben&page=2"
            )


@pytest.mark.deep
def test_an_attribute_may_be_called_anything(program: TestClient) -> None:
    rows = (
        b"query_id,text,_at,page,_links,a b,found\n"
        b"q1,red shoes,1,x,2,=1+1,yes\nq2,garden hose,2,y,3,,no\n"
    )
    sent = program.post(
        "/api/golden/shop/import", content=rows, params={"name": "q.csv", "format": "queries"}
    )
    assert sent.status_code == 200, sent.text
    [row] = rows_of(program, "/api/golden/shop/queries", query_id="q1")
    assert (str(row["_at"]), row["attribute page"], row["attribute a b"]) == ("1", "x", "=1+1")
    [row] = rows_of(program, "/api/golden/shop/queries", found="no")
    assert row["query_id"] == "q2"


def test_an_id_of_any_letters_is_one_part_of_the_address(program: TestClient) -> None:
    answer = program.get("/api/golden/shop/queries/a%2Fb%20c")
    assert error_of(answer)[:2] == (404, "not_found")
    assert "'a/b c'" in answer.text


@pytest.fixture(scope="module")
def fuzzed(_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    root = shutil.copytree(_workspace, tmp_path_factory.mktemp("api") / "shop")
    app = create_app(Settings(Path(root)), Clock())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        site = app.state.site
        with site.workspace.store.begin() as c:
            person = people.add(c, "egon", "engineer", None, 1)
        secret = site.accounts.make_token(person, "t", ["read", "write", "judge"]).text
        client.headers["authorization"] = f"Bearer {secret}"
        yield client


NAMES = re.findall(
    r"\w+",
    "page per q sort edition between rater grade query_id doc_id time_us votes stale old new by k "
    "run golden query document measure wait difference sd raters adjudicate format name rater to",
)
VALUES = st.one_of(
    st.text(max_size=12),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from([">=2", "1..3", "2026-01-01", "-", "9" * 25, "1e999", "now", "raters", "%"]),
)
PATHS = (
    *LISTS,
    "/api/golden/shop/agreement",
    "/api/golden/shop/coverage",
    "/api/golden/shop/diff",
    "/api/golden/shop/pair",
    "/api/golden/shop/export",
    "/api/runs/1/explain",
    "/api/comparisons/1",
    "/api/plan",
    "/api/measures/nDCG@10",
    "/api/judge/shop/progress",
)


@settings(suppress_health_check=list(HealthCheck))
@given(
    path=st.sampled_from(PATHS),
    params=st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=4),
)
def test_no_address_is_answered_with_an_error_of_ours(
    fuzzed: TestClient, path: str, params: list[tuple[str, str]]
) -> None:
    clean = [(n, v.encode("utf-8", "replace").decode()) for n, v in params]
    answer = fuzzed.get(path, params=clean)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert set(answer.json()["error"]) == {"code", "message", "where", "nearest", "fix"}


@pytest.mark.deep  # as the one before it
@settings(suppress_health_check=list(HealthCheck))
@given(number=st.one_of(st.integers(), st.text(max_size=8).filter(lambda t: t not in {".", ".."})))
def test_no_number_is_answered_with_an_error_of_ours(fuzzed: TestClient, number: int | str) -> None:
    part = quote(str(number).encode("utf-8", "replace"), safe="")
    for path in (
        f"/api/runs/{part}",
        f"/api/comparisons/{part}",
        f"/api/comparisons/{part}/result",
    ):
        assert fuzzed.get(path).status_code < 500
