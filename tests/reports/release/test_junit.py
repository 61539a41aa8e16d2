"""JUnit XML: readable by strict readers, and never green without evidence."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.reports.release.gate import Failed, to_junit
from karat.tables.comparison import RankChange
from karat.tables.release.gate import EXIT_CODES, Check, Gate, GateVerdict, KnownFailure, Regression

VERDICTS = list(EXIT_CODES)
# Elements and attributes of junit-10.xsd, the schema of Jenkins' xunit plugin 3.1:
# element -> (required attributes, optional ones, children).
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
MOVE = RankChange("new", "RR", "q1", "x", 1.0, 1, 4, -0.75)


def gate_of(*checks: Check, verdict: GateVerdict = "fail", name: str = "new") -> Gate:
    lost = [Regression("RR", name, name, 1.0, 0.25)]
    known = [KnownFailure(name, "RR", 1.0, passes=True)]
    hashes = {"qrels": "ab", "baseline": None}
    return Gate(verdict, "old", name, "gate.toml", list(checks), lost, known, hashes, [name])


def check(verdict: GateVerdict, rule: str = "RR drops by at most 0.01") -> Check:
    return Check(rule, verdict, "because", "RR", drop=0.03, ci_low=-0.01, ci_high=0.07)


def suite_of(gate: Gate) -> ET.Element:
    root = ET.fromstring(to_junit(gate).encode())
    assert root.tag == "testsuites"
    [suite] = root
    assert suite.attrib["name"] == "karat"
    return suite


def follows_schema(element: ET.Element) -> None:
    required, optional, children = SCHEMA[element.tag]
    assert required <= set(element.attrib) <= required | optional
    for child in element:
        assert child.tag in children
        follows_schema(child)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_only_a_pass_is_green(verdict: GateVerdict) -> None:
    suite = suite_of(gate_of(check(verdict), verdict=verdict))
    [case] = suite.iter("testcase")
    kind = {"pass": None, "fail": "failure", "cannot_tell": "failure"}.get(verdict, "error")
    found = [child for child in case if child.tag in {"failure", "error", "skipped"}]
    assert [child.tag for child in found] == ([kind] if kind else [])
    assert [child.attrib["type"] for child in found] == ([verdict] if kind else [])
    counted = (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["skipped"])
    assert counted == (str(int(kind == "failure")), str(int(kind == "error")), "0")


def test_a_failure_has_the_reason_the_numbers_and_who_lost() -> None:
    failure = suite_of(gate_of(check("fail"))).find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == "fail: because"
    assert (failure.text or "").splitlines() == [
        "drop 0.030 (95 %: −0.010 to 0.070)",
        "lost most by RR:",
        "  1.000 to 0.250  new new",
    ]


def test_a_slice_names_the_queries_that_lost_in_it() -> None:
    found = replace(check("fail"), attribute="class", slice="name")
    lost = [
        Regression("RR", "q1", None, 1.0, 0.25, "class", "name", [MOVE]),
        Regression("RR", "q2", None, 1.0, 0.5, "class", "task", []),
    ]
    failure = suite_of(replace(gate_of(found), lost=lost)).find("testcase/failure")
    assert failure is not None
    assert (failure.text or "").splitlines()[-2:] == [
        "  1.000 to 0.250  q1",
        "    class name · x 1 → 4",
    ]


def test_a_gate_that_checked_nothing_is_an_error() -> None:
    suite = suite_of(gate_of(verdict="error"))
    [case] = suite.iter("testcase")
    assert [child.tag for child in case] == ["error"]
    assert suite.attrib["tests"] == "1"


def test_checks_of_one_name_stay_apart() -> None:
    names = [
        c.attrib["name"] for c in suite_of(gate_of(check("fail"), check("pass"))).iter("testcase")
    ]
    assert names == ["RR drops by at most 0.01", "RR drops by at most 0.01 (2)"]


@given(name=st.text(st.characters(exclude_categories=())), verdict=st.sampled_from(VERDICTS))
def test_any_text_makes_xml_that_follows_the_schema(name: str, verdict: GateVerdict) -> None:
    suite = suite_of(gate_of(check(verdict, name), check("pass"), verdict=verdict, name=name))
    follows_schema(suite)
    assert len(list(suite.iter("testcase"))) == int(suite.attrib["tests"]) == 2


def test_controls_are_replaced() -> None:
    text = to_junit(gate_of(check("fail", "a\x00\x1b[31m\ud800\ufffe")))
    assert "a\ufffd\ufffd[31m\ufffd\ufffd" in text


def test_an_error_in_place_of_a_gate_follows_the_schema() -> None:
    root = ET.fromstring(to_junit(Failed("\x00x: <y> is wrong\n  fix: z\ud800", 4)).encode())
    follows_schema(root)
    [suite] = root
    assert [suite.attrib[name] for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
    [error] = suite.iter("error")
    assert "x: <y> is wrong" in error.attrib["message"]
