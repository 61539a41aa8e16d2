"""Ids that differ by how they are written."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import pytest

from karat.tables.id_spelling import likely_cause

JUDGED = {f"q{q}": [f"doc{q}{n}" for n in range(10, 20)] for q in range(20)}
NUMBERS = {f"q{q}": [str(100 * q + n) for n in range(1, 11)] for q in range(20)}

MORE = ", and by case, spaces, zeros, quotes or encoding"


def there(side: dict[str, list[str]], how: Callable[[str], str]) -> dict[str, list[str]]:
    return {query: [how(each) for each in ids] for query, ids in side.items()}


@pytest.mark.parametrize(
    ("judged", "how", "cause"),
    [
        (JUDGED, str.upper, "upper and lower case"),
        (JUDGED, lambda each: f" {each} ", "spaces around them"),
        (NUMBERS, lambda each: f"{each}.0", "a decimal point, as of numbers (7.0 for 7)"),
        (NUMBERS, lambda each: each.zfill(7), "leading zeros"),
        (JUDGED, lambda each: f"doc-{each[3:].zfill(9)}", "the text around a number"),
        (JUDGED, lambda each: each.replace("d", "%64"), "URL encoding"),
        (JUDGED, lambda each: each.replace("d", "ｄ"), "the Unicode form of letters"),
        (JUDGED, lambda each: f'"{each}"', "quotes or brackets around them"),
        (JUDGED, lambda each: repr(each.encode()), "quotes or brackets around them"),
        (
            JUDGED,
            lambda each: f'"{each.upper()}"',
            "several of case, spaces, zeros, quotes and encoding",
        ),
        (JUDGED, lambda each: f"index-7/{each}", "the prefix 'index-7/' of those in the run"),
        (NUMBERS, lambda each: f"d{each}", "the prefix 'd' of those in the run"),
        (JUDGED, lambda each: f"{each}.html", "the suffix '.html' of those in the run"),
        (JUDGED, lambda each: each[3:], "the prefix 'doc' of those in the judgments"),
        (
            JUDGED,
            lambda each: f"HTTP://{each.upper()}",
            f"the prefix 'http://' of those in the run{MORE}",
        ),
        (
            JUDGED,
            lambda each: f"{each}#{int(each[-1]) % 4}",
            "a chunk number at the end (collapse folds chunks into documents)",
        ),
    ],
)
def test_the_likely_cause_is_named(
    judged: dict[str, list[str]], how: Callable[[str], str], cause: str
) -> None:
    run = there(judged, how)
    found = likely_cause(run, judged)
    assert found is not None
    assert (found.cause, found.matched) == (cause, 200)
    assert (found.here, found.there) == (run["q0"][0], judged["q0"][0])


def test_other_ids_have_no_likely_cause() -> None:
    # Renumbered: the same kind of id, another document; by chance few queries share a number.
    renumbered = {q: [str((int(each) * 7919) % 2003) for each in ids] for q, ids in NUMBERS.items()}
    assert likely_cause(renumbered, NUMBERS) is None
    assert likely_cause(there(JUDGED, lambda each: f"{crc32(each.encode()):x}"), JUDGED) is None
    assert likely_cause({}, JUDGED) is None
    assert likely_cause(JUDGED, {}) is None
    # The numbers of parts are the same in all documents, and say nothing.
    parts = {q: [f"{name}#{n}" for n in range(5) for name in ("list", "dict")] for q in JUDGED}
    others = {q: [f"{name}#{n}" for n in range(5) for name in ("json", "csv")] for q in JUDGED}
    assert likely_cause(parts, others) is None


def test_a_tenth_of_the_ids_suffices() -> None:
    run = {query: [ids[0].upper(), *(f"x{n}" for n in range(9))] for query, ids in JUDGED.items()}
    found = likely_cause(run, JUDGED)
    assert found is not None
    assert (found.cause, found.matched) == ("upper and lower case", 20)
    fewer = run | {"q0": [f"x{n}" for n in range(10)]}
    assert likely_cause(fewer, JUDGED) is None
