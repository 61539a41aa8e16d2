"""Certificates of a comparison, as JSON: the head, then one query per line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from karat.errors import InputError, UsageError
from karat.formats.own.fields import Fields, Kind, finite, short
from karat.formats.own.fields import to_bytes as object_to_bytes
from karat.formats.tables.detect import refuse_binary
from karat.formats.tables.source import Source
from karat.formats.tables.writing import beside
from karat.measures import parse
from karat.tables.release.certificate import VERSION, Certificate, CertifiedQuery, CertifiedVerdict
from karat.tables.schema import read_scale

_DEEPEST = 1 << 62  # ranks are 64-bit numbers
_REMADE = "karat compare … --certificate FILE makes a new one"
_KIND = Kind("certificate", VERSION, _REMADE)
_VERDICTS = ("better", "worse")
_HEAD = (*(each.name for each in fields(Certificate) if each.compare), "n", "sha256")
_QUERY = [each.name for each in fields(CertifiedQuery)]


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate; a name in ``.gz`` compresses it.

    Raises:
        InputError: it cannot be written.
    """
    with beside(Path(path)) as stream:
        stream.write(to_bytes(certificate))


def to_bytes(certificate: Certificate) -> bytes:
    """The content of the file; equal certificates give equal bytes."""
    return object_to_bytes(certificate.to_dict())


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate from a file, plain or compressed, or ``-`` for standard input.

    ``verify_certificate`` checks its content, including the fingerprint.

    Raises:
        InputError: it cannot be read, is damaged, or is not a certificate.
    """
    with Source(path) as source:
        refuse_binary(source)
        return from_bytes(source.whole(), source.name)


def from_bytes(data: bytes, name: str) -> Certificate:
    """A certificate from bytes; raises InputError if it is damaged or not a certificate."""
    if f'"{_KIND.mark}"'.encode() not in data:
        raise _KIND.none(name)
    content = _KIND.content(data, name)
    head = Fields(content, _HEAD, name, _REMADE)
    rows = head.get("queries", list, "a list of queries")
    if not rows:
        raise head.wrong("queries", "a list of one query or more")
    queries = tuple(_query(row, index, name) for index, row in enumerate(rows, 1))
    ids = [query.query_id for query in queries]
    if ids != sorted(set(ids), key=str.encode):
        raise InputError("its queries are not unique or not sorted", file=name, fix=_REMADE)
    if head.get("n", int, "a whole number") != len(ids):
        raise InputError(
            f"n is {short(content['n'])}, and it has {len(ids)} queries",
            file=name,
            fix=_REMADE,
        )
    verdict = head.get("verdict", str, "a verdict")
    if verdict not in _VERDICTS:
        raise head.wrong("verdict", " or ".join(repr(one) for one in _VERDICTS))
    depth = content["depth"]
    if depth is not None and not 0 < head.get("depth", int, "a rank from 1, or null") <= _DEEPEST:
        raise head.wrong("depth", "a rank from 1, or null")
    unlimited = head.get("unseen_unlimited", bool, "true or false")
    return Certificate(
        measure=_measure(head),
        scale=_scale(head),
        rel=head.above_zero("rel"),
        verdict=cast(CertifiedVerdict, verdict),
        unseen=_unseen(head, unlimited),
        queries=queries,
        sha256=head.get("sha256", str, "text"),
        source=name,
        **head.plain(Certificate, "measure", "rel", "unseen", "sha256"),
    )


def _query(row: Any, index: int, name: str) -> CertifiedQuery:
    query = Fields(row, _QUERY, name, _REMADE, f"query number {index}")
    query_id = query.get("query_id", str, "an id")
    if not query_id:
        raise query.wrong("query_id", "an id")
    query.where = f"query {query_id}"
    grades = query.get("judgments", dict, "grades of documents")
    if any(not doc_id for doc_id in grades):
        raise query.wrong("judgments", "grades of documents with ids")
    parsed_grades = {doc_id: finite(grade) for doc_id, grade in grades.items()}
    judgments = {doc_id: grade for doc_id, grade in parsed_grades.items() if grade is not None}
    if len(judgments) < len(grades) or min(judgments.values(), default=0.0) < 0:
        raise query.wrong("judgments", "grades from 0 up")
    return CertifiedQuery(
        weight=query.above_zero("weight"),
        baseline=_ranking(query, "baseline"),
        candidate=_ranking(query, "candidate"),
        judgments=judgments,
        **query.plain(CertifiedQuery, "weight"),
    )


def _ranking(query: Fields, key: str) -> tuple[str, ...]:
    ids = query.get(key, list, "a list of documents")
    if any(not isinstance(doc_id, str) or not doc_id for doc_id in ids):
        raise query.wrong(key, "a list of document ids")
    if len(set(ids)) < len(ids):
        raise query.wrong(key, "a list of documents, each once")
    return tuple(ids)


def _measure(head: Fields) -> str:
    text = head.get("measure", str, "a measure")
    try:
        measure = parse(text)
        same = str(measure) == text and (measure.depth or 0) <= _DEEPEST
    except UsageError:
        same = False
    if not same:
        raise head.wrong("measure", "the name of a measure as karat prints it")
    return cast(str, text)


def _scale(head: Fields) -> tuple[float, float]:
    expected = "the lowest and the highest grade"
    ends = [finite(end) for end in head.get("scale", list, expected)]
    try:
        return read_scale(ends)
    except UsageError:
        raise head.wrong("scale", expected) from None


def _unseen(head: Fields, unlimited: bool) -> int | None:
    if head.value["unseen"] is None:
        return None
    expected = (
        "null, as unseen_unlimited is true" if unlimited else "a whole number from 0, or null"
    )
    value: int = head.get("unseen", int, expected)
    if unlimited or value < 0:
        raise head.wrong("unseen", expected)
    return value
