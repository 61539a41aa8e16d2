"""Errors are ready to print: what, where, the nearest choice, the fix."""

from __future__ import annotations

import pytest

from karat.errors import (
    InputError,
    KaratError,
    MissingExtra,
    UsageError,
    nearest,
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
