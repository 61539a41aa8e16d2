"""Notes of a comparison: what is said beside verdicts, and when nothing is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from karat.tables import Queries
from karat.workflows.offline.compare import compare

QUERIES = [f"q{n:02}" for n in range(30)]
Ranking = Mapping[str, float]


def qrels(queries: list[str] = QUERIES) -> dict[str, dict[str, float]]:
    return {query: {"good": 1, "bad": 0, "dull": 0} for query in queries}


def ranked(*docs: str, queries: list[str] = QUERIES) -> dict[str, dict[str, float]]:
    """A run of these documents, best first, for every query."""
    return {query: {doc: -float(i) for i, doc in enumerate(docs)} for query in queries}


FIRST = ranked("good", "bad", "dull")
LAST = ranked("bad", "dull", "good")


def notes(old: Any, new: Any, measures: Any = "RR", **settings: Any) -> list[str]:
    return compare(qrels(), old, new, measures, **settings).notes


def those(found: list[str], word: str) -> list[str]:
    return [note for note in found if word in note]


# --- runs that end early ---


def test_a_run_that_ends_before_the_measure() -> None:
    deep = {query: {f"d{i}": -float(i) for i in range(12)} for query in QUERIES}
    found = notes(deep, {"short": FIRST}, ["P@10", "P@3", "RR"])
    assert those(found, "deeper") == [
        "short returns at most 3 documents per query, and P@10, RR look deeper"
    ]
    assert those(notes(deep, {"short": FIRST}, ["P@4"]), "deeper") == [
        "short returns at most 3 documents per query, and P@4 looks deeper"
    ]
    assert those(notes(ranked("good"), FIRST, ["P@2"]), "deeper") == [
        "baseline returns at most 1 document per query, and P@2 looks deeper"
    ]
    assert those(notes(deep, FIRST, ["P@3"]), "deeper") == []


def test_where_all_runs_end_alike_none_is_named() -> None:
    assert those(notes(FIRST, LAST, ["P@10", "RR"]), "deeper") == []
    # The longest answer counts: one of 3 documents, all others of 1.
    mostly = {**ranked("good"), "q07": FIRST["q07"]}
    assert those(notes(FIRST, mostly, ["RR"]), "deeper") == []


# --- ties ---

# good ties with bad: it stands first or second, so RR could be 1 or 1/2, by the ids it is 1/2 or 1.
TIED = {query: {"good": 2.0, "bad": 2.0, "dull": 1.0} for query in QUERIES}


def test_ties_are_told_with_what_they_could_make() -> None:
    [told] = those(notes(LAST, {"tied": TIED}, ["RR", "P@1", "P@2"]), "tied in score")
    # Two of three documents; P@2 has both of them anyhow.
    assert told.startswith(
        "tied: 67 % of the documents are tied in score; in another order "
        "RR could be 0.500 to 1.000 (and 1 more measure"
    )
    # LAST has RR 1/3, below all orders of the ties.
    assert those(notes(LAST, {"tied": TIED}, "RR"), "alone could reverse") == []
    assert those(notes(TIED, {"last": LAST}, "RR"), "alone could reverse") == []  # nor if worse
    # Ties below the cutoff or that move no second digit are not worth a word.
    below = {query: {"good": 3.0, "bad": 2.0, "dull": 2.0} for query in QUERIES}
    assert those(notes(LAST, below, "RR"), "tied") == []


def test_ties_whose_order_alone_could_turn_a_verdict() -> None:
    middle = {query: (FIRST if place % 2 else LAST)[query] for place, query in enumerate(QUERIES)}
    # Half 1 and half 1/3: a mean RR of 2/3, and the ties make 1/2 to 1; P@1 1/2, and 0 to 1.
    found = compare(qrels(), middle, {"tied": TIED}, ["RR", "P@1"], test="t")
    told = [row.measure for row in found.differences if row.verdict in ("better", "worse")]
    assert told
    assert those(found.notes, "alone could reverse") == [
        f"the order of tied documents alone could reverse tied by {', '.join(told)}"
    ]
    back = compare(qrels(), TIED, {"new": middle}, ["RR", "P@1"], test="t")
    assert those(back.notes, "alone could reverse") == [
        f"the order of tied documents alone could reverse new by {', '.join(told)}"
    ]
    # A verdict that is none cannot be turned.
    same = compare(qrels(), TIED, {"again": TIED}, "RR")
    assert same.differences[0].verdict == "identical"
    assert those(same.notes, "alone could reverse") == []


# --- few queries, corrections, intervals ---


@pytest.mark.parametrize(("n", "told"), [(24, True), (25, False)])
def test_few_queries(n: int, told: bool) -> None:
    few = QUERIES[:n]
    found = compare(
        qrels(few),
        ranked("good", "bad", queries=few),
        ranked("bad", "good", queries=few),
        "RR",
    ).notes
    expected = [f"fewer than 25 queries ({n}): intervals are unreliable"]
    assert those(found, "fewer than 25") == (expected if told else [])


def test_corrections_are_told_where_there_are_some() -> None:
    # RR and P@1 differ, P@3 does not and is no comparison that chance could have won.
    found = notes(FIRST, LAST, ["RR", "P@1", "P@3"])
    [holm] = those(found, "Holm")
    assert holm.endswith("against the baseline, corrected by Holm over 2 comparisons")
    assert len(those(found, "intervals are not corrected")) == 1
    assert those(notes(FIRST, LAST, ["RR", "P@3"]), "Holm") == []
    assert those(found, "Benjamini") == []
    about = Queries(
        pl.DataFrame({"query_id": QUERIES, "kind": ["a" if q < "q15" else "b" for q in QUERIES]})
    )
    [sliced] = those(notes(FIRST, LAST, "RR", queries=about, by="kind"), "Benjamini")
    assert sliced.startswith("p-values of slices are corrected by Benjamini and Hochberg within")


def test_bca_intervals_name_their_resamples_and_seed() -> None:
    found = notes(FIRST, LAST, "RR", interval="bca", seed=7)
    assert those(found, "BCa") == ["BCa bootstrap intervals from 2,000 resamples, seed 7"]
    assert those(notes(FIRST, LAST, "RR", seed=7), "BCa") == []


# --- the unjudged ---


def test_what_the_unjudged_are_taken_to_be() -> None:
    [told] = those(notes(FIRST, LAST, "RR", scale=(0, 3)), "unjudged bounds cover")
    assert "all grades from 0 to 3 of documents that either run returned" in told
    # Bounds of infAP are not known, and condensed runs have no unjudged.
    assert those(notes(FIRST, LAST, "infAP"), "unjudged bounds cover") == []
    assert those(notes(FIRST, LAST, "RR", judged_only=True), "unjudged bounds cover") == []


def test_nothing_to_judge_next_is_said_first() -> None:
    # Every document is judged.
    found = notes(FIRST, LAST, "RR", judge_next=3)
    assert found[0].startswith(
        "no grade of an unjudged document would change RR, so there is nothing to judge next"
    )
    assert those(notes(FIRST, LAST, "RR"), "judge next") == []
    unknown = ranked("new", "good")
    assert those(notes(FIRST, unknown, "P@1", judge_next=3), "judge next") == []


def test_a_query_that_failed_in_one_run_turns_nothing() -> None:
    # Without a tie: the good document stands 1st on 15 queries and 4th on 15; the candidate fails
    # on the first and has it 3rd on the others.
    queries = [f"q{n:02}" for n in range(30)]
    qrels = {query: {"good": 1} for query in queries}

    def ranked(place: int) -> dict[str, float]:
        return {("good" if at == place else f"x{at}"): -float(at) for at in range(1, 6)}

    old = {query: ranked(1 if n < 15 else 4) for n, query in enumerate(queries)}
    new = {query: None if n < 15 else ranked(3) for n, query in enumerate(queries)}
    found = compare(qrels, old, new, "RR")
    assert found.differences[0].verdict == "better"
    assert not any("tied documents" in note for note in found.notes)


def test_runs_cut_at_one_depth_end_together() -> None:
    qrels = {"q": {"d1": 1}}
    long, short = ({"q": {f"d{n}": -float(n) for n in range(1, most)}} for most in (31, 14))
    assert any("returns at most 13" in note for note in compare(qrels, long, short, "AP").notes)
    found = compare(qrels, long, short, "AP", depth=10)
    assert not any("returns at most" in note for note in found.notes)
