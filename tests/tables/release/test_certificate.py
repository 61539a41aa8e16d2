"""The content of a certificate: one fingerprint for one content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from karat.tables.release.certificate import Certificate, Verification


def test_every_part_of_the_content_changes_the_fingerprint(certificate: Certificate) -> None:
    seen = {certificate.fingerprint}
    first, *others = certificate.queries
    changes = [
        {"karat": "1.1"},
        {"measure": "nDCG@3"},
        {"scale": (0.0, 3.0)},
        {"rel": 2.0},
        {"depth": None},
        {"complete": False},
        {"collapse": "parent_id"},
        {"baseline": "new"},
        {"candidate": "old"},
        {"difference": 0.31},
        {"unjudged_low": 0.26},
        {"unjudged_high": 0.51},
        {"unjudged_exact": False},
        {"verdict": "worse"},
        {"unseen": 7},
        {"unseen": None},
        {"unseen": None, "unseen_unlimited": True},
        {"reason": "why"},
    ]
    of_query = [
        {"query_id": "q2"},
        {"weight": 3.0},
        {"baseline": ("b", "a")},
        {"candidate": ()},
        {"judgments": {"b": 1.0}},
        {"unjudged_low": 0.0},
        {"unjudged_high": 0.6},
        {"ideal": None},
        {"ideal_allowed": 3.0},
    ]
    several = [replace(certificate, **change) for change in changes]
    several += [
        replace(certificate, queries=(replace(first, **change), *others)) for change in of_query
    ]
    for changed in several:
        assert changed.fingerprint not in seen
        seen.add(changed.fingerprint)
    # What is stated, and where it was read, is no part of it.
    assert replace(certificate, sha256="x", source="y").fingerprint == certificate.fingerprint


def test_the_fingerprint_is_of_canonical_json(certificate: Certificate) -> None:
    # Keys sorted, no spaces, whole numbers without a point.
    content = certificate.to_dict()
    stated = content.pop("sha256")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert '"scale":[0,2]' in text
    assert stated == hashlib.sha256(text.encode()).hexdigest()


def test_a_verification_leaves_out_the_queries(certificate: Certificate) -> None:
    found = Verification(False, ["one"], [], certificate).to_dict()
    assert (found["holds"], found["findings"]) == (False, ["one"])
    assert found["certificate"]["measure"] == "nDCG@2"
    assert "queries" not in found["certificate"]


def test_what_is_printed_tells_any_number_from_an_unknown_one(certificate: Certificate) -> None:
    assert repr(certificate) == (
        "<Certificate: better in nDCG@2, +0.1000 to +0.5000, 2 queries, unseen 4>"
    )
    unknown = replace(certificate, unseen=None)
    assert repr(unknown).endswith("unseen None>")
    assert repr(replace(unknown, unseen_unlimited=True)).endswith("unseen unlimited>")


def test_the_names_in_the_file(certificate: Certificate) -> None:
    content = certificate.to_dict()
    assert list(content) == [
        *("karat_certificate", "karat", "measure", "scale", "rel", "depth", "complete"),
        *("collapse", "baseline", "candidate", "n", "difference", "unjudged_low"),
        *("unjudged_high", "unjudged_exact", "verdict", "unseen", "unseen_unlimited", "reason"),
        *("sha256", "queries"),
    ]
    assert list(content["queries"][0]) == [
        *("query_id", "weight", "baseline", "candidate", "judgments", "unjudged_low"),
        *("unjudged_high", "ideal", "ideal_allowed"),
    ]
