"""Every format keeps its promises: a table that is written is read back the same."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat import formats
from karat.errors import InputError
from karat.formats import FORMATS
from karat.formats.tables.trec import out_of_order
from karat.tables import Documents, Qrels, Queries, Run
from karat.tables.about import facts

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ALL = settings.default.max_examples
FEW = settings(max_examples=5 if ALL == 25 else ALL)
"""For what is tried in each of many formats: 5 examples, all with --deep."""

AWKWARD = [
    "007",
    "NA",
    "null",
    "1e5",
    "None",
    "true",
    "-0",
    "é",
    "日本",
    'a"b',
    '"',
    "a,b",
    "'",
    "x#",
]
FREE = [*AWKWARD, "#x", "a b", " a ", "a\tb", "a\nb", "a\r\nb", "x\ufeff"]
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1
).filter(
    lambda text: text[0] != "\ufeff"  # a byte order mark, refused where an id begins
)
ANY = st.one_of(st.sampled_from(FREE), TEXT)
# What separates in trec_eval, and what begins a comment or a file, cannot be stored in its ids.
UNBROKEN = st.one_of(st.sampled_from(AWKWARD), TEXT).filter(
    lambda id_: not set(id_) & set(" \t\n\r\v\f") and id_[0] != "#"
)
UNTABBED = st.one_of(st.sampled_from([*AWKWARD, "a b"]), TEXT).filter(
    lambda id_: not set(id_) & set("\t\n\r") and not id_.strip().startswith("#")
)
NUMBERS = st.one_of(
    st.integers(-3, 5).map(float), st.floats(allow_nan=False, allow_infinity=False, width=64)
)


@dataclass(frozen=True)
class Contract:
    """What a format promises: one line for each format below.

    Attributes:
        ids: The ids it can hold.
        texts: The texts it can hold.
        scores: Whether a run keeps its scores, not only its order.
        states: Whether the file of a run alone keeps empty and failed queries.
        typed: Whether attributes keep their type, rather than become text.
        attributes: Whether it has attributes at all.
    """

    ids: st.SearchStrategy[str]
    texts: st.SearchStrategy[str] = TEXT
    scores: bool = True
    states: bool = True
    typed: bool = True
    attributes: bool = True


CONTRACTS = {
    "trec": Contract(UNBROKEN, states=False),
    "beir": Contract(ANY),
    "msmarco": Contract(UNBROKEN, UNTABBED, scores=False, states=False, attributes=False),
    "csv": Contract(ANY, typed=False),
    "tsv": Contract(ANY, typed=False),
    "jsonl": Contract(ANY),
    "parquet": Contract(ANY),
    "json": Contract(ANY),
    "golden": Contract(ANY),  # written whole, by GoldenSet.save: tests/formats/own/test_golden.py
}


def cases(role: str) -> list[str]:
    """The formats that read and write a role."""
    return [e.name for e in FORMATS.values() if role in e.writers and role in e.readers]


def test_every_format_has_a_contract() -> None:
    assert set(CONTRACTS) == set(FORMATS)


def test_what_can_be_written_can_be_read() -> None:
    for entry in FORMATS.values():
        # Pairs leave for those who judge; what comes back is qrels.
        written = set(entry.writers) - {"pairs"}
        assert written == set(entry.readers) or entry.name == "golden", entry.name


def table(
    ids: st.SearchStrategy[str], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Small tables {query: {document: number}}."""
    docs = st.dictionaries(ids, values, min_size=1, max_size=4)
    return st.dictionaries(ids, docs, min_size=1, max_size=4)


