"""One query of a comparison: rankings side by side, and a grade given there."""

from __future__ import annotations

import json
import re
from html import unescape

import polars as pl
import pytest
from tests.web.conftest import NOW, Browser, ClientOf, with_deep

from karat.store.sql import browsing, documents, judgments
from karat.store.sql import comparisons as stored
from karat.web.offline import stored_comparisons
from karat.workflows.judging.in_place import own_of, rate, rate_pairs

EVIL = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    monkeypatch.setattr(stored_comparisons, "WAIT_S", 60.0)


@pytest.fixture
def egon(client_of: ClientOf) -> Browser:
    return client_of("engineer")


@pytest.fixture
def where(egon: Browser) -> str:
    """A comparison of both runs: the one returns d1 to d5, the other d5 to d1."""
    given = {"baseline": 1, "candidate": [2], "measure": ["nDCG@3", "P@2"]}
    answer = egon.fill("/comparisons/new", **given)
    return str(answer.headers["location"])  # type: ignore[attr-defined]


def test_both_rankings_stand_side_by_side(egon: Browser, where: str) -> None:
    page = egon.get(f"{where}/queries/q1")
    assert page.status_code == 200
    for words in ("red shoes", "Document d1", "unjudged", "was 5", "now 5", "same"):
        assert words in page.text
    found = egon.get(f"{where}/queries/q1?format=json").json()
    old, new = found["query"]["rankings"]
    assert [one["doc_id"] for one in old["top"]] == ["d1", "d2", "d3"]
    assert [one["doc_id"] for one in new["top"]] == ["d5", "d4", "d3"]
    row = next(each for each in found["changes"])
    effects = [one["effect"] for part in ("top", "below") for one in new[part]]
    assert sum(effects) + new["rest"] == pytest.approx(row["difference"])


def token_on(page: str, doc_id: str = "d5") -> str:
    """What the form of the open document says of what was shown."""
    field = rf'name="doc_id" value="{doc_id}"><input type="hidden" name="token" value="([^"]+)"'
    token = re.search(field, page)
    assert token is not None
    return unescape(token[1])


def test_a_grade_given_there_shows_at_once(egon: Browser, where: str) -> None:
    address = f"{where}/queries/q1"
    page = egon.get(f"{address}?measure=P%402&doc=d5").text
    assert "No judgments yet." in page
    asked = "?measure=P%402&doc=d5"
    assert f'name="asked" value="{asked.replace("&", "&amp;")}"' in page
    said = {"doc_id": "d5", "grade": "3", "token": token_on(page), "asked": asked}
    for _ in range(2):  # sent twice, it is one judgment
        answer = egon.fill(address, **said)
        assert answer.status_code == 303, answer.text  # type: ignore[attr-defined]
        assert answer.headers["location"] == address + asked  # type: ignore[attr-defined]
    found = egon.get(f"{address}?format=json").json()
    assert found["query"]["rankings"][1]["top"][0]["grade"] == 3.0
    assert found["since"] == "1 judgment was given since this was computed."
    assert found["changed"] == 1
    assert found["now"]["nDCG@3"] != found["query"]["values"]["nDCG@3"]
    page = egon.get(address).text
    assert found["since"] in page
    assert "Recompute" in page
    opened = egon.site.opened("shop")
    with opened.store.read() as c:
        mine = judgments.current(c, opened.golden.id).frame.filter(rater="egon")
        assert stored.newest_judgment(c, opened.golden.id) == mine["judgment"][0]
    assert mine.select("query_id", "doc_id", "grade", "kind", "source").rows() == [
        ("q1", "d5", 3.0, "rating", "human")
    ]


def test_what_changed_since_it_was_shown_is_not_graded(egon: Browser, where: str) -> None:
    address, opened = f"{where}/queries/q1", egon.site.opened("shop")
    said = {"doc_id": "d5", "grade": "3", "token": token_on(egon.get(f"{address}?doc=d5").text)}
    with opened.store.begin() as c:
        new = pl.DataFrame({"doc_id": ["d5"], "title": ["Another"], "text": ["Of boats."]})
        documents.put(c, opened.golden.id, new, NOW)
    answer = egon.fill(address, **said)
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert "document changed since you opened it" in answer.text  # type: ignore[attr-defined]
    assert not own_of(opened, "egon", "q1")
    done = egon.fill(address, **(said | {"token": token_on(egon.get(f"{address}?doc=d5").text)}))
    assert done.status_code == 303  # type: ignore[attr-defined]
    with opened.store.read() as c:
        mine = judgments.current(c, opened.golden.id).frame.filter(rater="egon")
        assert (
            mine["document_hash"].to_list()
            == browsing.documents(c, opened.golden.id, "text", "url", "sha256", doc_ids=["d5"])[
                "sha256"
            ].to_list()
        )


@pytest.mark.parametrize(
    "token", ["", '["a", null, null]', *with_deep("x", "[]", '["a"]', '["", null, "1"]')]
)
def test_a_form_that_does_not_say_what_was_shown_is_refused(
    egon: Browser, where: str, token: str
) -> None:
    answer = egon.fill(f"{where}/queries/q1", doc_id="d5", grade="3", token=token)
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert "invalid token" in answer.text  # type: ignore[attr-defined]


