"""Errors are ready to print: what, where, the nearest choice, the fix."""

from __future__ import annotations

import copy
import pickle

import pytest

from karat.errors import (
    Advice,
    InputError,
    KaratError,
    MissingExtra,
    UsageError,
    nearest,
    on_page,
)


def test_where_what_and_fix() -> None:
    error = InputError(
        "score 'abc' is not a number", file="runs/bm25.trec", line=7, query="303", fix="mend it"
    )
    assert str(error) == (
        "runs/bm25.trec, line 7: score 'abc' is not a number (query 303)\n  fix: mend it"
    )
    assert str(InputError("it is empty")) == "it is empty"
    assert str(InputError("it is empty", file="a.qrels")) == "a.qrels: it is empty"
    assert str(InputError("it is empty", line=0)) == "line 0: it is empty"


def test_a_line_can_be_filled_in_later() -> None:
    error = InputError("bad", file="f", query="q", doc_id="d", fix="x").at_line(3)
    assert str(error) == "f, line 3: bad (query q)\n  fix: x"
    assert (error.line, error.doc_id, error.query) == (3, "d", "q")


def test_the_nearest_choices_are_named() -> None:
    assert str(UsageError("no measure 'X'", nearest=["A", "B"])) == (
        "no measure 'X'; did you mean A or B?"
    )
    assert str(UsageError("no", fix="yes")) == "no\n  fix: yes"


def test_a_missing_extra_says_how_to_get_it() -> None:
    error = MissingExtra("duckdb", "duckdb", "reading DuckDB tables")
    assert str(error) == (
        "reading DuckDB tables needs the package duckdb\n  fix: pip install 'karat[duckdb]'"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KaratError("x"), 4),
        (InputError("x"), 2),
        (UsageError("x"), 2),
        (MissingExtra("a", "b", "c"), 2),
    ],
)
def test_exit_codes(error: KaratError, code: int) -> None:
    assert isinstance(error, KaratError)
    assert error.exit_code == code


def test_nearest_looks_past_case_and_gives_up_on_strangers() -> None:
    assert nearest("NDGC", ["nDCG", "AP", "DCG"])[0] in {"nDCG", "DCG"}
    assert nearest("ap", ["AP", "MAP"], 1) == ["AP"]
    assert nearest("zzz", ["nDCG", "AP"]) == []
    assert nearest("x", []) == []


def test_each_door_says_its_own() -> None:
    advice = Advice("karat golden pool /tmp/a", page="upload /tmp/a")
    error = InputError("odd", file="/tmp/a", fix=advice)
    assert str(error) == "/tmp/a: odd\n  fix: karat golden pool /tmp/a"
    assert on_page(error) == "/tmp/a: odd\n  fix: upload /tmp/a"
    assert on_page(UsageError("no", nearest=["A"], fix=advice)) == (
        "no; did you mean A?\n  fix: upload /tmp/a"
    )
    assert on_page(advice) == "upload /tmp/a"
    for same in (UsageError("no", fix="yes"), KaratError("no"), "keep one of them"):
        assert on_page(same) == str(same)


def test_advice_speaks_of_another_name_at_both_doors() -> None:
    named = Advice("karat golden pool /tmp/a", page="upload /tmp/a").replace("/tmp/a", "mine")
    assert (named, on_page(named)) == ("karat golden pool mine", "upload mine")


def test_advice_is_copied_and_pickled_whole() -> None:
    """As ``dataclasses.asdict`` copies the fix of a finding."""
    advice = Advice("type this", page="press that")
    for again in (copy.deepcopy(advice), pickle.loads(pickle.dumps(advice))):
        assert (str(again), again.page) == ("type this", "press that")
