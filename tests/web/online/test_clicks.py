"""The page From clicks: what the log could grade, thresholds that count, adding, conflicts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.net.visible import visible
from tests.web.click_users import put_clicks
from tests.web.conftest import ClientOf
from tests.web.online_log import put_users

from karat.formats.own.click_grades import click_grades_file, read_click_grades
from karat.store.sql import judgments

PAGE = "/golden/shop/clicks"


def test_it_says_how_to_get_a_log(client_of: ClientOf) -> None:
    engineer = client_of("engineer")
    page = engineer.get(PAGE).text
    assert "karat online import" in visible(page)
    assert f'<a href="{PAGE}" aria-current="page">From clicks</a>' in page
    assert client_of("rater").get(PAGE).status_code == 403


def test_a_log_that_does_not_say_what_it_showed(workspace: Path, client_of: ClientOf) -> None:
    put_users(workspace)
    text = visible(client_of("engineer").get(PAGE).text)
    assert "does not say which documents its searches showed" in text
    assert "Fix: log the list of results" in text


def test_the_grades_that_a_log_could_give(workspace: Path, client_of: ClientOf) -> None:
    put_clicks(workspace)
    engineer = client_of("engineer")
    found = engineer.get(f"{PAGE}?format=json").json()
    overview, judged = found["overview"], found["overview"]["judgments"]
    assert overview["identified"]
    # Eight days: the last two are predicted.
    assert (overview["fitted"], overview["held_out"]) == (
        ["2027-01-03", "2027-01-08"], ["2027-01-09", "2027-01-10"],
    )  # fmt: skip
    assert [each["model"] for each in overview["fits"]] == ["PBM", "SDBN", "DBN", "DCTR"]
    assert overview["fits"][0]["perplexity"] < overview["fits"][3]["perplexity"]
    # 4 queries × 5 documents, each shown 192 times.
    assert (judged["pairs"], judged["graded"], judged["too_few"]) == (20, 20, 0)
    assert sum(row["pairs"] for row in judged["by_grade"]) == 20
    by_pair = {(row["query_id"], row["doc_id"]): row for row in found["pairs"]}
    # d5 is relevant and was shown last; d1 was first, and is clicked more often.
    for query in ("q1", "q2", "q3", "q4"):
        first, last = by_pair[query, "d1"], by_pair[query, "d5"]
        assert last["value"] > first["value"]
    assert any(row["ctr"] > by_pair[row["query_id"], "d5"]["ctr"]
               for row in found["pairs"] if row["doc_id"] == "d1")  # fmt: skip
    # People judged all but d5.
    assert overview["agreement"]["all"]["kappa"]["pairs"] == 16
    text = visible(engineer.get(PAGE).text)
    assert "20 of 20 pairs that users saw (100 %) could get a grade from clicks" in text
    assert "people graded 16 of these" in text
    assert "Fitted to 2027-01-03 to 2027-01-08, evaluated on 2027-01-09 to 2027-01-10" in text
    assert "Raw click rates overrate" in text
    assert "<svg" in engineer.get(PAGE).text


def test_thresholds_count_without_reading_the_log_again(
    anew: None, workspace: Path, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from karat.workflows.online import click_overview

    put_clicks(workspace)
    engineer = client_of("engineer")
    usual = engineer.get(f"{PAGE}?format=json").json()["overview"]["judgments"]
    for name in ("click_relevance", "count_clicks", "fit"):
        monkeypatch.setattr(click_overview, name, None)
    address = f"{PAGE}?model=PBM&cut=0.01&cut=0.02&cut=0.97&least=20"
    other = engineer.get(f"{address}&format=json").json()["overview"]["judgments"]
    assert usual["origin"]["cuts"] == [0.1, 0.3, 0.6]
    assert other["origin"]["cuts"] == [0.01, 0.02, 0.97]
    assert other["by_grade"] != usual["by_grade"]
    none = engineer.get(f"{PAGE}?least=1000").text
    assert "No pair of a known query was looked at 1000 times or more" in visible(none)
    assert "Add" not in re.findall(r"<button[^>]*>([^<]*)", none)


@pytest.mark.parametrize(
    ("asks", "what"),
    [
        ("cut=0.5&cut=0.3&cut=0.6", "not ascending"),
        ("cut=0.5", "Expected 3 cut points"),
        ("cut=high", "'high' is not a number"),
        ("least=-1", "not a number above 0"),
        ("model=DCTR", "takes position for relevance"),
        ("model=PBN", "PBM"),
    ],
)
def test_a_mistake_is_shown_with_the_form(
    workspace: Path, client_of: ClientOf, asks: str, what: str
) -> None:
    put_clicks(workspace)
    answer = client_of("engineer").get(f"{PAGE}?{asks}")
    assert answer.status_code == 400
    assert 'class="wrong"' in answer.text
    assert what in visible(answer.text)


def test_grades_are_added_next_to_peoples_and_queued(workspace: Path, client_of: ClientOf) -> None:
    put_clicks(workspace)
    engineer = client_of("engineer")
    opened = engineer.site.workspace
    with opened.store.read() as connection:
        before = judgments.current(connection, opened.golden.id).ratings
    engineer.get(PAGE)
    how = {"model": "SDBN", "least": "30", "cut": ["0.1", "0.3", "0.7"]}
    done = visible(engineer.fill(PAGE, do="add", **how).text)
    assert "20 grades from clicks added; people’s are as they were." in done
    assert "This golden set has 20 grades from clicks, by SDBN" in done
    assert "Replace the grades from clicks by these 20 grades" in done
    frame, origin = read_click_grades(click_grades_file(workspace, "shop"))
    assert (frame.height, origin.model, origin.least, list(origin.cuts)) == (
        20, "SDBN", 30.0, [0.1, 0.3, 0.7],
    )  # fmt: skip
    with opened.store.read() as connection:
        assert judgments.current(connection, opened.golden.id).ratings.equals(before)
    page = engineer.get(f"{PAGE}?model=SDBN&least=30&cut=0.1&cut=0.3&cut=0.7").text
    conflicts = engineer.get(f"{PAGE}?format=json").json()["overview"]["agreement"]["opposing"]
    assert conflicts
    assert f"/golden/shop/pair?query={conflicts[0]['query_id']}" in page
    queued = visible(engineer.fill(PAGE, do="queue", **how).text)
    assert "queued for one more rater" in queued
    audit = visible(client_of("owner").get("/audit").text)
    assert "add grades from clicks" in audit
    assert "queue opposing clicks" in audit
    assert client_of("rater").fill(PAGE, do="add", **how).status_code == 403


def test_a_log_without_swaps_makes_no_grades(workspace: Path, client_of: ClientOf) -> None:
    put_clicks(workspace, swaps=False)
    engineer = client_of("engineer")
    text = visible(engineer.get(PAGE).text)
    assert "Positions are not identified, so clicks make no grades." in text
    assert "were never shown at another rank" in text
    answer = engineer.fill(PAGE, do="add", model="PBM", least="20", cut=["0.1", "0.3", "0.6"])
    assert answer.status_code == 400
    assert "positions are not identified" in visible(answer.text).lower()
    assert not click_grades_file(workspace, "shop").exists()
    naive = visible(engineer.get(f"{PAGE}?model=naive").text)
    assert "The naive rule takes position for relevance" in naive
    assert "20 of 20 pairs" in naive


def test_queries_that_the_golden_set_does_not_have(workspace: Path, client_of: ClientOf) -> None:
    put_clicks(workspace, texts=("blue socks",))
    assert "No query of the log is in this golden set." in visible(
        client_of("engineer").get(PAGE).text
    )
