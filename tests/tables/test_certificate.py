"""The content of a certificate: one fingerprint for one content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from karat.tables.certificate import Certificate, CertifiedQuery, Verification

QUERY = CertifiedQuery("q1", 1.0, ("a", "b"), ("b",), {"b": 2.0}, 0.25, 0.5, 2.0, None)
CERTIFICATE = Certificate(
    karat="1.0",
    measure="nDCG@2",
    scale=(0.0, 2.0),
    rel=1.0,
    depth=None,
    complete=False,
    collapse=None,
    baseline="old",
    candidate="new",
    difference=0.3,
    low=0.25,
    high=0.5,
    exact=True,
    sign="candidate is better",
    unseen="any",
    reason="why",
    queries=(QUERY,),
)


def test_every_part_of_the_content_changes_the_fingerprint() -> None:
    seen = {CERTIFICATE.fingerprint}
    changes = [
        {"karat": "1.1"},
        {"measure": "nDCG@3"},
        {"scale": (0.0, 3.0)},
        {"rel": 2.0},
        {"depth": 5},
        {"complete": True},
        {"collapse": "parent_id"},
        {"baseline": "new"},
        {"candidate": "old"},
        {"difference": 0.31},
        {"low": 0.26},
        {"high": 0.51},
        {"exact": False},
        {"sign": "candidate is worse"},
        {"unseen": 7},
        {"reason": ""},
    ]
    of_query = [
        {"query_id": "q2"},
        {"weight": 2.0},
        {"baseline": ("b", "a")},
        {"candidate": ()},
        {"judgments": {"b": 1.0}},
        {"low": 0.0},
        {"high": 0.6},
        {"ideal": None},
        {"ideal_allowed": 3.0},
    ]
    several = [replace(CERTIFICATE, **change) for change in changes]
    several += [replace(CERTIFICATE, queries=(replace(QUERY, **change),)) for change in of_query]
    for changed in several:
        assert changed.fingerprint not in seen
        seen.add(changed.fingerprint)
    # What is stated, and where it was read, is no part of it.
    assert replace(CERTIFICATE, sha256="x", source="y").fingerprint == CERTIFICATE.fingerprint


def test_the_fingerprint_is_of_canonical_json() -> None:
    # Keys sorted, no spaces, whole numbers without a point.
    content = CERTIFICATE.to_dict()
    stated = content.pop("sha256")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert '"scale":[0,2]' in text
    assert stated == hashlib.sha256(text.encode()).hexdigest()


def test_a_verification_leaves_out_the_queries() -> None:
    found = Verification(False, ["one"], [], CERTIFICATE).to_dict()
    assert (found["holds"], found["findings"]) == (False, ["one"])
    assert found["certificate"]["measure"] == "nDCG@2"
    assert "queries" not in found["certificate"]
    assert "nDCG@2" in repr(CERTIFICATE)
