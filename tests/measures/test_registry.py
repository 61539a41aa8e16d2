"""Registering one's own measure."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from karat.errors import UsageError
from karat.measures import Entry, Evidence, entries, measure, parse, reduce
from karat.measures.parameters import REL
from karat.tables import Qrels, Run

FIELDS: dict[str, Any] = {
    "title": "share of queries with nothing bad",
    "formula": "1 if no judged non-relevant document was returned",
    "says": "how often nothing bad was shown",
    "source": "this test",
    "low": 0,
    "high": 1,
    "undefined": "never, where there are judgments",
}


def test_ones_own_measure_is_named_and_computed_like_the_others(
    own_registry: dict[str, Entry],
) -> None:
    @measure(symbol="Clean", parameters=(REL,), cutoff="optional", aliases=("Spotless",), **FIELDS)
    def clean(evidence: Evidence, *, k: float | None, rel: float) -> np.ndarray:
        bad = evidence.judged & ~evidence.relevant(rel) & (evidence.rank <= (k or np.inf))
        return (evidence.per_query(bad) == 0).astype(np.float64)

    evidence = reduce(
        Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}),
        Qrels.from_dict({"q": {"a": 2, "c": 0}}),
    )
    assert parse("clean")(evidence).tolist() == [0]
    assert parse("Clean@2")(evidence).tolist() == [1]
    assert parse("Clean:rel=3@2")(evidence).tolist() == [0]
    assert str(parse("spotless(rel=2)@2")) == "Clean(rel=2)@2"
    assert entries()[-1].symbol == "Clean"
    assert parse("Ceiling(Clean@1, depth=3)")(evidence).tolist() == [1]
    with pytest.raises(UsageError, match="did you mean Clean"):
        parse("Cleen")


def test_the_old_name_of_a_field_is_read_with_a_warning(own_registry: dict[str, Entry]) -> None:
    with pytest.warns(FutureWarning, match="swaps is now monotone_in_swaps"):

        @measure(symbol="Older", swaps=True, **FIELDS)
        def older(evidence: Evidence) -> np.ndarray:
            return np.zeros(len(evidence.query_ids))

    assert own_registry["older"].monotone_in_swaps


def test_it_is_gone_after() -> None:
    with pytest.raises(UsageError, match="unknown measure 'Clean'"):
        parse("Clean")


@pytest.mark.parametrize("symbol", ["ndcg", "mrr", "AP"])
def test_a_taken_name_is_refused(symbol: str, own_registry: dict[str, Entry]) -> None:
    with pytest.raises(UsageError, match=f"the name '{symbol}' is taken by"):

        @measure(symbol=symbol, **FIELDS)
        def another(evidence: Evidence) -> np.ndarray:
            return np.ones(evidence.n)


def test_a_taken_alias_registers_nothing(own_registry: dict[str, Entry]) -> None:
    before = dict(own_registry)
    with pytest.raises(UsageError, match="the name 'MAP' is taken by AP"):

        @measure(symbol="Mine", aliases=("MAP",), **FIELDS)
        def mine(evidence: Evidence) -> np.ndarray:
            return np.ones(evidence.n)

    assert own_registry == before


@pytest.mark.parametrize("symbol", ["", "my measure", "P@5", "a-b", "5P"])
def test_a_symbol_is_letters_and_digits(symbol: str, own_registry: dict[str, Entry]) -> None:
    with pytest.raises(UsageError, match="letters and digits only"):

        @measure(symbol=symbol, **FIELDS)
        def odd(evidence: Evidence) -> np.ndarray:
            return np.ones(evidence.n)


def test_names_of_the_families_are_taken_before_they_are_loaded() -> None:
    # A plug-in may register before anything was parsed, when no family is loaded yet.
    script = (
        "from karat.measures import measure, parse\n"
        "from karat.errors import UsageError\n"
        "try:\n"
        "    measure(symbol='P', title='', formula='', says='', source='', low=0, high=1,\n"
        "            undefined='')(lambda evidence: None)\n"
        "except UsageError as error:\n"
        "    print(error)\n"
        "print(parse('P@5').entry.title)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "the name 'P' is taken by P (precision)\nprecision\n"
