"""Comments on pull requests: short, and nothing in a name is markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.choosing import FEW, deep_but

from karat.reports.offline.comparison import to_markdown as comparison_comment
from karat.reports.release.gate import Failed
from karat.reports.release.gate import to_markdown as gate_comment
from karat.reports.writers.markdown import LIMIT
from karat.tables.release.gate import Check, Gate, KnownFailure, Regression
from karat.workflows.offline.compare import compare

EVIL = (
    "a|b", "`x`", "<script>alert(1)</script>", "*b*", "_i_", "[t](http://e.vil)", "\\|", "~~s~~",
    "&lt;", "</code>", "</details>", "www.e.vil", "https://e.vil", "@octocat", "#12", "![i](x)",
)  # fmt: skip


def check(**more: object) -> Check:
    made = Check(
        rule="nDCG@10 drops by at most 5%",
        verdict="fail",
        reason="dropped by 0.0800, allowed 0.0200",
        measure="nDCG@10",
        n=40,
        baseline_value=0.4,
        candidate_value=0.32,
        drop=0.08,
        ci_low=0.04,
        ci_high=0.12,
        limit=0.02,
        smallest_detected=0.055,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def gate_of(*checks: Check, name: str = "q1", lost: int = 7) -> Gate:
    return Gate(
        verdict="fail",
        baseline="old",
        candidate=name,
        policy="gate.toml",
        checks=list(checks),
        lost=[Regression("nDCG@10", name, name, 1.0, 0.0)] * lost,
        known_failures=[KnownFailure(name, "RR", 1.0, passes=True)],
        notes=[f"{name} is not in the run"],
    )


def rendered(text: str) -> str:
    return MarkdownIt("commonmark").enable("table").render(text)


def cells(html: str) -> list[str]:
    return re.findall(r"<td[^>]*>(.*?)</td>", html, re.DOTALL)


def test_verdict_and_reason_then_the_checks_then_who_lost() -> None:
    text = gate_comment(gate_of(check(), check(verdict="pass", attribute="class", slice="name")))
    assert text.startswith(
        "**fail**: nDCG@10 drops by at most 5%: dropped by 0.0800, allowed 0.0200\n"
    )
    assert (
        "| nDCG@10 drops by at most 5% | <code>(all)</code> | 0.400 | 0.320 | **0.080** | "
        "0.040 to 0.120 | 0.055 "
        "| **fail** |" in text
    )
    said = ("**fail**", "<code>name</code>", "Lost most by", "passes now", "Notes")
    places = [text.index(each) for each in said]
    assert places == sorted(places)
    assert text.count("−1.000") == 5
    assert len(text) < 3_000


def test_a_long_list_says_how_many_it_leaves_out() -> None:
    notes = [f"note {number}" for number in range(12)]
    text = gate_comment(replace(gate_of(check()), notes=notes))
    assert "- note 9\n- and 2 more\n" in text
    assert "more\n" not in gate_comment(replace(gate_of(check()), notes=notes[:10]))


@pytest.mark.parametrize("evil", EVIL)
def test_a_name_is_shown_as_it_is(evil: str) -> None:
    html = rendered(gate_comment(gate_of(check(attribute="class", slice=evil), name=evil)))
    shown = cells(html)
    assert len(shown) == 8 + 4 * 5  # no pipe made another
    escaped = evil.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert shown[1] == f"<code>{escaped}</code>"
    assert shown[8] == f"<code>{escaped} {escaped}</code>"
    assert set(re.findall(r"<(\w+)", html)) <= {
        "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "details",
        "summary",
    }  # fmt: skip
    assert html.count("</details>") == 2


def test_nobody_is_mentioned_and_nothing_links() -> None:
    reason = "@octocat, see https://e.vil and www.e.vil, #12, o/r#3 and GH-12"
    text = gate_comment(gate_of(check(reason=reason)))
    assert not re.search(r"(?<!\w)@\w|https://|www\.|(?<!&)#\d", text)
    # GitHub looks for numbers of issues once entities are characters again.
    read = unescape(text)
    assert not re.search(r"(?i)#\d|GH-\d", read)
    assert "GH-\u200b12" in read
    assert "nDCG@10" in text


def test_a_name_that_is_no_utf_8() -> None:
    name = b"\xff.trec".decode(errors="surrogateescape")
    assert gate_comment(gate_of(check(), name=name)).startswith("**fail**")


def test_an_error_in_place_of_a_gate() -> None:
    text = gate_comment(Failed("<b>.trec: no such file\n  fix: see #12", 4))
    assert text.startswith(
        "**error**: the gate could not be evaluated: &#60;b&#62;.trec: no such file"
    )
    assert rendered(text).count("<p>") == 1
    assert text.count("\n") == 1


@FEW
@given(st.text(max_size=200))
def test_any_name_leaves_the_table_whole(name: str) -> None:
    html = rendered(gate_comment(gate_of(check(rule=name, attribute=name, slice=name), name=name)))
    assert len(cells(html)) == 8 + 4 * 5


@pytest.mark.parametrize(
    "name", deep_but(["<" * 10_000], ["<" * 10_000, "\N{SNOWMAN}" * 10_000, "word " * 10_000])
)
def test_a_comment_is_never_too_long(name: str) -> None:
    row = check(rule=name, reason=name, attribute=name, slice=name)
    gate = gate_of(*[row] * 500, name=name)
    gate = replace(gate, lost=[replace(r, measure=f"m{n}") for n, r in enumerate(gate.lost * 50)])
    text = gate_comment(gate)
    assert len(text.encode()) <= LIMIT
    assert text.startswith("**fail**")


def test_a_comparison_as_a_comment() -> None:
    queries = [f"q{n:02}" for n in range(20)]
    old = {query: {"x": 2.0, "good": 1.0} for query in queries}
    new = {query: {"good": 2.0, "x": 1.0} for query in queries} | {"q00": {"x": 2.0, "y": 1.0}}
    text = comparison_comment(compare({q: {"good": 1} for q in queries}, old, new, ["RR"]))
    # 19 of 20 from 1/2 to 1, one from 1/2 to 0: 19/20.
    assert "| RR | 0.500 | 0.950 | **+0.450** |" in text
    assert "| 19/0/1 | **better** |" in text
    assert text.index("Lost most by RR") < text.index("Gained most by RR")
    assert len(text) < 3_000
    assert len(cells(rendered(text))) == 8 + 4 + 4 * 5
