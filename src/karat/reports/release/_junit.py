"""A gate as JUnit XML, for Jenkins, GitLab and other tools.

Insufficient evidence is never green: a check that fails or cannot tell is a failure, one without
valid numbers (unhealthy, stale, error) is an error; no check is skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from karat.reports.phrases import gate as words
from karat.reports.writers.plain import CONTROLS
from karat.tables.release.gate import Check, Gate, GateVerdict

_FAILURES: tuple[GateVerdict, ...] = ("fail", "cannot_tell")
_LOST = 5
_TEXT = 120  # characters of a query and its text
# Not allowed in XML 1.0, not even escaped (https://www.w3.org/TR/xml/#charsets).
_FORBIDDEN = re.compile("[\ud800-\udfff\ufffe\uffff]")


def document(gate: Gate) -> str:
    """One suite ``karat`` with a test case per check, the worst first."""
    cases = list(_cases(gate))
    kinds = Counter(kind for kind, _case in cases)
    counts = {
        "tests": str(len(cases)),
        "failures": str(kinds["failure"]),
        "errors": str(kinds["error"]),
    }
    suites = ET.Element("testsuites", {"name": "karat"} | counts)
    suite = ET.SubElement(suites, "testsuite", {"name": "karat"} | counts | {"skipped": "0"})
    properties = ET.SubElement(suite, "properties")
    about = {"verdict": gate.verdict, "policy": gate.policy, "candidate": gate.candidate}
    about |= {"baseline": gate.baseline or ""}
    about |= {f"sha256.{name}": digest or "" for name, digest in gate.hashes.items()}
    for name, value in about.items():
        ET.SubElement(properties, "property", name=_clean(name), value=_clean(value))
    suite.extend(case for _kind, case in cases)
    lines = [words.title(gate), *words.known_failures(gate.known_failures), *gate.notes]
    ET.SubElement(suite, "system-out").text = _clean("\n".join(lines))
    return _document(suites)


def failed(message: str) -> str:
    """The document if the gate could not be evaluated."""
    counts = {"tests": "1", "failures": "0", "errors": "1"}
    suites = ET.Element("testsuites", {"name": "karat"} | counts)
    suite = ET.SubElement(suites, "testsuite", {"name": "karat"} | counts | {"skipped": "0"})
    suite.append(_case("the gate can be evaluated", "error", message, "")[1])
    return _document(suites)


def _document(suites: ET.Element) -> str:
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _cases(gate: Gate) -> Iterator[tuple[str, ET.Element]]:
    """Each test case with its kind: pass, failure or error."""
    named: Counter[str] = Counter()
    for check in gate.checks:
        name = _clean(words.label(check))
        named[name] += 1
        if named[name] > 1:  # tools merge cases of the same name
            name += f" ({named[name]})"
        yield _case(name, check.verdict, check.reason, "\n".join(_details(gate, check)))
    if gate.verdict != "pass" and all(map(words.passes, gate.checks)):
        yield _case("the policy", gate.verdict, words.why(gate), "")


def _case(name: str, verdict: GateVerdict, reason: str, details: str) -> tuple[str, ET.Element]:
    case = ET.Element("testcase", classname="karat.gate", name=name)
    if verdict == "pass":
        ET.SubElement(case, "system-out").text = _clean(f"{reason}\n{details}".strip())
        return "pass", case
    kind = "failure" if verdict in _FAILURES else "error"
    message = _clean(f"{words.word(verdict)}: {reason}")
    ET.SubElement(case, kind, type=verdict, message=message).text = _clean(details)
    return kind, case


def _details(gate: Gate, check: Check) -> Iterator[str]:
    if check.measure is None:  # the reason has its numbers
        return
    if check.baseline_value is not None:
        yield f"baseline {words.number(check, check.baseline_value)}"
    if check.candidate_value is not None:
        yield f"candidate {words.number(check, check.candidate_value)}"
    if check.drop is not None:
        interval = f" (95 %: {words.span(check)})" if words.span(check) else ""
        yield f"drop {words.number(check, check.drop)}{interval}"
    if check.smallest_detected is not None:
        yield f"smallest drop detected {words.number(check, check.smallest_detected)}"
    lost = [] if words.passes(check) else [row for row in gate.lost if row.measure == check.measure]
    if check.attribute is not None:
        part = (check.attribute, check.slice)
        lost = [row for row in lost if (row.attribute, row.slice) == part]
    if lost:
        yield f"lost most by {check.measure}:"
    for row in lost[:_LOST]:
        yield f"  {row.baseline_value:.3f} to {row.candidate_value:.3f}  {words.asked(row, _TEXT)}"
        if under := words.beside(row):
            yield f"    {under}"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text.translate(CONTROLS))
