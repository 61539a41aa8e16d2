"""Which query of a file is which of the golden set."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.golden.traffic import folded
from karat.workflows.workspace.known_queries import over, same_queries, shared_texts


def asked(texts: dict[str, str]) -> pl.DataFrame:
    schema = {"query_id": pl.String, "text": pl.String}
    return pl.DataFrame(list(texts.items()), schema=schema, orient="row")


WORDS = st.sampled_from(["door", "Door ", "wall", "WALL", "roof", ""])
QUERIES = st.dictionaries(st.sampled_from(["q1", "q2", "q3", "q1-2", "x"]), WORDS)


IDS = st.sampled_from(["q1", "q2", "q3", "x", "y"])


@FEW
@given(QUERIES, QUERIES, st.dictionaries(IDS, IDS))
def test_no_two_queries_become_one_through_what_was_imported(
    held: dict[str, str], file: dict[str, str], aliases: dict[str, str]
) -> None:
    plain = same_queries(asked(held), asked(file))
    ids = same_queries(asked(held), asked(file), aliases)
    assert list(ids) == list(file)
    assert len(set(ids.values())) == len(file)
    for query, text in file.items():
        if text or query in held:
            assert ids[query] == plain[query]
        elif ids[query] != query:
            assert ids[query] == aliases[query] in held


@FEW
@given(QUERIES, QUERIES)
def test_no_two_queries_become_one_and_the_same_file_finds_the_same_queries(
    held: dict[str, str], file: dict[str, str]
) -> None:
    there, given_ = asked(held), asked(file)
    ids = same_queries(there, given_)
    assert list(ids) == list(file)
    assert len(set(ids.values())) == len(file)
    keys = dict(zip(held, folded(list(held.values())), strict=True))
    for query, key in zip(file, folded(list(file.values())), strict=True):
        same = [each for each in held if keys[each] == key]
        if ids[query] in held and key:
            # What the golden set has under the id is this text, or no text yet.
            assert ids[query] in same or held[ids[query]] == ""
        elif key:
            # New, although the golden set has the text: others of the file took all that have it.
            assert all(each in ids.values() for each in same)
    # Put into the golden set, the file finds each of its queries again.
    after = held | {ids[query]: text or held.get(ids[query], "") for query, text in file.items()}
    again = same_queries(asked(after), given_)
    if all(file.values()):
        assert sorted(again.values()) == sorted(ids.values())


def test_queries_of_one_text_stay_apart() -> None:
    file = asked({"x": "door", "y": "DOOR", "z": "wall"})
    ids = same_queries(asked({"q1": "door"}), file)
    assert ids == {"x": "q1", "y": "y", "z": "z"}
    # One that has its own id and text there keeps it, wherever it stands in the file.
    assert same_queries(asked({"q1": "door", "y": "door"}), file)["x"] == "q1"
    assert same_queries(asked({"y": "door", "q1": "door"}), file)["x"] == "q1"
    (said,) = shared_texts(file, ids)
    assert said.startswith("queries 'x' and 'y' have the same text, ignoring case and white space")
    assert "they stay separate, as 'q1' and 'y'" in said
    many = {f"{way}{n}": f"text {n}" for n in range(9) for way in "ab"}
    told = shared_texts(asked(many), {query: query for query in many})
    assert len(told) == 4
    assert told[-1] == "and 6 more texts shared by several queries"


def test_what_is_said_now_goes_over_what_was_known() -> None:
    there = pl.DataFrame({"query_id": ["a", "b"], "text": ["A", "B"], "need": ["x", "y"]})
    given_ = pl.DataFrame({"query_id": ["b", "c"], "text": [None, "C"], "lang": ["de", None]})
    assert over(there, given_, "query_id").sort("query_id").to_dicts() == [
        {"query_id": "b", "text": "B", "lang": "de", "need": "y"},
        {"query_id": "c", "text": "C", "lang": None, "need": None},
    ]
