"""Annotations: one line each, and no name can start a command of its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.reports.release.gate import Failed, to_github
from karat.tables.release.gate import EXIT_CODES, Check, Gate, GateVerdict, KnownFailure

VERDICTS = list(EXIT_CODES)
COMMAND = re.compile(r"::(error|warning|notice) (?:file=([^:,]*),)?title=([^:,]*)::(.*)")


def gate_of(*checks: Check, verdict: GateVerdict = "fail", policy: str = "gate.toml") -> Gate:
    known = [
        KnownFailure("q1", "RR", 1.0, passes=True),
        KnownFailure("q2", "RR", 0.0, passes=False),
    ]
    return Gate(verdict, "old", "new", policy, list(checks), known_failures=known)


def lines(gate: Gate) -> list[str]:
    return to_github(gate).removesuffix("\n").split("\n")


def test_escaping_is_that_of_the_documentation() -> None:
    # % %25, line feed %0A; in properties also : %3A and , %2C
    check = Check("drops by at most 5%", "fail", "a: b,\nc", attribute="class", slice="x")
    line = lines(gate_of(check, policy="ci: a,b/gate.toml"))[0]
    assert line == (
        "::error file=ci%3A a%2Cb/gate.toml,title=karat%3A fail::"
        "drops by at most 5%25 (class x): a: b,%0Ac"
    )


@pytest.mark.parametrize("verdict", VERDICTS)
def test_levels(verdict: GateVerdict) -> None:
    found = lines(gate_of(Check("rule", verdict, "why"), verdict=verdict))
    level = {"pass": "notice", "cannot_tell": "warning"}.get(verdict, "error")
    assert found[0].startswith(f"::{level} ")
    assert len(found) == 2  # and the known failure that passes
    assert found[1].endswith("::q1 passes now (RR 1.000): remove it from the list")


def test_nothing_checked_is_an_error() -> None:
    [line, _known] = lines(gate_of(verdict="error"))
    assert line.startswith("::error ")
    assert line.endswith("::nothing was checked")


def test_a_policy_that_is_no_file_names_none() -> None:
    assert "file=" not in to_github(gate_of(policy="policy"))


def test_github_shows_ten_of_a_kind_so_the_tenth_counts_the_rest() -> None:
    checks = [Check(f"rule {n}", "fail", "why") for n in range(12)]
    found = [line for line in lines(gate_of(*checks)) if line.startswith("::error")]
    assert len(found) == 10
    assert found[-1].endswith("title=karat%3A 3 more::fail: rule 9%0Afail: rule 10%0Afail: rule 11")
    assert len(lines(gate_of(*checks[:10]))) == 11


@given(name=st.text(), verdict=st.sampled_from(VERDICTS))
def test_any_text_stays_within_its_line(name: str, verdict: GateVerdict) -> None:
    gate = gate_of(
        Check(name, verdict, name, slice=name, attribute=name), verdict=verdict, policy=name
    )
    for line in to_github(gate).removesuffix("\n").split("\n"):
        assert COMMAND.fullmatch(line), line
        assert "\r" not in line


def test_an_error_in_place_of_a_gate_is_one_line() -> None:
    assert to_github(Failed("x, line 1: 5 % is wrong\n  fix: y", 4)) == (
        "::error title=karat%3A error::x, line 1: 5 %25 is wrong%0A  fix: y\n"
    )
