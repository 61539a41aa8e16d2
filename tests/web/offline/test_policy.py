"""The banner of a comparison: what the workspace's policy says of the chosen candidate, and why."""

from __future__ import annotations

import re
import threading
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import Browser, ClientOf

from karat.store.sql import audit
from karat.web.offline import comparisons, stored_comparisons
from karat.workflows.release.policy_verdicts import Deciding


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    for module in (stored_comparisons, comparisons):
        monkeypatch.setattr(module, "WAIT_S", 60.0)


@pytest.fixture
def egon(client_of: ClientOf) -> Browser:
    return client_of("engineer")


@pytest.fixture
def where(egon: Browser) -> str:
    """``new`` against ``old``, which has the best documents first."""
    given = {"baseline": 1, "candidate": [2], "measure": ["nDCG@3", "P@2"]}
    answer: Any = egon.fill("/comparisons/new", **given)
    return str(answer.headers["location"])


def drop(egon: Browser, where: str) -> float:
    """How much the candidate drops under the first measure; the rules of the tests are about it."""
    found = egon.get(f"{where}?format=json").json()["numbers"]["differences"][0]
    return -float(found["difference"])


def gate(egon: Browser, rule: str) -> Path:
    path = egon.site.workspace.workspace.root / "gate.toml"
    path.write_text(f'[[rule]]\nmeasure = "nDCG@3"\n{rule}\n')
    return path


def banner(egon: Browser, address: str) -> str:
    page = egon.get(address).text
    held = re.search(r'<section id="verdict".*?</section>', page, re.DOTALL)
    assert held is not None
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", held[0])).split())


@pytest.mark.parametrize(
    ("rule", "word", "says"),
    [
        # The candidate drops by d over 4 queries; an interval needs 5.
        ("max_drop = {more}", "Ship", "Nearest to its limit: nDCG@3 drops by at most {more}"),
        ("max_drop = {less}", "Hold", "nDCG@3 drops by at most {less}: dropped by {d:.4f}"),
        (
            'max_drop = {more}\nevidence = "interval"',
            "Cannot tell",
            "4 queries prove nothing . More queries could tell; a drop of {more:.4f} is allowed.",
        ),
    ],
)
def test_it_says_the_verdict_the_rule_and_what_would_change_it(
    egon: Browser, where: str, rule: str, word: str, says: str
) -> None:
    d = drop(egon, where)
    assert d > 0.001
    sizes = {"d": d, "more": round(d + 0.05, 3), "less": round(d / 2, 3)}
    gate(egon, rule.format(**sizes))
    text = banner(egon, where)
    assert text.startswith(word)
    assert says.format(**sizes) in text
    found = egon.get(f"{where}?format=json").json()["policy"]
    assert (found["state"], found["word"]) == ("decided", word)
    # The other tabs say it in a line.
    short = banner(egon, f"{where}?view=notes")
    assert short.startswith(word)
    assert len(short) < len(text)


def test_queries_that_broke_the_rule_lead_to_their_pages(egon: Browser, where: str) -> None:
    gate(egon, "max_drop = 0.0001")
    page = egon.get(where).text
    lost = egon.get(f"{where}?format=json").json()["policy"]["regressions"]
    assert lost
    for each in lost:
        address = f"{where}/queries/{each['query_id']}?measure=nDCG%403"
        assert f'<a href="{address}"><bdi>{each["text"]}</bdi></a>' in page
        assert egon.get(address).status_code == 200


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[rule]]\nmeasure = nDCG", "file: gate.toml"),
        ('[[rule]]\nmeasure = "nDGC@3"\nmin = 0.1', "did you mean nDCG"),
        ('[[rule]]\nmeasure = "P@2"\nmax_drop = 0.1\neach = "colour"', "colour"),
    ],
)
def test_a_policy_that_cannot_be_applied_says_why(
    egon: Browser, where: str, text: str, says: str
) -> None:
    (egon.site.workspace.workspace.root / "gate.toml").write_text(text)
    told = banner(egon, where)
    assert told.startswith("No verdict gate.toml cannot be applied.")
    assert says in told
    assert str(egon.site.workspace.workspace.root) not in told
    assert egon.get(f"{where}?format=json").json()["policy"]["state"] == "error"


def test_without_one_the_first_is_written_from_these_numbers(
    egon: Browser, where: str, client_of: ClientOf
) -> None:
    assert banner(egon, where).startswith("No policy")
    assert egon.get(f"{where}?format=json").json()["policy"]["state"] == "no policy"
    assert client_of("rater").fill(f"{where}/policy").status_code == 403  # type: ignore[attr-defined]
    answer: Any = egon.fill(f"{where}/policy")
    assert (answer.status_code, answer.headers["location"]) == (303, where)
    path = egon.site.workspace.workspace.root / "gate.toml"
    written = path.read_text()
    page = egon.get(where).text
    assert "gate.toml is written" in page
    assert "<details open><summary>gate.toml</summary>" in page
    assert written in unescape(page)
    assert "gate.toml is written" not in egon.get(where).text  # once
    assert banner(egon, where).startswith("Hold nDCG@10 drops by at most 5%")
    again: Any = egon.fill(f"{where}/policy")
    assert again.status_code == 400
    assert "The file already exists" in again.text
    assert path.read_text() == written
    with egon.site.workspace.store.read() as connection:
        assert audit.frame(connection).row(0, named=True)["action"] == "write policy"


def test_what_takes_long_is_waited_for_in_the_banner(
    egon: Browser, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(egon, where)  # the comparison itself is there
    gate(egon, "min = 0.01")
    compute, go_on = Deciding.compute, threading.Event()

    def slowly(self: Deciding) -> object:
        assert go_on.wait(60)
        return compute(self)

    monkeypatch.setattr(Deciding, "compute", slowly)
    monkeypatch.setattr(comparisons, "WAIT_S", 0.0)
    page = egon.get(where).text
    assert 'aria-label="Verdict of the policy" data-fresh="2000"' in page
    assert "is being computed" in banner(egon, where)
    go_on.set()
    monkeypatch.setattr(comparisons, "WAIT_S", 60.0)
    assert banner(egon, where).startswith("Ship")
