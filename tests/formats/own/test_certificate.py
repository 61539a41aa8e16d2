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
from karat.formats.own.certificate import from_bytes, read_certificate, to_bytes, write_certificate
from karat.tables.release.certificate import Certificate


@pytest.fixture(scope="session")
def text(certificate: Certificate) -> str:
    """The file."""
    return to_bytes(certificate).decode()


def test_what_is_written_is_read(certificate: Certificate) -> None:
    for unseen, unlimited in ((4, False), (None, True), (None, False)):
        made = replace(certificate, unseen=unseen, unseen_unlimited=unlimited)
        found = from_bytes(to_bytes(made), "c.json")
        assert found == made
        assert found.sha256 == found.fingerprint == made.fingerprint
        assert found.source == "c.json"


@pytest.mark.parametrize("name", ["c.json", "c.json.gz", "c.json.zst", "c.json.bz2"])
def test_files_plain_and_compressed(
    name: str, certificate: Certificate, text: str, tmp_path: Path
) -> None:
    write_certificate(certificate, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert read_certificate(tmp_path / name) == certificate
    write_certificate(certificate, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name.endswith(".gz"):
        assert gzip.decompress(first).decode() == text


def test_each_query_is_a_line(certificate: Certificate, text: str) -> None:
    lines = text.split("\n")
    assert len(lines) == 1 + certificate.n + 2
    assert lines[1].startswith('  {"query_id": "Q"')
    assert json.loads(text)["n"] == 2


def test_it_cannot_be_written_where_there_is_no_folder(
    certificate: Certificate, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_certificate(certificate, tmp_path / "none" / "c.json")


def test_other_spacing_and_order_of_keys_is_the_same_certificate(
    certificate: Certificate, text: str
) -> None:
    content = json.loads(text)
    mixed = {key: content[key] for key in sorted(content, reverse=True)}
    mixed |= {"rel": 1.0}
    found = from_bytes(json.dumps(mixed, indent=2).encode(), "c")
    assert found == certificate
    assert found.fingerprint == found.sha256


def put(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update(changed)


def of_query(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["queries"][0].update(changed)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (put(karat_certificate=2), "version 2; this karat reads version 1"),
        (put(karat_certificate="1"), 'version "1"'),
        (put(karat_certificate=True), "version true"),
        (lambda content: content.pop("unseen"), "missing field 'unseen'"),
        (put(more=1), "unknown field 'more'"),
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
        (put(unjudged_low=float("nan")), "unjudged_low is NaN, not a finite number"),
        (put(unjudged_high=float("inf")), "unjudged_high is Infinity"),
        (put(unjudged_low="0.1"), 'unjudged_low is "0.1"'),
        (put(unjudged_low=10**400), "unjudged_low is 1000.*, not a finite number"),
        (put(unjudged_low=True), "unjudged_low is true"),
        (put(unjudged_exact=None), "unjudged_exact is null, not true or false"),
        (put(verdict="equivalent"), "verdict is \"equivalent\", not 'better' or 'worse'"),
        (put(verdict=None), "verdict is null"),
        (put(unseen=-1), "unseen is -1"),
        (put(unseen=1.5), "unseen is 1.5"),
        (put(unseen="any"), 'unseen is "any", not a whole number from 0, or null'),
        (put(unseen=True), "unseen is true"),
        (put(unseen_unlimited=True), "unseen is 4, not null, as unseen_unlimited is true"),
        (put(unseen_unlimited=None), "unseen_unlimited is null, not true or false"),
        (lambda content: content.pop("unseen_unlimited"), "missing field 'unseen_unlimited'"),
        (put(sha256=None), "sha256 is null"),
        (put(n=3), "n is 3, and it has 2 queries"),
        (put(n="2"), "n is"),
        (put(queries=[]), "queries is"),
        (put(queries={}), "queries is"),
        (put(queries=[3]), "query number 1 is not an object"),
        (lambda content: content["queries"].reverse(), "not sorted"),
        (of_query(query_id="é “q”"), "not unique or not sorted"),
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
        (of_query(rank=1), "query number 1: unknown field 'rank'"),
    ],
)
def test_damage_is_named(
    change: Callable[[dict[str, Any]], Any], complaint: str, text: str
) -> None:
    content = json.loads(text)
    change(content)
    with pytest.raises(InputError, match=complaint) as error:
        from_bytes(json.dumps(content).encode(), "c.json")
    assert str(error.value).startswith("c.json")
    assert "fix: " in str(error.value)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"karat_golden_set": 1}', b'["karat_certificate"]'],
)
def test_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^c\.json: not a karat certificate"):
        from_bytes(data, "c.json")


@pytest.mark.parametrize(
    ("spoilt", "complaint"),
    [
        (lambda text: text.encode()[:-3], "not JSON"),
        (lambda text: text.encode()[:700], "not JSON"),
        (lambda text: text.encode() + b"{}", "not JSON"),
        (lambda text: text.replace("{", '{"rel": 1, ', 1).encode(), "duplicate key"),
        (lambda text: text.encode().replace(b"old", b"\xff"), "not UTF-8"),
        (lambda text: text.replace("old", "\\ud800").encode(), "surrogate"),
        (lambda _: b'{"karat_certificate": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_spoilt_file_is_refused(
    spoilt: Callable[[str], bytes], complaint: str, text: str
) -> None:
    with pytest.raises(InputError, match=complaint) as error:
        from_bytes(spoilt(text), "c.json")
    assert str(error.value).startswith("c.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_certificate(tmp_path / "c.json")
    with pytest.raises(InputError, match="folder"):
        read_certificate(tmp_path)
    (tmp_path / "b").write_bytes(b"\x00" + b"\x07" * 500)
    with pytest.raises(InputError, match="binary"):
        read_certificate(tmp_path / "b")


@given(data=st.data(), byte=st.integers(0, 255))
def test_any_byte_may_be_damaged(
    data: st.DataObject, byte: int, certificate: Certificate, text: str
) -> None:
    spoilt = bytearray(text.encode())
    spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = byte
    try:
        found = from_bytes(bytes(spoilt), "c.json")
    except InputError as error:
        assert str(error).startswith("c.json")  # noqa: PT017 - or it is read:
    else:
        # Then the same is said with other spaces, or the fingerprint tells.
        assert found == certificate or found.sha256 != found.fingerprint
