"""The report as a file: whole, escaped, repeatable, and with the numbers of its tables."""

from __future__ import annotations

import builtins
import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from karat.errors import InputError, MissingExtra, UsageError
from karat.tables import Documents, Qrels, Queries, Run
from karat.tables.release.gate import Check, Gate, KnownFailure, Regression
from karat.workflows.offline.compare import compare
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.report import compare_gated, titled, write_plot, write_report
from karat.workflows.release.gate import gate

EVIL = '"><script>alert(1)</script>'
GRADES = {f"q{n}": {"good": 2, "fair": 1, "bad": 0} for n in range(12)} | {EVIL: {EVIL: 1}}
QRELS = Qrels.from_dict(GRADES)
OLD = Run.from_dict(
    {q: {"bad": 3.0, "good": 2.0, "u": 1.0} for q in GRADES} | {EVIL: {"x": 1.0}}, "old"
)
NEW = Run.from_dict(
    {q: {"good": 3.0, "u": 2.0, "fair": 1.0} for q in GRADES} | {EVIL: {EVIL: 1.0}}, f"new{EVIL}"
)
QUERIES = Queries(
    pl.DataFrame(
        {
            "query_id": list(GRADES),
            "text": [f"text of {q}\x1b[31m" for q in GRADES],
            "kind": ["a" if n % 2 else EVIL for n in range(len(GRADES))],
        }
    )
)
DOCUMENTS = Documents(pl.DataFrame({"doc_id": ["good", EVIL], "title": ["A good one", EVIL]}))
ABOUT: dict[str, Any] = {"qrels": QRELS, "queries": QUERIES, "documents": DOCUMENTS}


