"""Certify and verify: what is certified, and what takes a certificate's ground away."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from karat.errors import InputError, UsageError
from karat.formats.own.certificate import from_bytes, read_certificate, to_bytes, write_certificate
from karat.tables import Queries, Run
from karat.tables.release.certificate import Certificate, Verification
from karat.workflows.offline.compare import compare
from karat.workflows.release.certify import certify, verify_certificate

Grades = dict[str, dict[str, float]]

# q0 … q5: the candidate moves the good document from rank 3 to rank 1; x and y are judged bad,
# z at rank 4 of both is unjudged. q6: it loses it to rank 2. Only z is open, at the same rank.
QRELS: Grades = {f"q{i}": {"good": 2, "x": 0, "y": 0, "far": 1} for i in range(7)}


def run(*rankings: str) -> dict[str, dict[str, float]]:
    return {
        f"q{i}": {doc: -float(place) for place, doc in enumerate(ranking.split())}
        for i, ranking in enumerate(rankings)
    }


OLD = run(*["x y good z"] * 6, "good x y z")
NEW = run(*["good x y z"] * 6, "x good y z")
MEASURE = "nDCG@4"


def made(**settings: Any) -> Certificate:
    return certify(QRELS, OLD, NEW, MEASURE, **settings)


def check(
    certificate: Certificate, qrels: Any = None, old: Any = None, new: Any = None, **settings: Any
) -> Verification:
    """Verify what the file of a certificate says."""
    return verify_certificate(
        from_bytes(to_bytes(certificate), "c.json"), qrels, old, new, **settings
    )


def changed(qrels: Grades, query: str, **grades: float | None) -> Grades:
    out = copy.deepcopy(qrels)
    for doc, grade in grades.items():
        if grade is None:
            del out[query][doc]
        else:
            out[query][doc] = grade
    return out


def test_a_certificate_holds_on_what_it_was_made_of(tmp_path: Path) -> None:
    certificate = made()
    write_certificate(certificate, tmp_path / "c.json")
    found = verify_certificate(tmp_path / "c.json", QRELS, OLD, NEW)
    assert found.holds
    assert found.findings == []
    assert found.notes == [
        "its numbers follow from its pool and its judgments",
        "both runs have the same documents at the same ranks",
        "the judgments it rests on are as they were",
    ]
    assert read_certificate(tmp_path / "c.json") == certificate


def test_what_was_not_checked_is_said() -> None:
    def notes(*given: Any) -> list[str]:
        found = check(made(), *given)
        assert found.holds
        return found.notes

    assert notes() == [
        "its numbers follow from its pool and its judgments",
        "runs and judgments were not checked: none were given",
    ]
    assert notes(None, OLD, NEW)[-1] == "judgments were not checked: none were given"
    assert notes(QRELS)[-1] == "runs were not checked: none were given"


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("old", "new"), ("old", "new")),
        (("same", "same"), ("same", "same-2")),
        (None, ("baseline", "candidate")),
    ],
)
def test_runs_have_the_names_that_compare_gives_them(
    names: tuple[str, str] | None, wanted: tuple[str, str]
) -> None:
    old, new = (
        (OLD, NEW)
        if names is None
        else (Run.from_dict(OLD, names[0]), Run.from_dict(NEW, names[1]))
    )
    [row] = compare(QRELS, old, new, MEASURE).differences
    assert (row.baseline, row.candidate) == wanted
    chunks = pl.DataFrame({"doc_id": ["good"], "parent_id": ["good"]})
    folded = certify(QRELS, old, new, MEASURE, documents=chunks, collapse="parent_id")
    for certificate in (certify(QRELS, old, new, MEASURE), folded):
        assert (certificate.baseline, certificate.candidate) == wanted
        # Whether it holds has nothing to do with names.
        assert check(certificate, QRELS, OLD, NEW, documents=chunks).holds


def test_it_says_what_compare_says() -> None:
    for measure in (MEASURE, "P@1", "R@1", "RR", "AP@3", "ERR@2", "RBP(p=0.5)@2"):
        certificate = certify(QRELS, OLD, NEW, measure)
        [row] = compare(QRELS, OLD, NEW, measure).differences
        assert certificate.difference == row.difference
        assert certificate.unjudged_low == pytest.approx(row.unjudged_low, abs=1e-12)
        assert certificate.unjudged_high == pytest.approx(row.unjudged_high, abs=1e-12)
        assert (certificate.unjudged_exact, certificate.n) == (row.unjudged_exact, row.n)
        assert (certificate.baseline, certificate.candidate) == (row.baseline, row.candidate)
        assert certificate.verdict == "better"
    back = certify(QRELS, NEW, OLD, MEASURE)
    assert back.verdict == "worse"
    assert (back.unjudged_low, back.unjudged_high) == (-made().unjudged_high, -made().unjudged_low)
    assert back.unseen == made().unseen


def test_what_it_rests_on_is_in_it() -> None:
    certificate = made()
    query = certificate.queries[0]
    assert query.baseline == ("x", "y", "good", "z")
    assert query.candidate == ("good", "x", "y", "z")
    assert query.judgments == {"far": 1.0, "good": 2.0, "x": 0.0, "y": 0.0}
    assert query.ideal == pytest.approx(2 + 1 / np.log2(3))
    # A judged document that is neither shown nor relevant changes nothing, and is left out.
    more = changed(QRELS, "q0", elsewhere=0)
    assert certify(more, OLD, NEW, MEASURE) == certificate
    assert certificate.scale == (0.0, 2.0)
    assert (
        certificate.queries[0].baseline
        == certify(QRELS, OLD, NEW, MEASURE, depth=9).queries[0].baseline
    )
    cut = certify(QRELS, OLD, NEW, MEASURE, depth=2)
    assert (cut.depth, cut.queries[0].baseline) == (2, ("x", "y"))
    assert check(cut, QRELS, OLD, NEW).holds


def test_without_a_certain_sign_there_is_none() -> None:
    with pytest.raises(UsageError, match=r"could be anything from \+0\.0000 to \+1") as error:
        certify({"q0": {"good": 1}}, OLD, NEW, "P@1")
    assert "--judge-next" in str(error.value)
    with pytest.raises(UsageError, match="might be anything from") as error:
        certify({"q0": {"good": 1}, "q6": {"good": 1}}, OLD, NEW, "AP")
    assert "--judge-next" not in str(error.value)
    with pytest.raises(UsageError, match="is 0, whatever the unjudged are"):
        certify(QRELS, OLD, OLD, MEASURE)
    with pytest.raises(UsageError, match="is not known"):
        certify(QRELS, OLD, NEW, "Bpref")
    with pytest.raises(UsageError, match="not a mean over queries"):
        certify(QRELS, OLD, NEW, "GMAP")
    with pytest.raises(UsageError, match="one measure and two runs"):
        certify(QRELS, OLD, NEW, "P.1,2")
    with pytest.raises(UsageError, match="no query has a value"):
        certify({"q0": {"good": 0}}, OLD, NEW, "P@1")


def test_recall_allows_for_unseen_documents_and_counts_them() -> None:
    # Six queries won and one lost, of one relevant document each: R@1 1 against -1. With u unseen,
    # 6 / (1 + u) > 1 up to u = 4.
    qrels = {query: {"good": 1, "x": 0} for query in QRELS}
    certificate = certify(qrels, OLD, NEW, "R@1")
    assert certificate.unseen == 4
    assert (certificate.queries[0].ideal, certificate.queries[0].ideal_allowed) == (1, 5)
    four = {f"u{i}": 1.0 for i in range(4)}
    found = check(certificate, changed(qrels, "q1", **four), OLD, NEW)
    assert found.holds
    assert "new relevant documents outside the pool: 4, at most 4 to a query" in found.notes
    [finding] = check(certificate, changed(qrels, "q1", **four, u4=1), OLD, NEW).findings
    assert finding.startswith("query q1 has 5 relevant documents outside the pool that")
    assert finding.endswith("allows 4 to a query")
    assert check(certificate, changed(qrels, "q1", **four, u4=0), OLD, NEW).holds


def test_ap_allows_for_none() -> None:
    certificate = certify(QRELS, OLD, NEW, "AP@3")
    assert (certificate.unseen, certificate.unseen_unlimited) == (None, False)
    assert "not known" in certificate.reason
    [finding] = check(certificate, changed(QRELS, "q1", unseen=1)).findings
    assert finding.startswith("query q1 has one relevant document outside the pool that")
    assert finding.endswith("allows none")


def test_new_judgments_of_the_pool_are_covered_on_the_scale() -> None:
    certificate = made()
    for grade in (0, 1, 1.5, 2, -1):
        found = check(certificate, changed(QRELS, "q0", z=grade), OLD, NEW)
        assert found.holds
        assert any("in the pool: 1" in note for note in found.notes) == (grade >= 0)
    found = check(certificate, changed(QRELS, "q0", z=3), OLD, NEW)
    assert found.findings == [
        "query q0: document z has grade 3, above the scale of the certificate, 0 to 2"
    ]
    own = certify(QRELS, OLD, NEW, "nDCG(gain={1: 1, 2: 2})@4")
    assert check(own, changed(QRELS, "q0", z=1)).holds
    assert "a grade is not one" in check(own, changed(QRELS, "q0", z=1.5)).findings[0]


def test_whatever_is_judged_in_the_pool_the_difference_stays_within(deep: bool) -> None:
    certificate = made()
    rng = np.random.default_rng(8)
    for _ in range(40 if deep else 4):
        graded = copy.deepcopy(QRELS)
        for query in graded.values():
            if rng.random() < 0.7:
                query["z"] = float(rng.choice([0, 1, 2]))
        assert check(certificate, graded, OLD, NEW).holds
        [row] = compare(graded, OLD, NEW, MEASURE, scale=(0, 2)).differences
        assert row.difference is not None
        assert certificate.unjudged_low - 1e-12 <= row.difference
        assert row.difference <= certificate.unjudged_high + 1e-12


def test_on_a_scale_above_zero_an_unjudged_document_may_still_count_as_zero() -> None:
    qrels = {query: {"good": 3, "x": 1, "y": 1} for query in QRELS}
    certificate = certify(qrels, OLD, NEW, MEASURE, scale="1-3")
    assert certificate.scale == (1.0, 3.0)
    assert certificate.unjudged_low <= certificate.difference <= certificate.unjudged_high
    assert check(certificate, qrels, OLD, NEW).holds


@pytest.mark.parametrize(
    ("qrels", "finding"),
    [
        (changed(QRELS, "q3", good=1), "judgment was changed: query q3: document good had grade 2"),
        (changed(QRELS, "q3", x=1), "document x had grade 0 and has 1"),
        (changed(QRELS, "q3", far=2), "document far had grade 1 and has 2"),
        (changed(QRELS, "q3", y=None), "a judgment has gone: query q3: document y, grade 0"),
        (changed(QRELS, "q3", far=-1), "a judgment has gone: query q3: document far"),
        ({q: d for q, d in QRELS.items() if q != "q3"}, r"has gone: query q3.*\(4 judgments in"),
        ({**QRELS, "q9": {"a": 1}}, "query q9 counts now, and is not in the certificate"),
    ],
)
def test_judgments_that_are_not_covered(qrels: Grades, finding: str) -> None:
    found = check(made(), qrels, OLD, NEW)
    assert not found.holds
    assert len(found.findings) == 1
    assert re.search(finding, found.findings[0])


def test_a_wider_declared_scale_is_not_covered(tmp_path: Path) -> None:
    golden = {"karat_golden_set": 1, "scale": [0, 4], "queries": []}
    golden["queries"] = [
        {"query_id": query, "query": query, "relevant_docs": docs} for query, docs in QRELS.items()
    ]
    (tmp_path / "g.json").write_text(json.dumps(golden), encoding="utf-8")
    found = check(made(), tmp_path / "g.json", OLD, NEW)
    assert found.findings == ["the scale is 0 to 4 now, and the certificate is for 0 to 2"]
    wide = certify(tmp_path / "g.json", OLD, NEW, MEASURE)
    assert wide.scale == (0.0, 4.0)
    assert check(wide, tmp_path / "g.json", OLD, NEW).holds
    assert check(wide, QRELS, OLD, NEW).holds


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (NEW, OLD, "the runs are the other way round: baseline is the baseline"),
        (OLD, run(*["good y x z"] * 6, "x good y z"), r"candidate .* q0 has y at rank 2, where"),
        (OLD, OLD, r"candidate .* q0 has x at rank 1, .* has good \(7 queries in all\)"),
        (run(*["x y good z"] * 6, "good x y"), NEW, "baseline .* q6 has 3 documents, .* has 4"),
        (run(*["x y good z"] * 6), NEW, "baseline .* q6 has no documents"),
    ],
)
def test_runs_that_are_others(old: Any, new: Any, finding: str) -> None:
    found = check(made(), QRELS, old, new)
    assert not found.holds
    assert len(found.findings) == 1
    assert re.search(finding, found.findings[0])


def test_below_the_cutoff_runs_may_differ() -> None:
    deeper = {query: {**docs, "deep": -99.0} for query, docs in NEW.items()}
    assert check(made(), QRELS, OLD, deeper).holds
    # Found only there, a relevant document is outside the pool.
    found = check(certify(QRELS, OLD, NEW, "AP@4"), changed(QRELS, "q0", deep=2), OLD, deeper)
    assert not found.holds


def test_a_query_that_failed_does_not_count_any_more() -> None:
    failed = {**OLD, "q6": None}
    found = check(made(), QRELS, failed, NEW)
    assert any("q6 has no documents" in finding for finding in found.findings)
    # It was answered with nothing when the certificate was made, and failed now: the same pool.
    empty = {**OLD, "q6": {}}
    certificate = certify(QRELS, empty, NEW, MEASURE)
    assert certificate.n == 7
    found = check(certificate, QRELS, failed, NEW)
    assert found.findings == ["query q6 of the certificate does not count any more"]


def test_weights_are_part_of_it() -> None:
    names = list(QRELS)
    heavy = Queries(pl.DataFrame({"query_id": names, "weight": [1.0] * 6 + [2.0]}))
    doubled = Queries(pl.DataFrame({"query_id": names, "weight": [2.0] * 6 + [4.0]}))
    certificate = made(queries=heavy)
    assert certificate.difference < made().difference
    assert check(certificate, QRELS, OLD, NEW, queries=heavy).holds
    assert check(certificate, QRELS, OLD, NEW, queries=doubled).holds
    found = check(certificate, QRELS, OLD, NEW)
    assert "weighs 1 now, and" in found.findings[0]
    marked = Queries(pl.DataFrame({"query_id": ["q0"], "no_answer": [True]}))
    low = changed(QRELS, "q0", good=1, far=None)
    found = check(certify(low, OLD, NEW, MEASURE), low, OLD, NEW, queries=marked)
    assert found.findings == ["query q0 of the certificate does not count any more"]


def test_complete_counts_queries_without_a_relevant_document() -> None:
    qrels = {**QRELS, "q7": {"a": 0}, "q8": {"b": -1}}
    certificate = certify(qrels, OLD, NEW, MEASURE, complete=True)
    assert (certificate.n, certificate.complete) == (9, True)
    assert check(certificate, qrels, OLD, NEW).holds
    [row] = compare(qrels, OLD, NEW, MEASURE, complete=True).differences
    assert certificate.difference == row.difference


def test_rel_of_a_measure_is_not_that_of_the_certificate() -> None:
    # The name P(rel=1)@1 is printed P@1; read again under --rel 2 it must stay so.
    certificate = certify(QRELS, OLD, NEW, "P(rel=1)@1", rel=2)
    assert (certificate.measure, certificate.rel) == ("P@1", 2.0)
    assert check(certificate, QRELS, OLD, NEW).holds
    assert certify(QRELS, OLD, NEW, "P@1", rel=2).measure == "P(rel=2)@1"


def test_chunks_are_folded_again() -> None:
    chunks = pl.DataFrame(
        {"doc_id": ["good#1", "good#2", "x#1"], "parent_id": ["good", "good", "x"]}
    )
    old = {query: {"x#1": 2.0, "good#2": 1.0} for query in QRELS}
    new = {query: {"good#1": 2.0, "good#2": 1.5, "x#1": 1.0} for query in QRELS}
    certificate = certify(QRELS, old, new, "P@1", documents=chunks, collapse="parent_id")
    assert certificate.queries[0].candidate == ("good",)
    assert check(certificate, QRELS, old, new, documents=chunks).holds
    with pytest.raises(UsageError, match="--documents"):
        check(certificate, QRELS, old, new)


def edited(certificate: Certificate, change: Callable[[Any], None], *, sign: bool) -> Verification:
    """Verify a certificate that somebody edited, and perhaps gave its new fingerprint."""
    content = json.loads(to_bytes(certificate))
    change(content)
    found = from_bytes(json.dumps(content).encode(), "c.json")
    return verify_certificate(replace(found, sha256=found.fingerprint) if sign else found)


def _first(content: Any) -> Any:
    return content["queries"][0]


def _without_limit(content: Any) -> None:
    content.update(unseen=None, unseen_unlimited=True)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda c: c.update(unjudged_low=c["unjudged_low"] / 2), "its unjudged_low is"),
        (lambda c: c.update(unjudged_high=c["unjudged_high"] * 2), "its unjudged_high is"),
        (lambda c: c.update(difference=0.0), "its difference is"),
        (lambda c: c.update(unjudged_exact=False), "its unjudged_exact is False"),
        (lambda c: c.update(verdict="worse"), "verdict does not follow"),
        (lambda c: c.update(unseen=c["unseen"] + 1), "allows 5 unseen .*, but its pool gives 4"),
        (_without_limit, "allows any number of unseen .*, but its pool gives 4"),
        (lambda c: _first(c).update(unjudged_low=-1), "numbers of query q0 do not follow"),
        (lambda c: _first(c).update(ideal=2), "numbers of query q0 do not follow"),
        (lambda c: _first(c).update(ideal_allowed=9), "numbers of query q0 do not follow"),
        (lambda c: _first(c).update(baseline=["good"]), "its difference is"),
        (lambda c: _first(c)["judgments"].update(good=0), "its difference is"),
        (lambda c: _first(c)["judgments"].update(good=9), "cannot be recomputed: .*scale"),
        (lambda c: _first(c).update(weight=3), "its difference is"),
        (lambda c: [q.update(weight=1e308) for q in c["queries"]], "its pool|recomputed"),
        (lambda c: c.update(scale=[0, 1e308], measure="nDCG@1"), "its pool|recomputed"),
        (lambda c: c.update(measure="P@1"), "ideal|allows|numbers"),
        (lambda c: c.update(measure="Bpref"), "cannot be recomputed"),
        (lambda c: c.update(measure="nDCG(gain=exp)@1", scale=[0, 5000]), "cannot be recomputed"),
        (lambda c: c["queries"].pop() and c.update(n=6), "its difference is"),
    ],
)
def test_an_edited_certificate_does_not_hold(change: Callable[[Any], None], finding: str) -> None:
    certificate = certify({q: {"good": 1, "x": 0} for q in QRELS}, OLD, NEW, "R@1")
    found = edited(certificate, change, sign=False)
    assert found.findings == [
        "the file is damaged or was edited: its sha256 does not match its content"
    ]
    found = edited(certificate, change, sign=True)
    assert not found.holds
    assert re.search(finding, found.findings[0])


def test_less_than_is_proven_may_be_stated() -> None:
    certificate = certify({q: {"good": 1, "x": 0} for q in QRELS}, OLD, NEW, "P@1")
    assert (certificate.unseen, certificate.unseen_unlimited) == (None, True)
    assert "depends only on the documents that the runs show" in certificate.reason
    for unseen in (None, 0, 7):
        assert verify_certificate(replace(certificate, unseen=unseen, unseen_unlimited=False)).holds
    # But nothing is proven about the unseen in AP.
    unknown = certify(QRELS, OLD, NEW, "AP@3")
    for change in ({"unseen": 0}, {"unseen_unlimited": True}):
        [finding] = verify_certificate(replace(unknown, **change)).findings  # type: ignore[arg-type]
        assert finding.endswith("unseen relevant documents, but its pool gives none")


def test_who_edits_the_judgments_too_is_found_out_by_them_alone() -> None:
    # A fingerprint and numbers that follow can be made for any judgments: only the true ones tell.
    other = certify(changed(QRELS, "q6", good=0, x=2), OLD, NEW, MEASURE)
    assert check(other).holds
    assert "was changed: query q6" in check(other, QRELS).findings[0]


def test_one_run_is_not_two() -> None:
    with pytest.raises(UsageError, match="expected two runs, got one"):
        verify_certificate(made(), QRELS, OLD)
    with pytest.raises(UsageError, match="expected two runs, got 3"):
        verify_certificate(made(), QRELS, OLD, [NEW, NEW])


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(to_bytes(made())[:-20])
    with pytest.raises(InputError, match=r"c\.json"):
        verify_certificate(path, QRELS, OLD, NEW)
