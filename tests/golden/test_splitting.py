"""Parts by permanent random numbers."""

from __future__ import annotations

import pytest

from karat.errors import InputError, UsageError
from karat.golden.splitting import DEV, HELD_OUT, parts, read_share, split

IDS = [f"q{n}" for n in range(2000)]


def test_queries_that_are_added_move_no_other() -> None:
    few, many = parts(IDS[:50], salt="s"), parts(IDS, salt="s")
    assert all(many[query] == part for query, part in few.items())
    assert parts(reversed(IDS), salt="s") == many


def test_the_share_is_met_and_a_larger_one_only_adds_to_dev() -> None:
    half, most = parts(IDS, 0.5), parts(IDS, 0.8)
    dev = [query for query in IDS if half[query] == DEV]
    # Binomial: 2,000 x .5 with a standard deviation of 22.4; four of these are 90.
    assert abs(len(dev) - 1000) < 90
    assert all(most[query] == DEV for query in dev)
    # Another salt is another draw: about half of the queries are in the same part.
    other = parts(IDS, 0.5, salt="other")
    assert 900 < sum(other[query] == half[query] for query in IDS) < 1100


def test_one_part_is_known_for_good() -> None:
    # Computed once with BLAKE2b as written; another value would move the queries of every user.
    assert [parts([query])[query] for query in ("q1", "q2", "q3", "q4", "q5")] == [
        DEV,
        HELD_OUT,
        DEV,
        HELD_OUT,
        HELD_OUT,
    ]


def test_a_query_keeps_its_part_and_a_new_one_gets_its_own() -> None:
    first = split(dict.fromkeys(IDS[:20]), 0.5, "s", source="g")
    assert first.new == IDS[:20]
    assert (first.dev + first.held_out, first.dev) == (20, list(first.parts.values()).count(DEV))
    again = split({**first.parts, **dict.fromkeys(IDS[20:30])}, 0.9, "s", source="g")
    assert again.new == IDS[20:30]
    assert {query: again.parts[query] for query in first.parts} == first.parts


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, float("nan"), True, "half"])
def test_a_share_that_leaves_a_part_empty_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="leaves a part empty"):
        parts(IDS, share)


def test_another_attribute_called_part_is_not_overwritten() -> None:
    with pytest.raises(InputError, match=r"'part' is 'engine', neither dev nor held_out"):
        split({"q1": "engine"}, source="g")
    with pytest.raises(InputError, match="no queries"):
        split({}, source="g")


def test_shares_are_read_from_text() -> None:
    assert (read_share("0.7"), read_share("2/3")) == (0.7, 2 / 3)
    for text in ("x", "1/0", "", "1/2/3"):
        with pytest.raises(UsageError, match="is not a share"):
            read_share(text)
