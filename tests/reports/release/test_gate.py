"""A gate in the terminal: why first, then every check, and nothing cut."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pytest

from karat.reports.phrases.gate import brief, deciding, to_change, would_change
from karat.reports.release.gate import (
    Failed,
    broke,
    drawing,
    show,
    to_github,
    to_junit,
    to_markdown,
)
from karat.reports.writers.plain import to_json
from karat.reports.writers.terminal import console
from karat.tables.comparison import RankChange
from karat.tables.release.gate import Check, Gate, KnownFailure, Regression
from karat.tables.results import Result

RULE = "nDCG@10 drops by at most 5%"
HEALTH = Check("every query is answered", "pass", "all were answered", n=40)
DROPPED = Check(
    rule=RULE,
    verdict="cannot_tell",
    reason="the drop is +0.0300 (95 %: −0.0100 to +0.0700), allowed 0.02",
    measure="nDCG@10",
    attribute="class",
    slice="name of a product",
    n=20,
    baseline_value=0.4,
    candidate_value=0.37,
    drop=0.03,
    ci_low=-0.01,
    ci_high=0.07,
    limit=0.02,
    smallest_detected=0.055,
)
BROKEN = replace(
    DROPPED,
    verdict="fail",
    reason="dropped by 0.0800 (20.0 %), allowed 5 % = 0.0200",
    attribute=None,
    slice=None,
    candidate_value=0.32,
    drop=0.08,
    ci_low=0.0412,
)
FLOOR = Check("R@100 is at least 0.8", "pass", "it is 0.9000", "R@100", n=40, candidate_value=0.9)
GATE = Gate(
    verdict="fail",
    baseline="old",
    candidate="new",
    policy="gate.toml",
    checks=[BROKEN, DROPPED, FLOOR, HEALTH],
    lost=[Regression("nDCG@10", f"q{n}", f"what was typed, {n}", 1.0, n / 10) for n in range(7)],
    known_failures=[
        KnownFailure("q7", "RR", 1.0, passes=True),
        KnownFailure("q8", "RR", 0.1, passes=False),
    ],
    notes=["old: 1 query not in the run: scored 0 (q06)"],
)
PASSED = replace(GATE, verdict="pass", checks=[FLOOR, HEALTH], lost=[], baseline=None)


def shown(found: Gate, width: int = 80) -> str:
    out = io.StringIO()
    show(found, console(out, width))
    return out.getvalue()


def test_the_verdict_and_its_reason_come_first() -> None:
    lines = shown(GATE).splitlines()
    # One line, so that it can be looked for; longer than the 80 columns of the rest.
    assert lines[0] == f"fail: {RULE}: dropped by 0.0800 (20.0 %), allowed 5 % = 0.0200"
    assert lines[1].rstrip() == "new against old, by gate.toml"


def test_in_a_terminal_the_verdict_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    show(GATE, console(out, 60))
    assert max(map(len, re.sub("\x1b\\[[0-9;]*m", "", out.getvalue()).splitlines())) <= 60


def test_an_error_in_place_of_a_gate_is_json() -> None:
    found = json.loads(to_json(Failed('x: "é" is wrong\n  fix: y', 2)))
    assert found == {"verdict": "error", "error": 'x: "é" is wrong\n  fix: y', "exit_code": 2}


def test_checks_then_reasons_then_who_lost_then_known_failures_then_notes() -> None:
    text = shown(GATE)
    said = (
        "0.041 to 0.070",
        "R@100 is at",
        "· cannot tell: nDCG@10",
        "· passed: every query is answered",
        "Lost most by nDCG@10",
        "q0 what was typed, 0",
        "−1.000",
        "and 2 more",
        "q7 passes now (RR 1.000): remove it from the list",
        "still fails: q8",
        "old: 1 query",
    )
    places = [text.index(each) for each in said]
    assert places == sorted(places)
    assert "q5" not in text


def test_a_row_has_drop_interval_smallest_visible_drop_and_verdict() -> None:
    [row] = [line for line in shown(GATE, 120).splitlines() if "0.055  cannot tell" in line]
    # The rule is that of the row above, and not repeated.
    said = ["name of a product", "0.400", "0.370", "0.030", "−0.010 to 0.070", "0.055"]
    assert re.split(" {2,}", row.strip()) == [*said, "cannot tell"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_wider_than_the_screen_and_no_verdict_is_cut(width: int) -> None:
    long = replace(
        DROPPED, slice="a-slice-whose-name-is-longer-than-any-terminal-of-eighty-columns"
    )
    text = shown(replace(GATE, checks=[*GATE.checks, *[long] * 12]), width)
    assert max(map(len, text.splitlines()[1:])) <= width  # the first is the verdict
    # The row of DROPPED and twelve more, less what fits into the sentences below.
    table = text[: text.index("·")]
    assert table.count("cannot tell") == 13


def test_what_passes_says_so_without_a_baseline() -> None:
    text = shown(PASSED)
    assert text.startswith(
        "pass: new passes all 2 checks (1 by a rule, 1 of health)\nnew, by gate.toml"
    )
    assert "MDE:" not in text
    # Columns without a value are left out.
    assert text.splitlines()[3].split() == ["Rule", "To"]


def test_nothing_checked_is_an_error_and_says_so() -> None:
    assert shown(replace(GATE, verdict="error", checks=[])).startswith("error: nothing was checked")


def test_several_of_the_worst_are_counted() -> None:
    text = shown(replace(GATE, checks=[BROKEN, BROKEN, BROKEN]), 120)
    assert "(and 2 more checks)" in text


def test_a_slice_called_like_a_column_stays_a_slice() -> None:
    text = shown(replace(GATE, checks=[replace(DROPPED, attribute="drop", slice="x")]), 120)
    assert "drop x" in text
    assert " Slice " in text


def test_an_id_from_a_stranger_cannot_paint_the_screen() -> None:
    evil = replace(GATE, candidate="\x1b[31m", lost=[Regression("RR", "\x1b[2J", "\x9b", 1.0, 0.0)])
    assert not {"\x1b", "\x9b"} & set(shown(evil))


def test_json_holds_every_row_and_the_exit_code() -> None:
    found = json.loads(to_json(GATE))
    assert (found["verdict"], found["exit_code"]) == ("fail", 1)
    assert [check["verdict"] for check in found["checks"]] == [
        "fail", "cannot_tell", "pass", "pass",
    ]  # fmt: skip
    assert len(found["lost"]) == 7


def test_a_query_that_lost_has_its_slice_and_the_documents_that_moved() -> None:
    moves = [
        RankChange("new", "RR", "q1", "good", 1.0, 1, None, -0.5),
        RankChange(
            "new", "RR", "q1", "a-document-with-a-long-name-of-its-own", 0.0, None, 1200, None
        ),
    ]
    row = Regression("RR", "q1", "typed", 1.0, 0.5, "class", "name", moves)
    lines = shown(replace(GATE, lost=[row])).splitlines()
    [at] = [place for place, line in enumerate(lines) if "q1 typed" in line]
    assert "class name · good 1 → –, a-document-with-a-" in lines[at + 1]
    [held] = json.loads(to_json(replace(GATE, lost=[row])))["lost"]
    assert (held["attribute"], held["slice"]) == ("class", "name")
    assert held["moves"][0]["baseline_rank"] == 1


def test_counts_are_no_fractions() -> None:
    found = Check("every query is answered", "unhealthy", "39 of 80 got no answer", n=80,
                  candidate_value=39.0, limit=0.0)  # fmt: skip
    gate = replace(GATE, verdict="unhealthy", checks=[found], lost=[], known_failures=[], notes=[])
    for text in (shown(gate), to_junit(gate), to_markdown(gate), to_github(gate)):
        assert "39 of 80 got no answer" in text
        assert "39.0" not in text
        assert "0.000" not in text


LATENCY = Check("at most 3 of 79 queries not in the run", "unhealthy", "9 are not", n=79, limit=3)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        # From .4 to .32: a fifth; .02 of .4 may be lost: a twentieth.
        (BROKEN, "nDCG@10: −20 % (limit −5 %)"),
        (DROPPED, "nDCG@10, class name of a product: −7.5 % (limit −5 %)"),
        # Lower is better: from .4 to .48 is worse.
        (replace(BROKEN, candidate_value=0.48), "nDCG@10: +20 % (limit +5 %)"),
        # It rose, and may drop.
        (replace(BROKEN, candidate_value=0.48, drop=-0.08), "nDCG@10: +20 % (limit −5 %)"),
        (
            replace(BROKEN, baseline_value=0.0, candidate_value=-0.08),
            "nDCG@10: −0.080 (limit −0.020)",
        ),
        (replace(FLOOR, verdict="fail", limit=0.95), "R@100: 0.900 (limit 0.950)"),
        (LATENCY, "at most 3 of 79 queries not in the run: 9 are not"),
    ],
)
def test_a_check_in_one_line(check: Check, said: str) -> None:
    assert brief(check) == said


def test_what_would_change_a_verdict() -> None:
    assert to_change(BROKEN) == "It is 0.0600 beyond the limit of 0.0200."
    floor = replace(FLOOR, verdict="fail", limit=0.95)
    assert to_change(floor) == "It is 0.0500 beyond the limit of 0.9500."
    # Half the interval is .04, and .01 lie between drop and limit: 4 × 4 times the 20 queries.
    sure = replace(DROPPED, rule=f"{RULE}, surely")
    assert to_change(sure) == "About 320 queries (now 20) would decide it, if the drop stays."
    assert to_change(DROPPED) == to_change(HEALTH) == to_change(LATENCY) == ""


def test_an_interval_is_drawn_against_its_limit() -> None:
    rows = [BROKEN, DROPPED, replace(FLOOR, limit=0.8), HEALTH]
    value = Result("new", "R@100", 0.9, "mean", 0.85, 1.0, "t", 40, 0, 0, 0, 0, 0, None, None)
    draw = drawing(rows, [value])
    # Drops of nDCG@10 are on one axis from −.01 to .08 (its upper end .07 is inside): 184 of 192
    # pixels, with 4 at each end.
    places = dict(re.findall(r'class="(\w+)" x1="([\d.]+)"', draw(BROKEN)))
    assert places == {
        "axis": "0",
        "limit": "65.3",  # 4 + 184 × .03 / .09
        "target": "24.4",  # 4 + 184 × .01 / .09
        "span": "108.7",  # 4 + 184 × .0512 / .09
    }
    assert 'cx="188.0"' in draw(BROKEN)
    floor = draw(rows[2])  # from .8, the limit, to 1
    assert '<line class="limit" x1="4.0"' in floor
    assert '<line class="span" x1="50.0" x2="188.0"' in floor
    assert "target" not in floor, "a value has no tick for no drop"
    assert draw(HEALTH) == ""
    alone = replace(BROKEN, drop=0.02, ci_low=None, ci_high=None, limit=0.02)
    assert drawing([alone], [])(alone).count("line") == 3, "without an interval"
    assert drawing([replace(FLOOR, candidate_value=None, limit=0.8)], [])(FLOOR) == ""


def test_queries_are_of_the_check_that_they_broke() -> None:
    row = Regression("nDCG@10", "q1", None, 1.0, 0.1, "class", "name of a product")
    other = Regression("nDCG@10", "q2", None, 1.0, 0.2)
    gate = replace(GATE, checks=[BROKEN, DROPPED, BROKEN, FLOOR], lost=[row, other])
    assert broke(gate) == [
        (BROKEN, [row, other]),
        (DROPPED, [replace(row, attribute=None, slice=None)]),
    ]
    assert broke(PASSED) == []


SPAN, ALLOWED = "The 95 % interval of the drop", "what is allowed: "
CHANGES, MORE = "candidate changes this.", "more queries could change this."
POWER = "Its 20 queries detect a drop of 0.0550 (power 80 %)."


@pytest.mark.parametrize(
    ("verdict", "check", "text"),
    [
        # BROKEN: 0.0412 to 0.07 is all above 0.02
        ("fail", {}, f"{SPAN}, 0.041 to 0.070, is beyond {ALLOWED}only another {CHANGES} {POWER}"),
        (
            "fail", {"ci_low": 0.01},
            f"{SPAN}, 0.010 to 0.070, reaches into {ALLOWED}{MORE} {POWER}",
        ),
        (
            "cannot_tell", {"smallest_detected": None},
            "More queries could tell; a drop of 0.0200 is allowed.",
        ),
        (
            "pass", {"drop": -0.01, "smallest_detected": None},
            f"Nearest to its limit: {RULE}; the drop is −0.0100, allowed 0.0200.",
        ),
        ("fail", {"ci_low": None}, f"It is 0.0600 beyond the limit of 0.0200. {POWER}"),
        # 20 queries have 0.08 ± 0.07, and the limit is 0.06 off: 20 × (7 / 6)² = 27.2
        (
            "cannot_tell", {"rule": f"{RULE}, surely", "ci_low": 0.01, "ci_high": 0.15},
            f"About 28 queries (now 20) would decide it, if the drop stays. {POWER}",
        ),
        ("unhealthy", {}, ""),
    ],
)  # fmt: skip
def test_what_would_change_a_gate(verdict: str, check: dict[str, object], text: str) -> None:
    own = replace(BROKEN, verdict=verdict, **check)  # type: ignore[arg-type]
    found = replace(GATE, verdict=verdict, checks=[own, FLOOR, HEALTH])  # type: ignore[arg-type]
    assert would_change(found) == text


def test_the_check_nearest_to_its_limit_is_named() -> None:
    passed = [replace(BROKEN, verdict="pass", drop=drop) for drop in (-0.2, 0.015, 0.01)]
    assert "the drop is 0.0150" in would_change(replace(PASSED, checks=[*passed, FLOOR]))
    assert would_change(PASSED) == ""  # a floor has no drop
    assert deciding(replace(PASSED, checks=[])) is None