class Tags(HTMLParser):
    """Every tag with its attributes, and the ids."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, name: str) -> list[str | None]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    found = compare(QRELS, OLD, NEW, ["P@2", "AP"], queries=QUERIES, by="kind", judge_next=3)
    write_report(path, found, runs=[OLD, NEW], **ABOUT)
    return path.read_text(encoding="utf-8")


def test_it_asks_for_nothing_and_runs_nothing_of_strangers(page: str) -> None:
    tags = Tags(page)
    assert [name for name, _ in tags.tags if name == "script"] == ["script"]
    assert not {"link", "img", "iframe", "object", "form"} & {
        name for name, held in tags.tags if held.get("href") != "data:,"
    }
    assert not tags.all("src")
    assert not [n for _, held in tags.tags for n in held if n.startswith("on") or n == "style"]
    assert all(str(link).startswith("#") or link == "data:," for link in tags.all("href"))
    assert "\x1b" not in page
    (policy,) = [h["content"] for _, h in tags.tags if "http-equiv" in h]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_every_link_leads_somewhere_and_ids_are_single(page: str) -> None:
    tags = Tags(page)
    ids = tags.all("id")
    assert len(ids) == len(set(ids))
    assert {str(link)[1:] for link in tags.all("href") if link != "data:,"} <= set(ids)


def test_the_answer_comes_first_and_rows_follow(page: str) -> None:
    text = re.sub(
        r"\s+", " ", re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    )
    # P@2: 1/2 in all but one query before and after; from 0 to 1/2 in that one.
    assert "P@2 went from" in text
    assert "A good one" in text
    assert "unjudged" in text
    assert re.search(r"▲ was 2", text)
    assert "SHA-256" in text
    assert "13 queries" in text


def test_the_same_input_makes_the_same_bytes(page: str, tmp_path: Path) -> None:
    found = compare(QRELS, OLD, NEW, ["P@2", "AP"], queries=QUERIES, by="kind", judge_next=3)
    write_report(tmp_path / "again.html", found, runs=[OLD, NEW], **ABOUT)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_an_evaluation_has_one_column_and_the_worst_first(tmp_path: Path) -> None:
    results = evaluate(QRELS, OLD, ["P@2"], queries=QUERIES, by="kind")
    write_report(tmp_path / "r.html", results, runs=[OLD], **ABOUT)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert results.per_query == []
    first = text[text.index('id="q1"') :]
    assert "&lt;script&gt;" in first[: first.index("</summary>")]  # the one query with 0
    assert first.count("<section>", 0, first.index('id="q2"')) == 1


def test_several_candidates_have_a_leaderboard(tmp_path: Path) -> None:
    third = OLD.named("third")
    found = compare(QRELS, OLD, [NEW, third], ["P@2"])
    write_report(tmp_path / "r.html", found, runs=[OLD, NEW, third], qrels=QRELS)
    assert 'id="leaderboard"' in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_gate_says_its_verdict_and_why(tmp_path: Path) -> None:
    held = Gate(
        "fail",
        OLD.name,
        NEW.name,
        "gate.toml",
        [Check("P@2 drops by at most 5%", "fail", "it drops by 9%", "P@2", drop=0.1)],
        [Regression("P@2", EVIL, None, 1.0, 0.0)],
        [KnownFailure("q1", "P@2", None, passes=False)],
        {"qrels": "of-the-qrels"},
    )
    found = compare_gated(held, QRELS, [OLD, NEW], ["P@2"])
    write_report(tmp_path / "r.html", held, runs=[OLD, NEW], comparison=found, **ABOUT)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "fails the policy" in text
    assert "it drops by 9%" in text
    assert "of-the-qrels" in text
    write_report(tmp_path / "r.html", replace(held, baseline=None), runs=[NEW], **ABOUT)
    assert "it drops by 9%" in (tmp_path / "r.html").read_text(encoding="utf-8")


def degraded() -> tuple[dict[str, dict[str, int]], Run, Run]:
    """Thirty queries, of which a candidate fails six altogether and two by half."""
    ids = [f"q{n:02}" for n in range(30)]
    grades = {query: {"good": 1} for query in ids}
    good, half = {"good": 3.0, "x": 2.0}, {"x": 3.0, "good": 2.0}
    worse = {q: {"x": 1.0} if n < 6 else half if n < 8 else good for n, q in enumerate(ids)}
    return grades, Run.from_dict(dict.fromkeys(ids, good), "a"), Run.from_dict(worse, "b")


@pytest.mark.parametrize("weighted", deep_but([True], [False, True]))
def test_a_page_of_a_gate_is_over_the_queries_of_the_gate(weighted: bool, tmp_path: Path) -> None:
    grades, old, new = degraded()
    known = [{"query_id": f"q{n:02}", "min": 0.5, "reason": "no synonyms"} for n in range(6)]
    policy = {"rule": [{"measure": "RR", "max_drop": "30%"}], "known_failure": known}
    columns: dict[str, Any] = {"query_id": list(grades), "text": list(grades)}
    if weighted:
        columns |= {"weight": [1.0 + n % 3 for n in range(30)], "stratum": ["a", "b"] * 15}
    queries = Queries(pl.DataFrame(columns))
    found = gate(policy, grades, old, new, queries=queries)
    [check] = [each for each in found.checks if each.measure]
    assert (found.verdict, check.n) == ("pass", 24)
    beside = compare_gated(found, grades, [old, new], ["RR"], queries=queries)
    [row] = beside.differences
    assert row.n == 24
    values = (check.baseline_value, check.candidate_value, check.ci_low, check.ci_high)
    assert row.ci_low is not None
    assert row.ci_high is not None
    compared = (row.baseline_value, row.candidate_value, -row.ci_high, -row.ci_low)
    assert compared == pytest.approx(values, abs=1e-12)
    about: dict[str, Any] = {"qrels": grades, "queries": queries, "comparison": beside}
    write_report(tmp_path / "r.html", found, runs=[old, new], **about)
    text = said((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "b against a passes the policy" in text
    assert "B " not in text
    shown, files = text.rsplit("How it was computed", 1)
    assert "over 30 queries" not in shown
    assert "54 documents, 30 queries" in files  # b as it was given
    assert "is worse" not in text
    assert f"{check.candidate_value:.3f}" in text
    assert "still fails (no synonyms)" in text
    whole = {**about, "comparison": compare(grades, old, new, ["RR"], queries=queries)}
    with pytest.raises(UsageError, match="excludes as a known failure"):
        write_report(tmp_path / "r.html", found, runs=[old, new], **whole)


def test_a_page_of_known_failures_alone_is_refused(tmp_path: Path) -> None:
    grades, old, new = degraded()
    known = [{"query_id": query, "min": 0.5} for query in grades]
    policy = {"rule": [{"measure": "RR", "max_drop": "30%"}], "known_failure": known}
    found = gate(policy, grades, old, new)
    with pytest.raises(UsageError, match="every judged query is a known failure"):
        write_report(tmp_path / "r.html", found, runs=[old, new], qrels=grades)


@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 2},
        pytest.param({"judged_only": True}, marks=pytest.mark.deep),
        pytest.param({"complete": True}, marks=pytest.mark.deep),
        pytest.param({"scale": (0, 3)}, marks=pytest.mark.deep),
    ],
)
def test_rules_are_those_of_the_numbers(settings: dict[str, Any], tmp_path: Path) -> None:
    found = compare(QRELS, OLD, NEW, ["nDCG@3"], **settings)
    write_report(tmp_path / "r.html", found, runs=[OLD, NEW], qrels=QRELS)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert (">unjudged</span>" in text) == ("judged_only" not in settings)


def said(page: str) -> str:
    """The text of a page, its answer in words first."""
    tags = r"<(style|script).*?</\1>|<[^>]+>"
    return html.unescape(re.sub(r"\s+", " ", re.sub(tags, " ", page, flags=re.DOTALL)))


def test_a_half_dead_candidate_is_said_to_be_one_before_anything_else(tmp_path: Path) -> None:
    answers: dict[str, dict[str, float] | None] = dict.fromkeys(GRADES)
    answers |= {f"q{n}": {"bad": 3.0, "good": 2.0, "u": 1.0} for n in range(4)}
    half = Run.from_dict(answers, "half")
    found = compare(QRELS, OLD, half, ["P@2"])
    write_report(tmp_path / "r.html", found, runs=[OLD, half], qrels=QRELS)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    text = said(page)
    assert text.index("half got no answer to 9 of 13 queries") < text.index("is the same as old")
    assert page.count("data-failed") == 9  # each is in the list
    assert 'data-way="failed"' in page


def test_all_dead_and_one_query_have_a_page_without_numbers_made_up(tmp_path: Path) -> None:
    dead = Run.from_dict(dict.fromkeys(GRADES), "dead")
    write_report(
        tmp_path / "r.html", compare(QRELS, OLD, dead, ["P@2"]), runs=[OLD, dead], qrels=QRELS
    )
    text = said((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "dead got no answer to all 13 queries: it has no number." in text
    assert "P@2: no query has a value in both runs." in text
    write_report(tmp_path / "r.html", evaluate(QRELS, dead, ["P@2"]), runs=[dead], qrels=QRELS)
    assert "dead: P@2 has no value" in said((tmp_path / "r.html").read_text(encoding="utf-8"))
    one = {"q": {"a": 1}}
    alone = Run.from_dict({"q": {"a": 1.0}}, "alone")
    write_report(tmp_path / "r.html", evaluate(one, alone, ["P@2"]), runs=[alone], qrels=one)
    text = said((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "alone: P@2 0.500 over 1 query." in text


def test_every_query_is_listed_and_the_first_of_them_opened(tmp_path: Path) -> None:
    grades = {f"q{n}": {"good": 1} for n in range(120)}
    run = Run.from_dict({query: {"good": 1.0} for query in grades}, "run")
    write_report(
        tmp_path / "r.html", evaluate(grades, run, ["P@1", "RR"]), runs=[run], qrels=grades
    )
    tags = Tags((tmp_path / "r.html").read_text(encoding="utf-8"))
    listed = [held["id"] for name, held in tags.tags if name == "li" and "id" in held]
    assert listed == [f"q{n}" for n in range(1, 121)]
    assert sum(held.get("class") == "row" for _, held in tags.tags) == 20
    # A number under each of the two measures, of which the first shows.
    numbers = [held for _, held in tags.tags if held.get("class") == "change"]
    assert [len(numbers), sum("hidden" in held for held in numbers)] == [240, 120]


def test_slices_lead_to_their_queries_also_without_a_comparison(tmp_path: Path) -> None:
    results = evaluate(QRELS, OLD, ["P@2"], queries=QUERIES, by="kind")
    write_report(tmp_path / "r.html", results, runs=[OLD], **ABOUT)
    tags = Tags((tmp_path / "r.html").read_text(encoding="utf-8"))
    within = [held["data-in"] for name, held in tags.tags if name == "li" and "data-in" in held]
    assert sorted(within) == ["in-0-0"] * 7 + ["in-0-1"] * 6
    assert {"#in-0-0", "#in-0-1"} <= set(tags.all("href"))


def test_counts_of_a_gate_are_not_taken_for_scores(tmp_path: Path) -> None:
    checks = [
        Check("every query is answered", "unhealthy", "1,200 were not", None, n=13,
              baseline_value=0.0, candidate_value=1200.0),
    ]  # fmt: skip
    held = Gate("unhealthy", OLD.name, NEW.name, "gate.toml", checks)
    write_report(tmp_path / "r.html", held, runs=[OLD, NEW], **ABOUT)
    text = said((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "every query is answered 13 unhealthy 1,200 were not" in text


def test_hashes_go_by_role_and_not_by_name(tmp_path: Path) -> None:
    runs = [OLD.named("candidate"), NEW.named("baseline")]
    hashes = {"baseline": "of the first", "candidate": "of the second"}
    held = Gate("pass", "candidate", "baseline", "gate.toml", [], hashes=hashes)
    write_report(tmp_path / "r.html", held, runs=runs, **ABOUT)
    text = said((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert re.search(r"candidate \S+ [\d,]+ documents, [\d,]+ queries of the first", text), text[
        -900:
    ]


@pytest.mark.parametrize("measure", deep_but(["Bpref"], ["nDCG@2", "Bpref"]))
def test_a_sum_is_told_by_the_measure_also_where_the_candidate_is_dead(
    tmp_path: Path, measure: str
) -> None:
    dead = Run.from_dict(dict.fromkeys(GRADES), "dead")
    found = compare(QRELS, OLD, dead, [measure])
    write_report(tmp_path / "r.html", found, runs=[OLD, dead], **ABOUT)
    text = said((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert ("is not a sum over documents" in text) == (measure == "Bpref")
    assert "No answer came." in text
    assert "Nothing was returned." not in text


def test_trec_evals_numbers_have_a_report_too(tmp_path: Path) -> None:
    results = evaluate(QRELS, OLD, compat="trec_eval-9")
    write_report(tmp_path / "r.html", results, runs=[OLD], qrels=QRELS)
    assert "trec_eval-9" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_lack_is_named_with_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = evaluate(QRELS, OLD, ["P@2"])
    imported = builtins.__import__

    def lacking(name: str, *rest: Any, **more: Any) -> Any:
        if name == "jinja2":
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(MissingExtra, match=r"pip install 'karat\[report\]'"):
        write_report(tmp_path / "r.html", results, runs=[OLD], qrels=QRELS)
    assert not list(tmp_path.iterdir())


def test_plots(tmp_path: Path) -> None:
    found = compare(QRELS, OLD, NEW, ["P@2"])
    write_plot(tmp_path / "p.png", found)
    write_plot(tmp_path / "p.svg", evaluate(QRELS, OLD, ["P@2"]))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    with pytest.raises(UsageError, match=r"does not end in \.png or \.svg"):
        write_plot(tmp_path / "p.gif", found)


def test_where_it_cannot_be_written(tmp_path: Path) -> None:
    results = evaluate(QRELS, OLD, ["P@2"])
    with pytest.raises(UsageError, match="a report cannot be written to standard output"):
        write_report("-", results, runs=[OLD], qrels=QRELS)
    with pytest.raises(InputError, match="cannot be written"):
        write_report(tmp_path / "none" / "r.html", results, runs=[OLD], qrels=QRELS)


def test_titles_come_from_the_folder_of_the_judgments(tmp_path: Path) -> None:
    assert titled("given", tmp_path) == "given"
    assert titled(None, tmp_path) is None
    (tmp_path / "corpus.jsonl").write_text("{}\n")
    assert titled(None, tmp_path) == tmp_path
