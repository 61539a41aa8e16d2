"""The shelf: what each arm shows for a query's own words is its run, and other words are near."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.online.simulate.shelf import DEPTH, Shelf, stock
from karat.online.simulate.wording import OWN, RESPELL, WORDINGS
from karat.tables import Qrels, Queries, Run


def test_own_words_find_what_the_run_has(shelf: Shelf) -> None:
    assert shelf.arms == ("near", "far")
    assert shelf.texts[OWN] == "copy a file"
    shown = shelf.documents.gather(shelf.found[0, 0, OWN, :25].astype(np.int64)).to_list()
    assert shown == [f"d1-{i}" for i in range(25)]
    assert (shelf.found[0, 0, OWN, 25:] == -1).all()
    # Grades 3, 2 and 1 of at most 3: (2^3-1)/7 = 1, 3/7, 1/7.
    gain = shelf.gain[0, 0, OWN]
    assert gain[[0, 3, 7]] == pytest.approx([1, 3 / 7, 1 / 7])
    assert np.count_nonzero(gain) == 3
    far = shelf.gain[1, 0, OWN]
    assert far[[9, 6, 2]] == pytest.approx([1, 3 / 7, 1 / 7])
    assert shelf.matched[:, 0, OWN].tolist() == [25, 10]
    assert (shelf.found[:, 4] == -1).all()  # q5: in no run
    assert not shelf.matched[:, 4].any()
    assert shelf.weight.tolist() == [0.2] * 5
    assert shelf.attributes["kind"].to_list() == ["task", "task", "task", "word", "none"]


def test_other_words_show_the_same_documents_in_another_order(shelf: Shelf) -> None:
    for wording in range(1, len(WORDINGS)):
        for query in range(4):
            shown = shelf.found[0, query, wording]
            if shown[0] >= 0:
                assert sorted(shown) == sorted(shelf.found[0, query, OWN])
            else:
                assert shelf.matched[0, query, wording] == 0
    # Nothing before the fallback, and something behind it; never the other way round.
    assert ((shelf.raw == shelf.matched) | (shelf.raw == 0)).all()


def test_a_misspelling_finds_nothing_at_times() -> None:
    queries = Queries(
        pl.DataFrame({"query_id": [f"q{i}" for i in range(2_000)], "text": ["word"] * 2_000})
    )
    run = Run.from_dict({f"q{i}": {"a": 2.0, "b": 1.0} for i in range(2_000)}, name="one")
    made = stock(
        Qrels.from_dict({"q0": {"a": 1.0}}), [run], np.random.default_rng(2), queries=queries
    )
    nothing = (made.raw[0, :, RESPELL] == 0).mean()
    assert abs(nothing - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 2_000)
    relaxed = (made.matched[0, :, RESPELL] > 0)[made.raw[0, :, RESPELL] == 0].mean()
    assert abs(relaxed - 0.4) < 5 * np.sqrt(0.4 * 0.6 / 600)
    assert made.found.shape == (1, 2_000, len(WORDINGS), DEPTH)


def test_without_queries_ids_are_typed_and_weights_count() -> None:
    run = Run.from_dict({"blue car": {"a": 1.0}, "red car": {"b": 1.0}}, name="one")
    qrels = Qrels.from_dict({"blue car": {"a": 1.0}, "red car": {"b": 0.0}})
    made = stock(qrels, [run], np.random.default_rng(1), weight={"blue car": 3, "red car": 1})
    assert made.texts[0] == "blue car"
    assert made.weight.tolist() == [0.75, 0.25]


def test_what_cannot_be_asked_is_said() -> None:
    run = Run.from_dict({"q1": {"a": 1.0}}, name="one")
    rng = np.random.default_rng(1)
    with pytest.raises(InputError, match="no query of one"):
        stock(Qrels.from_dict({"other": {"a": 1.0}}), [run], rng)
    with pytest.raises(InputError, match="weigh 0"):
        stock(Qrels.from_dict({"q1": {"a": 1.0}}), [run], rng, weight={"q1": 0.0})
    queries = Queries(pl.DataFrame({"query_id": ["q1"], "text": ["a"], "kind": ["b"]}))
    with pytest.raises(UsageError, match="kind"):
        stock(
            Qrels.from_dict({"q1": {"a": 1.0}}), [run], rng, queries=queries, attributes=["kinds"]
        )
