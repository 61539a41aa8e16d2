"""Certificate: that no grade of the unjudged turns the sign of a difference, and on what it rests.

It lists all that its numbers follow from: which documents each run has for each query, down to
where the measure looks (together the closed pool), and the judgments that count. So anyone can work
them out again, from the certificate alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from karat.tables.checksum import checksum

VERSION = 1
"""Of the certificate's content."""

CertifiedVerdict = Literal["better", "worse"]


@dataclass(frozen=True, slots=True)
class CertifiedQuery:
    """One query of a certificate.

    Attributes:
        query_id: The query.
        weight: What it counts for in the mean, above 0.
        baseline: The documents of the baseline, best first, down to where the measure looks.
        candidate: The same of the candidate. The pool of the query is the documents of both.
        judgments: Grades that count: of the pool from 0 up, elsewhere above 0.
        unjudged_low: Lowest difference, over all grades of the unjudged documents of the pool.
        unjudged_high: Highest.
        ideal: Ideal DCG, or number of relevant documents, as judged; None if the measure divides
            by neither.
        ideal_allowed: The same with as many relevant documents outside the pool as the certificate
            allows; None if any number is allowed, or nobody knows.
    """

    query_id: str
    weight: float
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    judgments: Mapping[str, float]
    unjudged_low: float
    unjudged_high: float
    ideal: float | None
    ideal_allowed: float | None


@dataclass(frozen=True, repr=False)
class Certificate:
    """That a difference keeps its sign whatever grades the unjudged have.

    Attributes:
        karat: Version of karat that made it.
        measure: Canonical name of the measure.
        scale: Lowest and highest grade. The numbers are over 0 to the highest, as a document
            without a judgment counts as 0.
        rel: Lowest relevant grade, which decides the queries that count.
        depth: Rankings were cut after so many documents; None if not.
        complete: Whether every query of the qrels counts.
        collapse: Column by which chunks were folded into documents; None if they were not.
        baseline: Name of the baseline.
        candidate: Name of the candidate.
        difference: Mean difference as judged, candidate minus baseline.
        unjudged_low: Lowest mean difference, over all grades of the unjudged documents of the
            pool.
        unjudged_high: Highest.
        unjudged_exact: Whether both are reached; if not, the difference cannot leave the interval.
        verdict: What the candidate is, whatever those grades are.
        unseen: Largest number of documents outside the pool that each query may have, of any grade
            of the scale, with the sign still the same; None if any number, or if nobody knows.
        unseen_unlimited: Whether no number of them turns the sign. False without a number in
            ``unseen``: nobody knows.
        reason: Why nobody knows, or why any number is allowed; empty otherwise.
        queries: The queries that count, sorted by bytes.
        sha256: Fingerprint of the rest, as the file states it; None if it was not read. It shows
            damage, and not who wrote the file: anyone who edits it can work it out again.
        source: What messages call it.
    """

    karat: str
    measure: str
    scale: tuple[float, float]
    rel: float
    depth: int | None
    complete: bool
    collapse: str | None
    baseline: str
    candidate: str
    difference: float
    unjudged_low: float
    unjudged_high: float
    unjudged_exact: bool
    verdict: CertifiedVerdict
    unseen: int | None
    unseen_unlimited: bool
    reason: str
    queries: tuple[CertifiedQuery, ...]
    sha256: str | None = field(default=None, compare=False)
    source: str = field(default="certificate", compare=False)

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.queries)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal, whatever the order and spacing of the file."""
        return checksum(self._content())

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the file."""
        content = self._content()
        queries = content.pop("queries")
        return {**content, "sha256": self.fingerprint, "queries": queries}

    def _content(self) -> dict[str, Any]:
        head = {
            "karat_certificate": VERSION,
            "karat": self.karat,
            "measure": self.measure,
            "scale": [_whole(grade) for grade in self.scale],
            "rel": _whole(self.rel),
            "depth": self.depth,
            "complete": self.complete,
            "collapse": self.collapse,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "n": self.n,
            "difference": _whole(self.difference),
            "unjudged_low": _whole(self.unjudged_low),
            "unjudged_high": _whole(self.unjudged_high),
            "unjudged_exact": self.unjudged_exact,
            "verdict": self.verdict,
            "unseen": self.unseen,
            "unseen_unlimited": self.unseen_unlimited,
            "reason": self.reason,
        }
        return {**head, "queries": [_query(query) for query in self.queries]}

    def __repr__(self) -> str:
        unseen = "unlimited" if self.unseen_unlimited else self.unseen
        return (
            f"<Certificate: {self.verdict} in {self.measure}, {self.unjudged_low:+.4f} to "
            f"{self.unjudged_high:+.4f}, {self.n} queries, unseen {unseen}>"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate still holds.

    Attributes:
        holds: Whether nothing was found against it.
        findings: What was found against it, a sentence each.
        notes: What was checked, and what has changed without harm.
        certificate: The certificate.
    """

    holds: bool
    findings: list[str]
    notes: list[str]
    certificate: Certificate

    def to_dict(self) -> dict[str, Any]:
        """Whether it holds, and why not; without the queries of the certificate."""
        made = self.certificate.to_dict()
        del made["queries"]
        return {
            "holds": self.holds,
            "findings": list(self.findings),
            "notes": list(self.notes),
            "certificate": made,
        }


def _query(query: CertifiedQuery) -> dict[str, Any]:
    return {
        "query_id": query.query_id,
        "weight": _whole(query.weight),
        "baseline": list(query.baseline),
        "candidate": list(query.candidate),
        "judgments": {doc_id: _whole(grade) for doc_id, grade in query.judgments.items()},
        "unjudged_low": _whole(query.unjudged_low),
        "unjudged_high": _whole(query.unjudged_high),
        "ideal": None if query.ideal is None else _whole(query.ideal),
        "ideal_allowed": None if query.ideal_allowed is None else _whole(query.ideal_allowed),
    }


def _whole(value: float) -> float:
    """A whole number without its point, so that 1 and 1.0 in a file are the same content."""
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)