def again(write: Callable[..., None], read: Callable[..., Any], thing: Any, name: str) -> Any:
    """Write a table and read it back."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "x"
        write(thing, path, name)
        return read(path, name)


@pytest.mark.parametrize("name", cases("qrels"))
@FEW
@given(data=st.data())
def test_qrels_come_back(name: str, data: st.DataObject) -> None:
    qrels = Qrels.from_dict(data.draw(table(CONTRACTS[name].ids, NUMBERS)))
    back = again(formats.write_qrels, formats.read_qrels, qrels, name)
    assert back.to_dict() == qrels.to_dict()


@pytest.mark.parametrize("name", cases("qrels"))
@FEW
@given(data=st.data())
def test_subtopics_come_back_or_are_refused(name: str, data: st.DataObject) -> None:
    ids = CONTRACTS[name].ids
    key = st.tuples(ids, ids, ids)
    judged = data.draw(st.dictionaries(key, NUMBERS, min_size=2, max_size=8))
    columns = ["query_id", "subtopic", "doc_id", "grade"]
    rows = [(*key, grade) for key, grade in judged.items()]
    qrels = Qrels(pl.DataFrame(rows, schema=columns, orient="row"))
    if qrels.subtopics is None:
        return  # one that never changes says nothing
    if name == "trec" and out_of_order(pl.DataFrame(rows, schema=columns, orient="row")):
        return  # refused, as the documents seem to be in the column of iterations
    if name in ("beir", "json"):
        with pytest.raises(InputError, match="cannot store subtopics"):
            formats.write_qrels(qrels, "-", name)
        return
    back = again(formats.write_qrels, formats.read_qrels, qrels, name)
    assert back.to_dict() == qrels.to_dict()
    assert back.subtopics is not None
    assert back.subtopics.equals(qrels.subtopics)


def _is_key(text: str) -> bool:
    """Whether ``about`` takes it as it is: spaces at its ends go, and ``tag`` is TREC's own."""
    return text == text.strip() != "tag"


@pytest.mark.parametrize("name", cases("run"))
@FEW
@given(data=st.data())
def test_a_run_comes_back(name: str, data: st.DataObject) -> None:
    contract = CONTRACTS[name]
    scores: dict[str, dict[str, float] | None] = {**data.draw(table(contract.ids, NUMBERS))}
    for query in data.draw(st.lists(contract.ids, max_size=3)):
        scores.setdefault(query, data.draw(st.sampled_from([{}, None])))
    run = Run.from_dict(scores, name="x")
    run.about = data.draw(st.dictionaries(TEXT.filter(_is_key), TEXT, max_size=3))
    back = again(formats.write_run, formats.read_run, run, name)
    assert back.frame().drop("score").equals(run.frame().drop("score"))
    if contract.scores:
        assert back.frame().equals(run.frame())
    assert {key: value for key, value in back.about.items() if key != "tag"} == run.about
    state = ["query_id", "state", "returned"]
    assert sorted(back.answers.select(state).rows()) == sorted(run.answers.select(state).rows())


@pytest.mark.parametrize("name", cases("run"))
def test_latency_and_errors_come_back(name: str, tmp_path: Path) -> None:
    rows = pl.DataFrame({"query_id": ["1", "1"], "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    told = pl.DataFrame(
        {
            "query_id": ["1", "2", "3"],
            "state": ["ok", "empty", "failed"],
            "latency_us": [1500, 20, None],
            "error": [None, None, 'timeout, "504"'],
            "repeated": [2, None, None],
        }
    )
    run = Run.from_batches("x", [rows], answers=told)
    formats.write_run(run, tmp_path / "x", name)
    back = formats.read_run(tmp_path / "x")
    columns = ["query_id", "state", "returned", "latency_us", "error", "repeated"]
    assert back.answers.select(columns).equals(run.answers.select(columns))


@pytest.mark.parametrize("role", ["queries", "documents"])
@pytest.mark.parametrize("name", cases("queries"))
@FEW
@given(data=st.data())
def test_texts_and_attributes_come_back(role: str, name: str, data: st.DataObject) -> None:
    contract = CONTRACTS[name]
    ids = data.draw(st.lists(contract.ids, min_size=1, max_size=4, unique=True))
    count = len(ids)

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(values, min_size=count, max_size=count))

    key = "query_id" if role == "queries" else "doc_id"
    columns: dict[str, Any] = {key: ids, "text": column(contract.texts)}
    if contract.attributes:
        columns["lang"] = column(st.one_of(st.none(), contract.texts))
        columns["length"] = column(st.integers(0, 2**40))
    frame = pl.DataFrame(columns, schema_overrides={"lang": pl.String} if "lang" in columns else {})
    if role == "queries":
        thing: Queries | Documents = Queries(frame)
        back = again(formats.write_queries, formats.read_queries, thing, name)
    else:
        thing = Documents(frame)
        back = again(formats.write_documents, formats.read_documents, thing, name)
    if contract.attributes and not contract.typed:
        frame = frame.with_columns(pl.col("length").cast(pl.String))
    # A column without any value is not written at all in JSON.
    there = [name for name in frame.columns if frame[name].null_count() < count]
    assert back.frame.select(there).equals(frame.select(there))


