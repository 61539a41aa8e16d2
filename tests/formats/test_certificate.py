"""Certificates in files: out and in again, and every damage named with the file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError
from karat.formats.certificate import from_bytes, read_certificate, to_bytes, write_certificate
from karat.tables.certificate import Certificate, CertifiedQuery

QUERIES = (
    CertifiedQuery("Q", 2.0, ("a", "b"), ("b",), {"a": 0.0, "b": 1.5}, 0.25, 0.5, 2.0, None),
    CertifiedQuery("é “q”", 1.0, (), ("x\u2028",), {}, -0.125, 1 / 3, 0.0, 3.0),
)
CERTIFICATE = Certificate(
    karat="1.0",
    measure="nDCG@2",
    scale=(0.0, 2.0),
    rel=1.0,
    depth=5,
    complete=True,
    collapse=None,
    baseline="old",
    candidate="new",
    difference=0.3,
    low=0.1,
    high=0.5,
    exact=True,
    sign="candidate is better",
    unseen=4,
    reason="",
    queries=QUERIES,
)
TEXT = to_bytes(CERTIFICATE).decode()


def test_what_is_written_is_read() -> None:
    for unseen in (4, "any", None):
        made = replace(CERTIFICATE, unseen=unseen)  # type: ignore[arg-type]
        found = from_bytes(to_bytes(made), "c.json")
        assert found == made
        assert found.sha256 == found.fingerprint == made.fingerprint
        assert found.source == "c.json"


@pytest.mark.parametrize("name", ["c.json", "c.json.gz", "c.json.zst", "c.json.bz2"])
def test_files_plain_and_compressed(name: str, tmp_path: Path) -> None:
    write_certificate(CERTIFICATE, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert read_certificate(tmp_path / name) == CERTIFICATE
    write_certificate(CERTIFICATE, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name.endswith(".gz"):
        assert gzip.decompress(first).decode() == TEXT


def test_each_query_is_a_line() -> None:
    lines = TEXT.split("\n")
    assert len(lines) == 1 + len(QUERIES) + 2
    assert lines[1].startswith('  {"query_id": "Q"')
    assert json.loads(TEXT)["n"] == 2


def test_it_cannot_be_written_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_certificate(CERTIFICATE, tmp_path / "none" / "c.json")


def test_other_spacing_and_order_of_keys_is_the_same_certificate() -> None:
    content = json.loads(TEXT)
    mixed = {key: content[key] for key in sorted(content, reverse=True)}
    mixed |= {"rel": 1.0}
    text = json.dumps(mixed, indent=2)
    found = from_bytes(text.encode(), "c")
    assert found == CERTIFICATE
    assert found.fingerprint == found.sha256


def put(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update(changed)


def of_query(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["queries"][0].update(changed)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (put(karat_certificate=2), "version 2, and this karat reads 1"),
        (put(karat_certificate="1"), 'version "1"'),
        (put(karat_certificate=True), "version true"),
        (lambda content: content.pop("unseen"), "'unseen' is lacking"),
        (put(more=1), "'more' is not part of one"),
        (put(measure="nDCG@x"), 'measure is "nDCG@x", not the name of a measure'),
        (put(measure="ndcg@2"), "as karat prints it"),
        (put(measure="P@100000000000000000000"), "not the name of a measure"),
        (put(measure=3), "measure is 3"),
        (put(scale=[2, 0]), r"scale is \[2, 0\]"),
        (put(scale=[0]), "scale is"),
        (put(scale=[0, "2"]), "scale is"),
        (put(rel=0), "rel is 0, not a number above 0"),
        (put(depth=0), "depth is 0"),
        (put(depth=10**30), "depth is 1000"),
        (put(depth=True), "depth is true"),
        (put(depth=2.5), "depth is 2.5"),
        (put(complete=1), "complete is 1, not true or false"),
        (put(low=float("nan")), "low is NaN, not a finite number"),
        (put(high=float("inf")), "high is Infinity"),
        (put(low="0.1"), 'low is "0.1"'),
        (put(low=10**400), "low is 1000.*, not a finite number"),
        (put(low=True), "low is true"),
        (put(sign="better"), "sign is"),
        (put(sign=None), "sign is null"),
        (put(unseen=-1), "unseen is -1"),
        (put(unseen=1.5), "unseen is 1.5"),
        (put(unseen="all"), "unseen is"),
        (put(sha256=None), "sha256 is null"),
        (put(n=3), "speaks of 3 queries and lists 2"),
        (put(n="2"), "n is"),
        (put(queries=[]), "queries is"),
        (put(queries={}), "queries is"),
        (put(queries=[3]), "query number 1 is no object"),
        (lambda content: content["queries"].reverse(), "in order"),
        (of_query(query_id="é “q”"), "once, in order"),
        (of_query(query_id=""), 'query_id is "", not an id'),
        (of_query(query_id=7), "query_id is 7"),
        (of_query(weight=0), "query Q: weight is 0"),
        (of_query(weight=float("nan")), "weight is NaN"),
        (of_query(baseline=["a", "a"]), "each once"),
        (of_query(baseline=["a", 1]), "a list of document ids"),
        (of_query(candidate=[""]), "a list of document ids"),
        (of_query(candidate="ab"), "a list of documents"),
        (of_query(judgments={"a": -1}), "grades from 0 up"),
        (of_query(judgments={"a": None}), "grades from 0 up"),
        (of_query(judgments={"": 1}), "with ids"),
        (of_query(judgments=["a"]), "grades of documents"),
        (of_query(ideal="2"), "ideal is"),
        (of_query(rank=1), "query number 1: 'rank' is not part"),
    ],
)
def test_damage_is_named(change: Callable[[dict[str, Any]], Any], complaint: str) -> None:
    content = json.loads(TEXT)
    change(content)
    with pytest.raises(InputError, match=complaint) as error:
        from_bytes(json.dumps(content).encode(), "c.json")
    assert str(error.value).startswith("c.json")
    assert "fix: " in str(error.value)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no certificate"),
        (b"{}", "no certificate"),
        (b'{"karat_golden_set": 1}', "no certificate"),
        (b'["karat_certificate"]', "no certificate"),
        (TEXT.encode()[:-3], "not JSON"),
        (TEXT.encode()[:700], "not JSON"),
        (TEXT.encode() + b"{}", "not JSON"),
        (TEXT.replace("{", '{"low": 1, ', 1).encode(), "stands twice"),
        (TEXT.encode().replace(b"old", b"\xff"), "not UTF-8"),
        (TEXT.replace("old", "\\ud800").encode(), "surrogate"),
        (b'{"karat_certificate": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_certificate_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as error:
        from_bytes(data, "c.json")
    assert str(error.value).startswith("c.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_certificate(tmp_path / "c.json")
    with pytest.raises(InputError, match="folder"):
        read_certificate(tmp_path)
    (tmp_path / "b").write_bytes(b"\x00" + b"\x07" * 500)
    with pytest.raises(InputError, match="binary"):
        read_certificate(tmp_path / "b")


@given(at=st.integers(0, len(TEXT.encode()) - 1), byte=st.integers(0, 255))
def test_any_byte_may_be_damaged(at: int, byte: int) -> None:
    data = bytearray(TEXT.encode())
    data[at] = byte
    try:
        found = from_bytes(bytes(data), "c.json")
    except InputError as error:
        assert str(error).startswith("c.json")  # noqa: PT017 - or it is read:
    else:
        # Then the same is said with other spaces, or the fingerprint tells.
        assert found == CERTIFICATE or found.sha256 != found.fingerprint