def test_a_grade_is_taken_back_where_it_was_given(egon: Browser, where: str) -> None:
    address, opened = f"{where}/queries/q1", egon.site.opened("shop")
    said = {"doc_id": "d5", "grade": "3", "token": token_on(egon.get(f"{address}?doc=d5").text)}
    egon.fill(address, **said)
    own = egon.get(f"{address}?format=json").json()["yours"]["d5"]
    assert (own["grade"], own["newest"]) == (3.0, True)
    for _ in range(2):  # sent twice, it is one
        answer = egon.fill(address, doc_id="d5", undo=own["judgment"])
        assert answer.status_code == 303  # type: ignore[attr-defined]
    found = egon.get(f"{address}?format=json").json()
    assert found["yours"] == {}
    assert found["query"]["rankings"][1]["top"][0]["grade"] is None
    said["token"] = token_on(egon.get(f"{address}?doc=d5").text)
    assert egon.fill(address, **(said | {"grade": "1"})).status_code == 303  # type: ignore[attr-defined]
    assert own_of(opened, "egon", "q1")["d5"].grade == 1.0
    assert egon.fill(address, doc_id="d5").status_code == 400  # type: ignore[attr-defined]


def test_a_document_is_read_beside_its_rankings_with_the_history_of_its_grade(
    egon: Browser, where: str
) -> None:
    closed = egon.get(f"{where}/queries/q1").text
    assert '<aside id="drawer" hidden></aside>' in closed
    assert "What d1 says" not in closed
    link = f"{where}/queries/q1?doc=d1"
    assert f'<a class="opens" href="{link}#drawer"><bdi>Document d1</bdi></a>' in closed
    page = egon.get(link).text
    assert "What d1 says of shoes, hoses and hats." in page
    assert f'href="{link}#drawer" aria-current="true"' in page
    assert f'class="close" href="{where}/queries/q1"' in page
    found = egon.get(f"{link}&format=json").json()["document"]
    # Three people graded it: (0 + j) % 4 by the j-th, the newest first.
    assert [(row["rater"], row["grade"], row["kind"]) for row in found["history"]] == [
        ("cleo", 2.0, "rating"), ("ben", 1.0, "rating"), ("rita", 0.0, "rating"),
    ]  # fmt: skip
    assert (found["own"], found["by_others"]) == (None, True)
    assert "seen" not in found
    for row in found["history"]:
        assert f"<bdi>{row['rater']}</bdi>" in page
    # Egon sees their grades, so that his own would not be blind.
    assert "yours would not be blind" in page
    assert 'name="grade"' not in page
    for doc_id in ("nowhere", EVIL):
        assert egon.get(f"{where}/queries/q1", params={"doc": doc_id}).status_code == 404


def test_one_more_rater_is_asked_for_what_only_others_have_graded(
    egon: Browser, client_of: ClientOf, where: str
) -> None:
    address, tail = f"{where}/queries/q1", "?doc=d1"
    assert "Ask one more rater" in egon.get(address + tail).text
    for _ in range(2):  # sent twice, it is one
        answer = egon.fill(address, doc_id="d1", another="yes", asked=tail)
        assert answer.headers["location"] == address + tail  # type: ignore[attr-defined]
    page = egon.get(address + tail).text
    assert "in the queue for one more rater" in page
    assert "Ask one more rater" not in page
    waiting = egon.get("/golden/shop/pairs?format=json&doc_id=d1&query_id=q1").json()["pairs"]
    assert [(row["waiting"], row["chosen_by"]) for row in waiting] == [(1, "comparison")]
    audit = client_of("owner").get("/audit?format=json").json()["rows"]
    assert [row["action"] for row in audit].count("queue for another rater") == 1


def test_an_own_grade_is_corrected_where_it_is_read(egon: Browser, where: str) -> None:
    address = f"{where}/queries/q1"
    for grade in ("3", "1"):
        page = egon.get(f"{address}?doc=d5").text
        answer = egon.fill(address, doc_id="d5", grade=grade, token=token_on(page), asked="?doc=d5")
        assert answer.status_code == 303  # type: ignore[attr-defined]
    found = egon.get(f"{address}?doc=d5&format=json").json()["document"]
    assert [(row["grade"], row["counts"]) for row in found["history"]] == [
        (1.0, True),
        (3.0, False),
    ]
    page = egon.get(f"{address}?doc=d5").text
    assert 'data-key="1" aria-pressed="true"' in page
    assert ", does not count" in page
    answer = egon.fill(address, doc_id="d5", undo=found["own"]["judgment"], asked="//example.com")
    assert answer.headers["location"] == address  # type: ignore[attr-defined]


