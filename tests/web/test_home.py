"""Home: what needs attention, each with the page where it is done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import unescape

import pytest
from tests.web.conftest import ClientOf

from karat.web import home
from karat.web.home import Attention
from karat.web.site import Site
from karat.workflows.golden_status import Status


def test_it_says_what_waits_and_where(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    found = browser.get("/", params={"format": "json"}).json()
    said = [(each["what"], each["where"]) for each in found["attention"]]
    assert said == [
        ("16 disagreements to put before an adjudicator", "/golden/shop/disagreements"),
        ("8 judgments to give", "/judge/shop"),
        ("Freeze what is judged: no edition yet", "/golden/shop/editions#freeze"),
    ]
    text = browser.get("/").text
    for where in re.findall(r'href="(/golden[^"]*)"', text):
        assert browser.get(unescape(where)).status_code == 200
    browser.fill("/golden/shop/disagreements", every="true")
    browser.fill("/golden/shop/editions", edition="first")
    after = browser.get("/", params={"format": "json"}).json()["attention"]
    assert [each["what"] for each in after] == [
        "16 disagreements for an adjudicator to settle",
        "8 judgments to give",
    ]


def test_a_rater_is_sent_to_the_judging(client_of: ClientOf) -> None:
    answer = client_of("rater").get("/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/judge")


def test_other_pages_add_what_they_watch(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gates(_site: Site, found: Sequence[Status]) -> Iterable[Attention]:
        yield Attention(f"{len(found)} gate <fails>", "/comparisons/1")

    monkeypatch.setattr(home, "WATCHES", [gates])
    text = client_of("engineer").get("/").text
    assert '<a href="/comparisons/1">1 gate &lt;fails&gt;</a>' in text