QRELS = Qrels.from_dict({"1": {"a": 1.0, "b": 0.0, "c": 2.0}, "2": {"a": 0.5, "d": 1.0}})
RUN = Run.from_dict({"1": {"a": 2.5, "b": 1.5, "c": 1.0}, "2": {"a": 3.5, "d": -1.0}}, "bm25")
QUERIES = Queries(pl.DataFrame({"query_id": ["1", "2"], "text": ["wing flow", "heat"]}))
DOCUMENTS = Documents(
    pl.DataFrame({"doc_id": ["a", "b"], "text": ["about wings", "about heat, and flow"]})
)
THINGS: dict[str, Any] = {"qrels": QRELS, "run": RUN, "queries": QUERIES, "documents": DOCUMENTS}
PAIRS = [(name, role) for role in THINGS for name in cases(role)]


def written(name: str, role: str, path: Path) -> bytes:
    """The bytes of the small table of a role."""
    getattr(formats, f"write_{role}")(THINGS[role], path, name)
    return path.read_bytes()


def check(role: str, back: Any, name: str) -> None:
    """Compare what was read with what was written."""
    if role == "run" and not CONTRACTS[name].scores:
        assert back.frame().drop("score").equals(RUN.frame().drop("score"))
    elif role == "run":
        assert back.to_dict() == RUN.to_dict()
    else:
        assert back.frame.equals(THINGS[role].frame)


@pytest.mark.parametrize(("name", "role"), PAIRS)
def test_the_content_tells_the_format(name: str, role: str, tmp_path: Path) -> None:
    written(name, role, tmp_path / "bm25")
    check(role, getattr(formats, f"read_{role}")(tmp_path / "bm25"), name)


@pytest.mark.parametrize("ending", ["gz", "zst", "bz2"])
@pytest.mark.parametrize(("name", "role"), PAIRS)
def test_compressed_by_us_or_by_others(name: str, role: str, ending: str, tmp_path: Path) -> None:
    pack = {"gz": gzip.compress, "zst": zstd.compress, "bz2": bz2.compress}[ending]
    plain = written(name, role, tmp_path / "plain")
    ours, others = tmp_path / f"bm25.{ending}", tmp_path / "bm25"  # told by content, not name
    written(name, role, ours)
    others.write_bytes(pack(plain))
    assert ours.stat().st_size > 0
    assert ours.read_bytes()[:2] == others.read_bytes()[:2]
    for path in (ours, others):
        back = getattr(formats, f"read_{role}")(path)
        check(role, back, name)
        if role == "run":
            assert back.name == "bm25"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "role"), PAIRS)
