"""Certificate: proof that no grades of unjudged documents can flip the sign of a difference.

It contains all inputs: the documents of each run for each query down to the cutoff of the measure
(together the closed pool), and the judgments that count. Anyone can recompute it from the
certificate alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from karat.tables.checksum import checksum

VERSION = 1  # version of the certificate's content

CertifiedVerdict = Literal["better", "worse"]


@dataclass(frozen=True, slots=True)
class CertifiedQuery:
    """One query of a certificate."""

    query_id: str
    weight: float  # its weight in the mean, above 0
    # The documents of the baseline, best first, down to the cutoff of the measure
    baseline: tuple[str, ...]
    # The same for the candidate. The pool of the query is the documents of both.
    candidate: tuple[str, ...]
    judgments: Mapping[str, float]  # grades that count: 0 or more in the pool, above 0 elsewhere
    unjudged_low: float  # lowest difference over all grades of the unjudged documents of the pool
    unjudged_high: float  # highest difference
    # Ideal DCG, or number of relevant documents, as judged; None if the measure divides by neither
    ideal: float | None
    # The same with as many relevant documents outside the pool as the certificate allows; None if
    # any number is allowed, or the number is unknown
    ideal_allowed: float | None


@dataclass(frozen=True, repr=False)
class Certificate:
    """Certifies that a difference keeps its sign for all grades of unjudged documents."""

    karat: str  # version of karat that made it
    measure: str  # canonical name of the measure
    # Lowest and highest grade. The bounds assume grades from 0 to the highest, because a document
    # without a judgment counts as 0.
    scale: tuple[float, float]
    rel: float  # lowest relevant grade; it decides which queries count
    depth: int | None  # depth at which rankings were cut; None if they were not
    complete: bool  # whether every query of the qrels counts
    collapse: str | None  # column by which chunks were folded into documents; None if they were not
    baseline: str
    candidate: str
    difference: float  # mean difference as judged, candidate minus baseline
    # Lowest mean difference over all grades of the unjudged documents of the pool
    unjudged_low: float
    unjudged_high: float  # highest mean difference
    # Whether both bounds can be reached; otherwise the difference lies between
    unjudged_exact: bool
    verdict: CertifiedVerdict  # verdict of the candidate, which holds for all these grades
    # Largest number of documents outside the pool, of any grade of the scale, that each query may
    # have without flipping the sign; None if any number is allowed, or unknown
    unseen: int | None
    # Whether any number is allowed. If False and `unseen` is None, the number is unknown.
    unseen_unlimited: bool
    reason: str  # why the number is unknown, or why any number is allowed; empty otherwise
    queries: tuple[CertifiedQuery, ...]  # the queries that count, sorted by bytes
    # Checksum of the rest, as stated in the file; None if it was not read from a file. It detects
    # damage but proves no authorship: anyone who edits the file can recompute it.
    sha256: str | None = field(default=None, compare=False)
    source: str = field(default="certificate", compare=False)  # its name in error messages

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.queries)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal, independent of order and spacing in the file."""
        return checksum(self._content())

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the file."""
        content = self._content()
        queries = content.pop("queries")
        return {**content, "sha256": self.fingerprint, "queries": queries}

    def _content(self) -> dict[str, Any]:
        names = [each.name for each in fields(self) if each.compare]
        names.insert(names.index("difference"), "n")
        return {"karat_certificate": VERSION} | {
            name: _plain(getattr(self, name)) for name in names
        }

    def __repr__(self) -> str:
        unseen = "unlimited" if self.unseen_unlimited else self.unseen
        return (
            f"<Certificate: {self.verdict} in {self.measure}, {self.unjudged_low:+.4f} to "
            f"{self.unjudged_high:+.4f}, {self.n} queries, unseen {unseen}>"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate still holds."""

    holds: bool  # whether there are no findings
    findings: list[str]  # why it does not hold, in sentences
    notes: list[str]  # what was checked, and harmless changes, in sentences
    certificate: Certificate

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, without the queries of the certificate."""
        certificate = self.certificate.to_dict()
        del certificate["queries"]
        return {
            "holds": self.holds,
            "findings": list(self.findings),
            "notes": list(self.notes),
            "certificate": certificate,
        }


def _plain(value: Any) -> Any:
    """As JSON; whole numbers as int: 1 and 1.0 in a file must have the same checksum."""
    match value:
        case float():
            return int(value) if value.is_integer() and abs(value) < 1e15 else float(value)
        case tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return {key: _plain(each) for key, each in value.items()}
        case CertifiedQuery():
            return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value
