"""Laws every registered measure keeps, read from its entry: range, direction, undefined.

A law runs over all measures at once on one random set of rankings, so that a new measure is
held to it by being registered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.measures import Entry, Evidence, Measure, entries, parse, reduce
from karat.measures.entry import REQUIRED
from karat.measures.parameters import gain_of
from karat.measures.ties import perfectly_reranked
from karat.tables import Qrels, Run

ROUNDING = 1e-12
TWICE = settings(max_examples=3 if settings.default.max_examples <= 25 else 25)
"""For laws that compute each measure twice and over: 3 examples, 25 with --deep."""
_CUTOFFS: dict[str, tuple[str, ...]] = {
    "none": ("",),
    "optional": ("", "@1", "@3", "@10"),
    "required": ("@1", "@3", "@10"),
    "recall": ("@0", "@0.3", "@0.7", "@1"),
    "multiple": ("@0.5", "@1", "@2"),
}
# Values worth trying of each parameter; no entry may have one that is not listed here. Gains rise
# with the grade: "better" is by grade in these laws, and in Ceiling.
_SETTINGS: dict[str, tuple[str, ...]] = {
    "rel": ("rel=2", "rel=0.5"),
    "gain": ("gain=exp", "gain={0.5: 1, 1: 2, 2: 7, 3: 9}"),
    "discount": ("discount=jk, base=2", "discount=jk, base=3.5"),
    "base": (),
    "rounding": ("rounding=nearest", "rounding=trec9"),
    "beta": ("beta=2", "beta=0.5"),
    "max": ("max=3", "max=5"),
    "p": ("p=0.5", "p=0.95"),
    "alpha": ("alpha=0", "alpha=0.3", "alpha=1"),
}
_INSIDE = ("nDCG", "nDCG@3", "AP", "AP@3", "RR@3", "P@3", "Bpref", "IPrec@0.5", "SetF")
_INSIDE += ("ERR@3", "RBP(p=0.8)", "Compat")


def variants(entry: Entry) -> list[Measure]:
    """The measure at several cutoffs, and with each of its parameters at several values."""
    names = [parameter.name for parameter in entry.parameters]
    if "depth" in names:
        return [parse(f"{entry.symbol}({of}, depth={d})") for of in _INSIDE for d in (2, 5)]
    if "of" in names:
        return [parse(f"{entry.symbol}({of})") for of in _INSIDE]
    needed = [p.name for p in entry.parameters if p.default is REQUIRED]
    said = "".join(f"{_SETTINGS[name][0]}, " for name in needed)
    inside = [
        f"({said}{setting})" for name in names if name not in needed for setting in _SETTINGS[name]
    ]
    inside += [f"({setting})" for name in needed for setting in _SETTINGS[name]] or [""]
    return [parse(entry.symbol + i + at) for i in inside for at in _CUTOFFS[entry.cutoff]]


MEASURES = [measure for entry in entries() for measure in variants(entry)]
# What is better when more relevant documents stand higher.
# Not so for novelty, which a better document may lack, nor for Accuracy@k, whose pairs are others
# when a document comes into the top k.
DIVERSE = {"alphanDCG", "ERRIA", "StRecall"}
BETTER_HIGHER = [
    measure
    for measure in MEASURES
    if measure.entry.direction == "higher"
    and measure.entry.symbol not in DIVERSE
    and (measure.entry.symbol != "Accuracy" or measure.cutoff is None)
]


@dataclass(frozen=True)
class Set:
    """Rankings (documents by rank), and grades."""

    rankings: Mapping[str, list[str]]
    grades: Mapping[str, Mapping[str, float]]

    def evidence(self) -> Evidence:
        """Reduced; scores fall with the rank, none tied."""
        scores = {
            query: {doc: -float(rank) for rank, doc in enumerate(docs, 1)}
            for query, docs in self.rankings.items()
        }
        return reduce(Run.from_dict(scores), with_subtopics(self.grades))


DOCS = tuple(f"d{number}" for number in range(9))
SUBTOPICS = {doc: {"abc"[place % 3], "def"[place // 3]} for place, doc in enumerate(DOCS)}


def with_subtopics(
    grades: Mapping[str, Mapping[str, float]], of: Mapping[str, set[str]] = SUBTOPICS
) -> Qrels:
    """Each document at its grade for two subtopics, so that measures of diversity work."""
    rows = [
        (query, subtopic, doc, grade)
        for query, judged in grades.items()
        for doc, grade in judged.items()
        for subtopic in sorted(of[doc])
    ]
    columns = ["query_id", "subtopic", "doc_id", "grade"]
    return Qrels(pl.DataFrame(rows, schema=columns, orient="row"))


GRADES = st.sampled_from((-1.0, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 3.0))
JUDGED = st.dictionaries(st.sampled_from(DOCS), GRADES, min_size=1)


@st.composite
def sets(draw: st.DrawFn) -> Set:
    """A few queries, each with judgments and a ranking that may be empty."""
    grades = {f"q{index}": draw(JUDGED) for index in range(draw(st.integers(1, 4)))}
    rankings = {query: draw(st.lists(st.sampled_from(DOCS), unique=True)) for query in grades}
    return Set(rankings, grades)


def best_first(grades: Mapping[str, float]) -> list[str]:
    """The judged documents as a perfect system returns them."""
    return sorted(grades, key=lambda doc: -grades[doc])


def undefined(measure: Measure, evidence: Evidence) -> np.ndarray:
    """Where the entry says that there is no value; shape (n,)."""
    setting, text = measure.settings, measure.entry.undefined
    if text.startswith("never"):
        return np.zeros(evidence.n, np.bool_)
    if text == "where the inner measure is undefined for the condensed list":
        return undefined(setting["of"], evidence.only_judged())
    if text == "no document of a grade above 0":
        return evidence.of_ideals(evidence.ideal_grade > 0) == 0
    if text == "no relevant document is retrieved, or no other document":
        looked_at = evidence.to_depth(measure.depth or 10**9)
        found = looked_at.per_query(looked_at.relevant(setting["rel"]))
        return (found == 0) | (found == looked_at.returned)
    if text == "where the inner measure is":
        return undefined(
            setting["of"], perfectly_reranked(evidence, evidence.grade, setting["depth"])
        )
    if text == "nothing was returned":
        return evidence.returned == 0
    if text == "no document with a gain above 0":
        gained = gain_of(evidence.ideal_grade, setting["gain"])
        return evidence.of_ideals(gained > 0) == 0
    assert text.startswith("no relevant document"), f"{measure.entry.symbol}: {text!r} has no law"
    none = evidence.num_rel(setting["rel"]) == 0
    if "a multiple of R below one rank" in text:
        return none | (np.floor(measure.cutoff * evidence.num_rel(setting["rel"]) + 0.9) == 0)
    return none


# --- for every measure ---


@FEW
@given(sets())
def test_values_lie_in_the_range_and_are_undefined_only_as_said(case: Set) -> None:
    evidence = case.evidence()
    for measure in MEASURES:
        values = measure(evidence)
        assert values.shape == (evidence.n,), measure
        missing = np.isnan(values)
        assert (missing == undefined(measure, evidence)).all(), (measure, values)
        low, high = measure.entry.low, measure.entry.high
        assert (values[~missing] >= low).all(), (measure, values)
        assert high is None or (values[~missing] <= high + ROUNDING).all(), (measure, values)


@FEW
@given(sets())
def test_without_hits_the_value_is_0_or_undefined(case: Set) -> None:
    strangers = {query: ["x1", "x2"][: len(docs)] for query, docs in case.rankings.items()}
    evidence = Set(strangers, case.grades).evidence()
    for measure in MEASURES:
        if measure.entry.symbol in {"NumRet", "NumRel", "NumQ", "IDCG", "RBPresid"}:
            continue  # these count what is there, or not known, whatever was found
        values = measure(evidence)
        missing = undefined(measure, evidence)
        assert (values[~missing] == 0).all(), (measure, values)
        assert np.isnan(values[missing]).all(), (measure, values)


@FEW
@given(st.dictionaries(st.sampled_from(("q1", "q2", "q3")), JUDGED, min_size=1))
def test_a_perfect_ranking_scores_exactly_1(grades: dict[str, dict[str, float]]) -> None:
    perfect = {query: best_first(judged) for query, judged in grades.items()}
    evidence = Set(perfect, grades).evidence()
    for measure in MEASURES:
        whole = measure.entry.symbol in {"AP", "GMAP"} and measure.cutoff is None
        ones = {"nDCG", "Rprec", "Rcap", "Bpref", "IPrec11", "Compat", "Accuracy"}
        if whole or measure.entry.symbol in ones:
            values = measure(evidence)
            assert (np.isnan(values) | (np.abs(values - 1) < ROUNDING)).all(), (measure, values)
            if measure.entry.symbol in {"nDCG", "AP", "Rprec"}:
                assert (values[~np.isnan(values)] == 1).all(), (measure, values)


@FEW
@given(sets(), st.data())
def test_a_relevant_document_moved_up_lowers_nothing(case: Set, data: st.DataObject) -> None:
    query = data.draw(st.sampled_from(sorted(case.rankings)))
    grade_of = {doc: case.grades[query].get(doc, -math.inf) for doc in DOCS}
    ranking = case.rankings[query]
    can_rise = [
        place
        for place in range(1, len(ranking))
        if grade_of[ranking[place]] > max(grade_of[ranking[place - 1]], 0)
    ]
    if not can_rise:
        return
    place = data.draw(st.sampled_from(can_rise))
    above, below = ranking[place - 1 : place + 1]
    swapped = [*ranking[: place - 1], below, above, *ranking[place + 1 :]]
    before = case.evidence()
    after = Set({**case.rankings, query: swapped}, case.grades).evidence()
    for measure in BETTER_HIGHER:
        pooled_above = math.isfinite(grade_of[above]) and grade_of[above] < 0
        if pooled_above and "infAP" in str(measure):
            continue  # a pooled, unjudged document above is worth part of a relevant one to infAP
        old, new = measure(before), measure(after)
        assert (np.isnan(old) == np.isnan(new)).all(), measure
        assert (np.isnan(old) | (new >= old - ROUNDING)).all(), (measure, old, new)


@given(sets(), st.data())
@TWICE
def test_names_and_the_order_of_queries_do_not_matter(case: Set, data: st.DataObject) -> None:
    # New names in the same order by bytes: ties, which go by name, stay as they are.
    new_doc = {doc: f"é{doc}/x" for doc in DOCS}
    queries = sorted(case.grades)
    new_query = dict(zip(queries, ("10", "2", "a", "é"), strict=False))
    levels = st.sampled_from((1.0, 2.0, 3.0))
    scores = {q: {doc: data.draw(levels) for doc in docs} for q, docs in case.rankings.items()}
    order = data.draw(st.permutations(queries))
    renamed = {new_query[q]: {new_doc[d]: s for d, s in scores[q].items()} for q in order}
    grades = {
        new_query[q]: {new_doc[d]: g for d, g in reversed(case.grades[q].items())} for q in order
    }
    before = reduce(Run.from_dict(scores), with_subtopics(case.grades))
    also = {new_doc[doc]: of for doc, of in SUBTOPICS.items()}
    after = reduce(Run.from_dict(renamed), with_subtopics(grades, also))
    for measure in MEASURES:
        assert measure(before).tobytes() == measure(after).tobytes(), measure


@FEW
@given(sets(), st.integers(1, 4))
def test_unjudged_documents_at_the_end_change_no_ranked_measure(case: Set, more: int) -> None:
    longer = {
        query: [*docs, *(f"x{number}" for number in range(more))]
        for query, docs in case.rankings.items()
    }
    before, after = case.evidence(), Set(longer, case.grades).evidence()
    of_the_set = {"NumRet", "SetP", "SetF", "SetAP", "SetRcap", "Compat", "Accuracy", "RBPresid"}
    for measure in MEASURES:
        inner = measure.settings.get("of", measure)
        condensed = measure.entry.symbol == "Condensed"
        if inner.entry.symbol in of_the_set and not condensed:
            continue  # these go by all that was returned
        old, new = measure(before), measure(after)
        same = np.isnan(old) & np.isnan(new) | (old == new)
        if measure.entry.symbol == "Judged":
            same |= before.returned < measure.depth  # it divides by what is there, up to k
        assert same.all(), (measure, old, new)


@FEW
@given(sets(), st.integers(1, 12))
def test_a_cutoff_sees_nothing_below_it(case: Set, depth: int) -> None:
    evidence = case.evidence()
    for measure in MEASURES:
        if measure.depth is not None and measure.depth <= depth:
            cut = measure(evidence.to_depth(depth))
            assert measure(evidence).tobytes() == cut.tobytes(), measure


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.symbol)
def test_printed_names_are_read_back(entry: Entry) -> None:
    for measure in variants(entry):
        again = parse(str(measure))
        assert again == measure
        assert str(again) == str(measure)
        assert again.settings == measure.settings
        assert again.cutoff == measure.cutoff
        # Upper and lower case alike.
        assert parse(str(measure).lower()) == measure
        assert parse(str(measure).upper()) == measure


# --- for diversity ---


@FEW
@given(sets(), st.data())
def test_a_document_of_any_subtopic_moved_up_past_one_of_none_lowers_nothing(
    case: Set, data: st.DataObject
) -> None:
    query = data.draw(st.sampled_from(sorted(case.rankings)))
    good = [case.grades[query].get(doc, 0) >= 2 for doc in case.rankings[query]]
    can_rise = [i for i in range(1, len(good)) if good[i] and not good[i - 1]]
    if not can_rise:
        return
    place = data.draw(st.sampled_from(can_rise))
    ranking = list(case.rankings[query])
    ranking[place - 1 : place + 1] = ranking[place], ranking[place - 1]
    before = case.evidence()
    after = Set({**case.rankings, query: ranking}, case.grades).evidence()
    for name in ("alphanDCG(rel=2)", "ERRIA(rel=2)", "StRecall(rel=2)"):
        for at in ("@1", "@2", "@5"):
            old, new = parse(name + at)(before), parse(name + at)(after)
            assert (np.isnan(old) == np.isnan(new)).all()
            assert (np.isnan(old) | (new >= old - ROUNDING)).all(), (name, at, old, new)


# --- for the ceiling ---


@given(sets(), st.integers(1, 10))
@TWICE
def test_no_order_of_the_candidates_beats_the_ceiling(case: Set, depth: int) -> None:
    evidence = case.evidence()
    ceiling = parse("Ceiling(AP, depth=1)")
    for measure in BETTER_HIGHER:
        if measure.entry is ceiling.entry:
            continue
        reached = Measure(ceiling.entry, None, {"of": measure, "depth": depth})(evidence)
        value = measure(evidence)
        assert (np.isnan(value) == np.isnan(reached)).all(), measure
        assert (np.isnan(value) | (reached >= value - ROUNDING)).all(), (measure, value, reached)


@given(sets(), st.integers(1, 10))
@TWICE
def test_a_perfect_ranking_is_its_own_ceiling(case: Set, depth: int) -> None:
    perfect = {query: best_first(judged) for query, judged in case.grades.items()}
    evidence = Set(perfect, case.grades).evidence()
    ceiling = parse("Ceiling(AP, depth=1)").entry
    for measure in MEASURES:
        if measure.entry is ceiling:
            continue
        reached = Measure(ceiling, None, {"of": measure, "depth": depth})(evidence)
        assert reached.tobytes() == measure(evidence).tobytes(), measure


# --- for gains ---


@FEW
@given(sets(), st.sampled_from(("", "@1", "@3", "@10")))
def test_linear_gain_is_each_grade_worth_itself(case: Set, at: str) -> None:
    evidence = case.evidence()
    for symbol in ("nDCG", "DCG", "IDCG"):
        linear = parse(f"{symbol}(gain=linear){at}")
        table = parse(symbol + "(gain={0: 0, 0.5: 0.5, 1: 1, 2: 2, 3: 3})" + at)
        assert linear(evidence).tobytes() == table(evidence).tobytes()
        assert linear(evidence).tobytes() == parse(symbol + at)(evidence).tobytes()
        powers = parse(symbol + "(gain={1: 1, 2: 3, 3: 7, 0.5: 0.41421356237309515})" + at)
        exp = parse(f"{symbol}(gain=exp){at}")
        assert exp(evidence).tobytes() == powers(evidence).tobytes()


@FEW
@given(sets(), st.integers(1, 4))
def test_ndcg_does_not_mind_the_unit_of_gain(case: Set, power: int) -> None:
    # Doubling is exact in binary, so every bit stays.
    evidence, unit = case.evidence(), 2**power
    gains = ", ".join(f"{grade}: {grade * unit}" for grade in (0.5, 1, 2, 3))
    for at in ("", "@3"):
        scaled = parse("nDCG(gain={" + gains + "})" + at)
        assert scaled(evidence).tobytes() == parse(f"nDCG{at}")(evidence).tobytes()