def test_the_next_query_is_the_next_of_the_list_that_led_here(egon: Browser, where: str) -> None:
    rows = egon.get(f"{where}?format=json").json()["queries"]
    for outcome in ("", "worse", "better"):
        ids = [row["query_id"] for row in rows if outcome in {"", row["outcome"]}]
        asks = {"outcome": outcome} if outcome else {}
        tail = f"?outcome={outcome}" if outcome else ""
        listed = egon.get(where, params={"view": "queries", **asks}).text
        walked, at = [], f"{where}/queries/{ids[0]}{tail}" if ids else None
        while at is not None:
            assert f'href="{at}"' in listed
            found = egon.get(at, params={"format": "json", **asks}).json()
            walked.append(found["query_id"])
            at = found["after"]
        assert walked == ids


def test_what_is_not_judged_is_one_key_away(egon: Browser, where: str) -> None:
    address = f"{where}/queries/q1"
    following = re.compile(r'<a data-next href="([^"]*)">')
    [first] = following.findall(egon.get(address).text)
    assert first == f"{address}?doc=d5#drawer"
    assert not following.findall(egon.get(f"{address}?doc=d5").text)  # it is the only one


@pytest.mark.deep  # a race; what changed is refused in the one above
def test_what_others_graded_meanwhile_is_not_graded_there(egon: Browser, where: str) -> None:
    opened = egon.site.opened("shop")
    token = token_on(egon.get(f"{where}/queries/q1?doc=d5").text)
    for rater in ("ann", "ben"):
        rate_pairs(opened, rater, [("q1", "d5")], 1.0, now=NOW)
    answer = egon.fill(f"{where}/queries/q1", doc_id="d5", grade="3", token=token)
    assert answer.status_code in {400, 409}  # type: ignore[attr-defined]
    assert "nother rater has graded it since" in answer.text  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query_id", "fields", "status"),
    [
        *with_deep(("q1", {"doc_id": "d5", "grade": "7"}, 400)),
        ("q1", {"doc_id": "d5", "grade": "x"}, 400),
        ("q1", {"doc_id": "nowhere", "grade": "1"}, 404),
        ("nothing", {"doc_id": "d5", "grade": "1"}, 404),
    ],
)
def test_what_cannot_be_judged_is_refused(
    egon: Browser, where: str, query_id: str, fields: dict[str, str], status: int
) -> None:
    token = token_on(egon.get(f"{where}/queries/q1?doc=d5").text)
    answer = egon.fill(f"{where}/queries/{query_id}", **fields, token=token)
    assert answer.status_code == status  # type: ignore[attr-defined]
    opened = egon.site.opened("shop")
    with opened.store.read() as c:
        assert not judgments.current(c, opened.golden.id).frame.filter(rater="egon").height


@pytest.mark.deep
def test_an_edition_is_not_judged_here(egon: Browser) -> None:
    from karat.workflows.golden.editions import freeze

    freeze(egon.site.opened("shop"), "first", now=NOW)
    given = {"baseline": 1, "candidate": [2], "edition": "first"}
    where = egon.fill("/comparisons/new", **given).headers["location"]  # type: ignore[attr-defined]
    page = egon.get(f"{where}/queries/q1?doc=d5").text
    assert "data-in-place" not in page
    assert "What d5 says" in page


@pytest.mark.deep  # the templates escape: test_dashboard.py and test_judge.py
def test_what_strangers_wrote_stays_text(egon: Browser) -> None:
    runs = [{"q1": {EVIL: 2.0, "d1": 1.0}}, {"q1": {"d1": 2.0, EVIL: 1.0}}]
    for number, run in enumerate(runs):
        files = {"file": (f"r{number}.json", json.dumps(run).encode())}
        egon.post("/runs", data={"csrf": egon.csrf, "name": f"{EVIL}{number}"}, files=files)
    given = {"baseline": 3, "candidate": [4], "measure": ["P@2"], "name": EVIL}
    where = egon.fill("/comparisons/new", **given).headers["location"]  # type: ignore[attr-defined]
    for address in ("/comparisons", where, f"{where}?outcome=same", f"{where}/queries/q1"):
        page = egon.get(address)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert" in page.text


@pytest.mark.deep  # golden/test_queries.py has ids of any text
def test_queries_with_odd_names_are_reached(egon: Browser) -> None:
    odd = "a/b?c#d %é"
    opened = egon.site.opened("shop")
    from karat.workflows.golden.sampling import put_queries

    with opened.store.begin() as c:
        put_queries(c, opened.golden.id, pl.DataFrame({"query_id": [odd], "text": [None]}), NOW)
    rate(opened, "ann", odd, "d1", 2.0, now=NOW)
    for number in range(2):
        run = {odd: {"d1": 1.0 + number, "d2": 1.5}}
        files = {"file": (f"r{number}.json", json.dumps(run).encode())}
        egon.post("/runs", data={"csrf": egon.csrf}, files=files)
    given = {"baseline": 3, "candidate": [4], "measure": ["RR@10"]}
    where = egon.fill("/comparisons/new", **given).headers["location"]  # type: ignore[attr-defined]
    page = egon.get(f"{where}?view=queries").text
    link = re.search(rf'href="({where}/queries/a%2F[^"]*)"', page)
    assert link is not None
    page = egon.get(link[1])
    assert page.status_code == 200
    assert egon.get(f"{where}/queries/none").status_code == 404