def test_standard_input(
    name: str, role: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written(name, role, tmp_path / "x")
    with piped(gzip.compress(data) if packed else data, monkeypatch):
        back = getattr(formats, f"read_{role}")("-")
    check(role, back, name)
    if role == "run":
        assert back.name == "stdin"


class piped:  # noqa: N801 - reads as a phrase
    """Standard input as a pipe that hands over a byte, and then the rest."""

    def __init__(self, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        reading, writing = os.pipe()
        self._stream = io.TextIOWrapper(os.fdopen(reading, "rb"))
        monkeypatch.setattr(sys, "stdin", self._stream)

        def write() -> None:
            with os.fdopen(writing, "wb", buffering=0) as pipe:
                pipe.write(data[:1])
                pipe.write(data[1:])

        self._writer = threading.Thread(target=write)

    def __enter__(self) -> None:
        self._writer.start()

    def __exit__(self, *_: object) -> None:
        self._writer.join()
        self._stream.close()


@pytest.mark.parametrize(("name", "role"), PAIRS)
def test_standard_output(
    name: str, role: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = written(name, role, tmp_path / "x")
    getattr(formats, f"write_{role}")(THINGS[role], "-", name)
    assert capfdbinary.readouterr().out == data


TEXTUAL = [(name, role) for name, role in PAIRS if name != "parquet"]


@pytest.mark.parametrize(("name", "role"), TEXTUAL)
def test_a_byte_order_mark_is_no_part_of_an_id(name: str, role: str, tmp_path: Path) -> None:
    path = tmp_path / "bm25"
    path.write_bytes(b"\xef\xbb\xbf" + written(name, role, path))
    check(role, getattr(formats, f"read_{role}")(path), name)


@pytest.mark.parametrize(("name", "role"), TEXTUAL)
def test_windows_line_ends(name: str, role: str, tmp_path: Path) -> None:
    path = tmp_path / "bm25"
    path.write_bytes(written(name, role, path).replace(b"\n", b"\r\n"))
    check(role, getattr(formats, f"read_{role}")(path), name)


@pytest.mark.parametrize(("name", "role"), TEXTUAL)
def test_no_line_end_at_the_end(name: str, role: str, tmp_path: Path) -> None:
    path = tmp_path / "bm25"
    path.write_bytes(written(name, role, path).removesuffix(b"\n"))
    check(role, getattr(formats, f"read_{role}")(path), name)


@pytest.mark.parametrize(("name", "role"), TEXTUAL)
def test_blank_lines_around(name: str, role: str, tmp_path: Path) -> None:
    path = tmp_path / "bm25"
    path.write_bytes(b"\n" + written(name, role, path) + b"\n\n")
    check(role, getattr(formats, f"read_{role}")(path), name)


@pytest.mark.parametrize(
    ("name", "query", "doc"),
    [
        ("trec", "a b", "d"),
        ("trec", "q", "d\t1"),
        ("trec", "q", "d\n2"),
        ("trec", "#q", "d"),
        ("trec", "\ufeffq", "d"),
        ("jsonl", "\ufeffq", "d"),
        ("msmarco", "q\t1", "d"),
        ("msmarco", "q", "d\n"),
        ("csv", "q", "d\x00"),
        ("tsv", "q\x00", "d"),
    ],
)
@pytest.mark.parametrize("role", ["qrels", "run"])
def test_ids_a_format_cannot_hold_are_refused(
    name: str, query: str, doc: str, role: str, tmp_path: Path
) -> None:
    thing = (Qrels if role == "qrels" else Run).from_dict({"1": {"x": 1.0}, query: {doc: 1.0}})
    with pytest.raises(InputError, match="cannot be stored in") as caught:
        getattr(formats, f"write_{role}")(thing, tmp_path / "x", name)
    assert caught.value.query == query
    assert not list(tmp_path.iterdir()), "something was half-written"


@pytest.mark.parametrize("name", [n for n in cases("run") if not CONTRACTS[n].states])
def test_a_failed_query_does_not_become_a_missing_one(name: str, tmp_path: Path) -> None:
    run = Run.from_dict({"1": {"a": 1.0}, "2": None})
    for path, sidecar in ((tmp_path / "x", False), ("-", True)):
        with pytest.raises(InputError, match="failed"):
            formats.write_run(run, path, name, sidecar=sidecar)
    assert not list(tmp_path.iterdir())


# engine and parameters.k are the keys of DESIGN §10; the tag is the run's name.
ABOUT = {"engine": "prod", "index": "docs-7", "parameters": {"k": 3, "on": True}, "none": None}
READ = {"engine": "prod", "index": "docs-7", "parameters.k": "3", "parameters.on": "true"}


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("name", cases("run"))
def test_about_comes_back_and_a_run_without_one_takes_it_along(
    name: str, ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"bm25{ending}"
    run = Run.from_dict({"1": {"a": 2.0, "b": 1.0}, "2": {"c": 1.5}}, "bm25")
    run.about = ABOUT  # type: ignore[assignment]
    formats.write_run(run, path, name)
    back = formats.read_run(path)
    assert back.to_dict().keys() == run.to_dict().keys()
    assert facts(back.about) == READ
    beside = path.with_name(f"{path.name}.about.json")
    assert beside.exists() == ("about" not in FORMATS[name].keeps)
    formats.write_run(Run.from_dict({"1": {"a": 2.0, "b": 1.0}}), path, name)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert not facts(formats.read_run(path).about)
