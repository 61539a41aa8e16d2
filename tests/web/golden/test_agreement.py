"""Agreement: the sentence first, and every count of the matrix with its pairs."""

from __future__ import annotations

import re
from html import unescape

from tests.web.conftest import ClientOf


def test_the_sentence_is_the_command_lines(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    text = browser.get("/golden/shop/agreement").text
    found = browser.get("/golden/shop/agreement", params={"format": "json"}).json()
    assert found["sentence"].startswith("Mean κ of 3 raters")
    assert found["agreement"]["pairs"] == 16
    lead = re.search(r'<p class="lead">([^<]+)', text)
    assert lead
    assert unescape(lead[1]) == found["sentence"]
    for rater in ("rita", "ben", "cleo"):
        assert f"<bdi>{rater}</bdi>" in text


def test_cells_lead_to_as_many_pairs_as_they_count(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    page = browser.get("/golden/shop/agreement", params={"format": "json"}).json()
    of_two = [cell for m in page["matrices"] for _, row in m["rows"] for cell in row]
    assert sum(cell["count"] for cell in of_two) == 3 * 16  # three pairs of raters
    for cell in of_two:
        if cell["where"]:
            rows = browser.get(cell["where"] + "&format=json").json()["pairs"]
            assert len(rows) == cell["count"]
        else:
            assert cell["count"] == 0
    assert all(
        not cell["count"]
        for m in page["matrices"]
        for _, row in m["rows"]
        for cell in row
        if cell["same"]
    )  # the three never gave the same grade


def test_it_is_seen_by_class(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    wrong = browser.get("/golden/shop/agreement", params={"by": "colour"})
    assert wrong.status_code == 400
    assert "colour" in wrong.text
