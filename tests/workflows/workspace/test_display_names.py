"""Naming: where a file lies is nobody's business, and no other file is taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import InputError, UsageError
from karat.workflows.workspace.workspace import display_name

HERE = Path("/w/x/up.csv")


def told(error: Exception, path: Path = HERE, called: str = "mine.csv") -> Exception:
    """The error as it is told of a file, that lies in /w/x."""
    with pytest.raises(type(error)) as caught, display_name(path, called, Path("/w")):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("/w/x/up.csv is odd", "mine.csv is odd"),
        ("see '/w/x/up.csv', and /w/x/up.csv.", "see 'mine.csv', and mine.csv."),
        ("/w/x/up.csv/part", "mine.csv/part"),
        ("there is /w/x/other.csv in /w/x", "there is other.csv in the folder"),
        ("write to /w.", "write to the folder."),
        # Others, whose names begin or end alike.
        ("/w/x/up.csv.gz is another", "up.csv.gz is another"),
        ("/w/xy and /w/x-1 are others", "xy and x-1 are others"),
        ("/www/a and /v/w/x and /w.d", "/www/a and /v/w/x and /w.d"),
    ],
)
def test_only_the_file_itself_is_renamed(said: str, what: str) -> None:
    assert str(told(InputError(said))) == what
    assert str(told(UsageError(said))) == what


def test_a_name_within_another_is_another() -> None:
    error = told(InputError("a.csv and max.csv and max/a.csv", file="max.csv"), Path("a.csv"), "b")
    assert str(error) == "max.csv: b and max.csv and max/b"


def test_a_name_may_hold_any_character() -> None:
    assert str(told(UsageError("no /w/x/up.csv"), called="a\\1\\g<0>")) == "no a\\1\\g<0>"


def test_where_it_stands_and_the_fix_are_kept() -> None:
    advice = "iconv /w/x/up.csv"
    error = told(
        InputError("odd", file="/w/x/up.csv (part 2)", line=3, query="q", doc_id="d", fix=advice)
    )
    assert isinstance(error, InputError)
    assert (error.file, error.line, error.query, error.doc_id) == ("mine.csv", 3, "q", "d")
    assert str(error) == "mine.csv, line 3: odd (query q)\n  fix: iconv mine.csv"


def test_an_error_of_something_else_stays_what_it_is() -> None:
    class Kind(UsageError):
        """A kind of its own."""

    assert isinstance(told(Kind("nothing of files")), Kind)
