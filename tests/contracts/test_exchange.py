"""What every exchange format keeps: out and in again, nothing silent, no file half-read."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.choosing import deep_but

from karat.errors import InputError, KaratError
from karat.formats.exchange import source_file
from karat.formats.exchange.catalogue import EXCHANGES, Peer, read_exchange, write_exchange
from karat.formats.exchange.detect import detect
from karat.formats.exchange.source_file import open_source_file
from karat.tables.golden.golden_sets import Exchange

ALL = settings.default.max_examples
FEW = settings(max_examples=5 if ALL == 25 else ALL)
"""For what is tried in each of many formats: 5 examples, all with --deep."""

JUDGED = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "grade": pl.Float64,
    "rater": pl.String,
    "reason": pl.String,
}
WRITTEN = [peer.name for peer in EXCHANGES.values() if peer.write]
FILES = [name for name in WRITTEN if name != "beir"]  # a folder
GRADED = [name for name in WRITTEN if EXCHANGES[name].holds.judgments]
ONE_LINE = {"quepid-ltr"}  # the text stands on a line; ids may hold no white space
BARE_IDS = {"trec", "quepid-ltr"}
Judged = tuple[str, str, float | None, str | None, str | None]


def made(rows: list[Judged], texts: dict[str, str] | None = None, **others: Any) -> Exchange:
    """An exchange of judgments: query id, document, grade, rater, reason."""
    judgments = pl.DataFrame(rows, schema=JUDGED, orient="row") if rows else None
    queries = None
    if texts is not None:
        queries = pl.DataFrame({"query_id": list(texts), "text": list(texts.values())})
    return Exchange("made", queries=queries, judgments=judgments, **others)


def by_text(exchange: Exchange, peer: Peer) -> set[Judged]:
    """The judgments by the text of their query, as far as the format holds them."""
    texts: dict[str, str] = {}
    if exchange.queries is not None and "text" in exchange.queries.columns and peer.holds.text:
        texts = dict(exchange.queries.select("query_id", "text").iter_rows())
    assert exchange.judgments is not None
    return {
        (
            texts.get(query) or query,
            doc,
            grade,
            rater if peer.holds.raters or peer.holds.named else None,
            reason if peer.holds.reasons else None,
        )
        for query, doc, grade, rater, reason in exchange.judgments.select(*JUDGED).iter_rows()
        if grade is not None or peer.holds.unjudged
    }


WORD = st.text("abz09.:/_é漢", min_size=1, max_size=6)
ANY = st.text("ab 1=+-@\t\r\n\"',;{}[]#%ü漢\u2028😀", min_size=1, max_size=8).filter(
    lambda text: text.strip() != ""
)


@st.composite
def exchanges(draw: st.DrawFn, name: str) -> Exchange:
    """An exchange that the format holds without changing it, and some it must leave out."""
    peer = EXCHANGES[name]
    ids = WORD if name in BARE_IDS else ANY
    line = ANY.filter(lambda text: text == text.strip() and not set(text) & set("\r\n"))
    found = draw(st.lists(line if name in ONE_LINE else ANY, min_size=1, max_size=4, unique=True))
    query_ids = [f"id{place}" for place in range(len(found))]
    raters = [None, "ann@x.org", "bob@x.org"] if peer.holds.raters else ["ann@x.org"]
    grade = st.integers(-1, 4).map(float)
    if not peer.holds.whole:
        grade |= st.floats(0, 4, allow_nan=False).map(lambda value: round(value, 3))
    pairs = draw(
        st.lists(
            st.tuples(st.sampled_from(query_ids), ids, st.sampled_from(raters)),
            min_size=1,
            max_size=8,
            unique=True,
        )
    )
    why = st.none() | ANY
    rows = [(q, doc, draw(grade | st.none()), rater, draw(why)) for q, doc, rater in pairs]
    if all(row[2] is None for row in rows):
        rows[0] = (*rows[0][:2], 1.0, *rows[0][3:])
    return made(rows, dict(zip(query_ids, found, strict=True)))


@pytest.mark.parametrize("name", GRADED)
@FEW
@given(data=st.data())
def test_judgments_go_out_and_come_back(name: str, data: st.DataObject) -> None:
    peer, given_ = EXCHANGES[name], data.draw(exchanges(name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        told = write_exchange(given_, path, name)
        back = read_exchange(path, name)
    assert by_text(back, peer) == by_text(given_, peer)
    assert told.judgments is given_.judgments
    assert given_.judgments is not None
    unjudged = given_.judgments["grade"].null_count()
    if unjudged and not peer.holds.unjudged:
        assert any("could not be judged" in lost for lost in told.lost)
    if given_.judgments["reason"].drop_nulls().len() and not peer.holds.reasons:
        graded = given_.judgments.drop_nulls("grade")["reason"].drop_nulls().len()
        assert any("reasons" in lost for lost in told.lost) == bool(graded)
    if not peer.holds.ids:
        assert any("ids of queries" in lost for lost in told.lost)


SHEETS = ["quepid-csv", "quepid-book-csv", "csv"]


@pytest.mark.parametrize("name", SHEETS)
@FEW
@given(data=st.data())
def test_a_sheet_says_the_same_with_semicolons(name: str, data: st.DataObject) -> None:
    given_ = data.draw(exchanges(name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        write_exchange(given_, path, name)
        first = read_exchange(path, name)
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        numbers = [head in {"rating", "grade"} or "@" in head for head in rows[0]]
        for row in rows[1:]:
            cells = zip(row, numbers, strict=True)
            row[:] = [cell.replace(".", ",") if number else cell for cell, number in cells]
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter=";", quoting=csv.QUOTE_ALL).writerows(rows)
        second = read_exchange(path, name)
        assert detect(open_source_file(path)) == name
    assert first.judgments is not None
    assert second.judgments is not None
    assert second.judgments.equals(first.judgments)
    told = [each for each in second.assumed if each not in first.assumed]
    assert len(told) == 1
    assert told[0].startswith("cells are separated by semicolons")


SOUND = made(
    [("7", "a", 3.0, None, None), ("7", "b", 0.0, None, None), ("9", "a", 1.0, None, None)],
    {"7": "star wars", "9": "star trek", "11": "dune"},
    runs={
        "old": pl.DataFrame(
            {"query_id": ["7", "7", "9"], "doc_id": ["a", "b", "b"], "score": [2.0, 1.0, 5.0]}
        )
    },
)


def sound(name: str, folder: Path) -> Path:
    """A sound file of a format."""
    path = folder / f"sound.{name}"
    write_exchange(SOUND, path, name)
    return path


def said(path: Path, name: str | None) -> str | None:
    """The error of reading a file; None if it is read, and holds something."""
    try:
        found = read_exchange(path, name)
    except KaratError as error:
        return str(error)
    assert found.queries is not None or found.judgments is not None or found.runs
    return None


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_is_told_by_its_content(name: str, tmp_path: Path) -> None:
    found = read_exchange(sound(name, tmp_path))
    assert found.format == name
    assert found.kept


@pytest.mark.parametrize("name", FILES)
def test_a_mark_at_the_start_and_the_line_ends_of_windows_change_nothing(
    name: str, tmp_path: Path
) -> None:
    path = sound(name, tmp_path)
    data = path.read_bytes()
    other = tmp_path / path.name
    want = read_exchange(path, name)
    other.write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    found = read_exchange(other)
    assert found.format == name
    for table in ("queries", "judgments", "documents"):
        before, after = getattr(want, table), getattr(found, table)
        assert (before is None and after is None) or before.equals(after)
    assert found.runs.keys() == want.runs.keys()


@pytest.mark.parametrize("name", FILES)
def test_what_is_cut_off_is_refused_or_whole_rows(name: str, tmp_path: Path) -> None:
    path = sound(name, tmp_path)
    data, cut = path.read_bytes(), tmp_path / "cut"
    for end in range(0, len(data.rstrip()) - 1, max(1, len(data) // 60)):
        cut.write_bytes(data[:end])
        if data.startswith(b"{"):
            with pytest.raises(InputError) as caught:
                read_exchange(cut, name)
            assert str(cut) in str(caught.value)
            continue
        assert str(cut) in (said(cut, name) or str(cut))


@pytest.mark.parametrize("name", FILES)
@FEW
@given(data=st.data())
def test_no_damage_makes_anything_but_an_error_that_names_the_file(
    name: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = sound(name, Path(folder))
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(raw))
        assert "sound" in (said(path, data.draw(st.sampled_from([name, None]))) or "sound")


VALUES: list[Any] = [None, True, 7, -1.5, "", " ", "x", [], {}, [1], {"a": 1}, [[]], "NaN"]


def damaged(value: Any, draw: Any) -> Any:
    """The value with one of its parts replaced by something else."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: damaged(value[key], draw)}
    if isinstance(value, list) and value and draw(st.booleans()):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], damaged(value[place], draw), *value[place + 1 :]]
    return draw(st.sampled_from(VALUES))


