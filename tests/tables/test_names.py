"""Names: one rule, for all that people name."""

from __future__ import annotations

import pytest

from karat.errors import UsageError
from karat.tables.names import check_name, is_plain

GOOD = [
    "bm25",
    "lab/model",
    "Zoë",
    "..two",
    "a..b",
    "v1.0",
    "красный",
    "two words",
    ".hidden",
    "a\\b",
]
BAD = [
    "",
    "  ",
    "x" * 51,
    "user\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe",
    "\N{RIGHT-TO-LEFT ISOLATE}a",
    "a\nb",
    "a\tb",
    "a\x7fb",
    "a\N{ZERO WIDTH SPACE}b",
    "\ud800",
    ".",
    "..",
    "../../etc/passwd",
    "a/../b",
    "a/./b",
    "a//b",
    "/etc/passwd",
    "a/",
    "..\\..\\windows",
]


@pytest.mark.parametrize("name", GOOD)
def test_names_that_can_be_read_are_good(name: str) -> None:
    check_name(name, "a run", longest=50)
    assert is_plain(name)


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_or_is_a_path_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="the name of a run") as refused:
        check_name(name, "a run", longest=50)
    assert str(refused.value).isascii() or str(refused.value).replace("\n", "").isprintable()


def test_where_a_name_is_one_part_of_an_address_it_has_no_slash() -> None:
    check_name("lab-model", "a golden set", longest=50, slashes=False)
    with pytest.raises(UsageError, match="the name of a golden set cannot be a path: 'lab/model'"):
        check_name("lab/model", "a golden set", longest=50, slashes=False)