JSON = [
    peer.name
    for peer in EXCHANGES.values()
    if peer.name not in ("beir", "trec", "csv", "quepid-ltr") and not peer.name.endswith("-csv")
]
OTHERS: dict[str, Any] = {
    "rank-eval-response": {
        "metric_score": "NaN",
        "details": {
            "q": {
                "unrated_docs": [{"_index": "i", "_id": "b"}],
                "hits": [
                    {"hit": {"_index": "i", "_id": "a", "_score": 2.5}, "rating": 3},
                    {"hit": {"_index": "i", "_id": "b", "_score": 1.5}, "rating": None},
                ],
            }
        },
        "failures": {},
    },
    "rankquest": [
        {"id": "1", "searchContext": {"q": "x"}, "ratings": [{"documentId": "a", "rating": 2}]}
    ],
}


@pytest.mark.parametrize("name", JSON)
@FEW
@given(data=st.data())
def test_values_of_the_wrong_type_are_refused_where_they_stand(
    name: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sound"
        if name in OTHERS:
            value = OTHERS[name]
        else:
            value = json.loads(sound(name, Path(folder)).read_bytes())
        path.write_text(json.dumps(damaged(value, data.draw)), encoding="utf-8")
        assert str(path) in (said(path, name) or str(path))


DEEP = b'{"queries": ' + b"[" * 100_000
READ = [name for name in EXCHANGES if name != "beir"]


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(DEEP, id="deep"),
        pytest.param(b'{"a": ' * 5_000 + b"1" + b"}" * 5_000, id="deep and closed"),
        pytest.param(b"\x00\x01\x02" * 99, id="binary"),
        pytest.param(b"{}", id="empty object"),
        pytest.param(b"[]", id="empty array"),
        pytest.param(b'{"queries": [], "requests": [], "ratings": [], "topics": []}', id="none"),
        pytest.param(b"\xff\xfeq\x00", id="UTF-16"),
        pytest.param(b"query,docid,rating\nx,a,NaN\n", id="NaN"),
        pytest.param(b'{"queries": [{"query": "a", "ratings": {"d": NaN}}]}', id="NaN in JSON"),
        pytest.param(b'{"queries": [{"query": "a", "query": "b"}]}', id="a key twice"),
        pytest.param(b"query,docid,rating\n" + b'"x', id="an open quote"),
        pytest.param(b"query,docid,rating\n\xe9,a,1\n", id="Latin-1"),
    ],
)
def test_what_is_no_such_file_is_one_error(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    plain = name == "opensearch-queries" and data.startswith(
        (b"query,docid,rating\nx", b'query,docid,rating\n"')
    )
    if plain:
        assert read_exchange(path, name).queries is not None  # any line is a query
        return
    with pytest.raises(InputError, match="bad"):
        read_exchange(path, name)


@pytest.mark.parametrize(
    "name",
    deep_but(["csv", "quepid-json"], ["quepid-csv", "csv", "quepid-json", "quepid-ltr"]),
)
def test_a_line_of_ten_megabytes_is_read(name: str, tmp_path: Path) -> None:
    long = "x" * 10_000_000
    told = made([("1", "a", 1.0, None, None)], {"1": long})
    write_exchange(told, tmp_path / "long", name)
    queries = read_exchange(tmp_path / "long").queries
    assert queries is not None
    assert queries["text"].to_list() == [long]


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as folder:
        for name, data in files.items():
            folder.writestr(name, data)
    return out.getvalue()


RATINGS = b'{"queries": [{"query": "a", "ratings": {"d": 1}}]}'


def test_a_file_in_a_zip_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json.zip"
    path.write_bytes(zipped({"x.json": RATINGS, "__MACOSX/._x.json": b"shadow"}))
    assert read_exchange(path).format == "quepid-json"


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"../x.json": RATINGS}, "outside of it"),
        ({"/etc/x.json": RATINGS}, "outside of it"),
        ({"a/../../x.json": RATINGS}, "outside of it"),
        ({"C:\\x.json": RATINGS}, "outside of it"),
        ({"a.json": RATINGS, "b.json": RATINGS}, "got 2 files"),
        ({}, "got 0 files"),
        ({"x.json": b" "}, "is empty"),
    ],
)
def test_a_zip_file_that_is_not_one_file_is_refused(
    files: dict[str, bytes], match: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(files))
    with pytest.raises(InputError, match=match):
        read_exchange(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_file, "BOMB_FROM", 1 << 20)
    path = tmp_path / "x.zip"
    path.write_bytes(zipped({"x.json": b" " * (2 << 20)}))  # deflate: about 1,000 to 1
    with pytest.raises(InputError, match="which real data does not"):
        read_exchange(path)


@given(st.integers(0, 400), st.integers(0, 255))
@example(10, 255)
def test_a_damaged_zip_file_is_refused_or_read_whole(place: int, byte: int) -> None:
    data = bytearray(zipped({"x.json": RATINGS}))
    data[place % len(data)] = byte
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.zip"
        path.write_bytes(bytes(data))
        try:
            found = read_exchange(path)
        except KaratError:
            return
    assert found.judgments is not None
    assert found.judgments.height == 1


def test_the_reference_lists_every_format() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/reference/exchange.md"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    told = {
        name.strip("`"): (reads, writes)
        for name, _, reads, writes in (row for row in rows if len(row) == 4)
    }
    assert told == {
        peer.name: (", ".join(peer.reads), ", ".join(peer.writes)) for peer in EXCHANGES.values()
    }
