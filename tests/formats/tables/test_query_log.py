from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.tables import source
from karat.formats.tables.query_log import read_query_log


def written(folder: Path, text: str | bytes, name: str = "log") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        'query,count,country\n"red, shoes",7,de\n007,1,\n',
        "country;frequency;Search-Term\nde;7;red, shoes\n;1;007\n",
        "q\tsearches\tcountry\nred, shoes\t7\tde\n007\t1\t\n",
        '\ufeffuser_query,volume,country\r\n"red, shoes",7.0,de\r\n007,1,\r\n',
        '{"text": "red, shoes", "count": 7, "country": "de"}\n\n{"count": "1", "text": "007"}\n',
    ],
)
def test_counts_and_attributes(tmp_path: Path, text: str) -> None:
    frame = read_query_log(written(tmp_path, text))
    assert frame.select("text", "count", "country").rows() == [
        ("red, shoes", 7, "de"),
        ("007", 1, None),
    ]
    assert frame.schema == {"text": pl.String, "count": pl.Int64, "country": pl.String}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("red shoes\nblue, green\nred shoes\n", [("red shoes", 1), ("blue, green", 1)]),
        ('query\nred shoes\n"blue, ""x"""\n', [("red shoes", 1), ('blue, "x"', 1)]),
        ("red shoes\t12\n2024\t3\n", [("red shoes", 12), ("2024", 3)]),
        ("12,red shoes\n3,tv\n", [("red shoes", 12), ("tv", 3)]),
        ("     12 red shoes\n1234567 tv  set\n", [("red shoes", 12), ("tv  set", 1234567)]),
        ("query\tuser\nred shoes\t1\n", [("red shoes", 1)]),
        ("one", [("one", 1)]),
    ],
)
def test_logs_without_names_or_counts(
    tmp_path: Path, text: str, rows: list[tuple[str, int]]
) -> None:
    frame = read_query_log(written(tmp_path, text))
    assert frame.select("text", "count").rows()[: len(rows)] == rows


def test_a_cell_may_span_lines_and_the_file_be_compressed(tmp_path: Path) -> None:
    text = b'query,count\n"red\nshoes",2\nx,3\n'
    path = written(tmp_path, gzip.compress(text), "log.csv.gz")
    assert read_query_log(path).rows() == [("red\nshoes", 2), ("x", 3)]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    frame = pl.DataFrame({"Query": ["a", None], "freq": [2.0, 1.0], "n": [1, 2], "tags": [[1], []]})
    frame.write_parquet(tmp_path / "log")
    found = read_query_log(tmp_path / "log")
    assert found.rows() == [("a", 2, 1), (None, 1, 2)]
    assert found.columns == ["text", "count", "n"]


def test_jsonl_attributes_keep_a_type_they_share(tmp_path: Path) -> None:
    text = '{"q": "a", "n": 1}\n{"q": 7, "n": 2, "m": true}\n{"q": null, "m": "x"}\n'
    found = read_query_log(written(tmp_path, text))
    assert found["text"].to_list() == ["a", "7", None]
    assert found["n"].to_list() == [1, 2, None]
    assert found["m"].to_list() == [None, "true", "x"]


def test_columns_may_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "was,gefragt\nred shoes,7\n")
    found = read_query_log(path, text="was", count="gefragt")
    assert found.rows() == [("red shoes", 7)]
    with pytest.raises(InputError, match="did you mean 'gefragt'"):
        read_query_log(path, text="was", count="gefragd")
    with pytest.raises(InputError, match="no column 'what'"):
        read_query_log(path, text="what")


def test_a_large_file_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: bool
) -> None:
    # Beyond 8 MiB, files are cut where lines end.
    if not deep:
        monkeypatch.setattr(source, "CHUNK", 1 << 16)
    rows = 90_000 if deep else 2_000
    text = "query,count\n" + "".join(f"query {'x' * 100} {at},{at}\n" for at in range(rows))
    path = written(tmp_path, text)
    assert path.stat().st_size > 2 * source.CHUNK
    found = read_query_log(path)
    assert found.height == rows
    assert found["count"].sum() == rows * (rows - 1) // 2


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("query,count\na,1\nb,many\n", "'many' is not a whole number", 3),
        ("query,count\na,-1\n", "'-1' is not a whole number", 2),
        ("query,count\na,1.5\n", "'1.5'", 2),
        ("query,count\na,\n", "''", 2),
        ("query,count\na,1,2\n", "3 cells where there are 2 columns", 2),
        ('query,count\n"a,1\nb,2\n', "a quote is never closed", 2),
        ("query,text,count\na,b,1\n", "ambiguous columns 'query' and 'text'", None),
        ("query,count,searches\na,1,1\n", "'count' and 'searches'", None),
        ("title\tsize\na\tb\n", "no column of queries; the columns are 'title', 'size'", None),
        ("query,query\na,b\n", "duplicate column name", None),
        ('{"title": "x"}\n', "no column of queries", 1),
        ('{"query": "a", "count": true}\n', "True is not a whole number", 1),
        ('{"query": ["a"]}\n', "'query' is not text", 1),
        ('{"query": "a"\n', "not JSON", 1),
        ('[{"query": "a"}]\n', "JSON array", None),
        (b"query,count\nM\xfcller,1\n", "not UTF-8", 2),
        (b"query\na\x00b\n", "binary data", 2),
        ("query,count\n", "contains no query", None),
        ("", "empty", None),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str | bytes, said: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        read_query_log(written(tmp_path, text))
    assert said in str(caught.value)
    assert caught.value.file == str(tmp_path / "log")
    assert line is None or caught.value.line == line


def test_damaged_parquet_and_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="damaged"):
        read_query_log(written(tmp_path, b"PAR1" + b"x" * 40))
    with pytest.raises(InputError, match="no such file"):
        read_query_log(tmp_path / "none")
    pl.DataFrame({"query": [["a"]]}).write_parquet(tmp_path / "p")
    with pytest.raises(InputError, match="is not text"):
        read_query_log(tmp_path / "p")


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("de.csv", "anfrage,n\nwing,3\nflap,2\n", "such as 'anfrage', and that of counts, 'n'"),
        ("log", "anfrage,n\nwing,3\nflap,2\n", "such as 'anfrage', and that of counts, 'n'"),
        (
            "log",
            '"anfrage","die Zahl"\nwing,3\n',
            "such as 'anfrage', and that of counts, 'die Zahl'",
        ),
        ("de.csv.gz", "n;anfrage\n3;wing\n2;flap\n", "such as 'anfrage', and that of counts, 'n'"),
        (
            "de.tsv",
            "anfrage\tland\twann\nwing\tde\t3\n\nflap\tat\n",
            "such as 'anfrage', and that of counts, 'wann'",
        ),
        # Of two columns of numbers, nobody knows which is the counts.
        ("de.csv", "anfrage,n,m\nwing,3,1\nflap,2,1\n", "such as 'anfrage'"),
        ("de.csv", "wing,3,de\nflap,2,at\n", "add a header line"),
    ],
)
def test_a_table_of_unknown_columns_is_no_list_of_queries(
    tmp_path: Path, name: str, text: str, fix: str
) -> None:
    data = gzip.compress(text.encode()) if name.endswith("gz") else text
    with pytest.raises(InputError, match="no column of queries; the columns are ") as caught:
        read_query_log(written(tmp_path, data, name))
    assert fix in str(caught.value.fix)


@pytest.mark.parametrize(
    "text",
    [
        "red, blue\ngreen, tall\nnew, old\n",  # what is typed has a space behind its commas
        "red,blue\ngreen\nnew,old\n",
        "red,blue\ngreen,tall\n",  # two lines are too few to tell
        "red shoes\nblue;green\nold;new\n",
    ],
)
def test_commas_in_queries_make_no_table(tmp_path: Path, text: str) -> None:
    assert read_query_log(written(tmp_path, text))["text"].to_list() == text.splitlines()


def test_a_list_under_a_name_of_a_table_needs_a_line_above_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the header line query"):
        read_query_log(written(tmp_path, "red,blue\ngreen,tall\n", "log.csv"))
    found = read_query_log(written(tmp_path, "query\nred,blue\ngreen,tall\n", "log.csv"))
    assert found["text"].to_list() == ["red,blue", "green,tall"]


def test_a_count_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'n'"):
        read_query_log(written(tmp_path, "red shoes\nblue\n"), count="n")


def test_points_between_groups_of_three_are_thousands_beside_semicolons(tmp_path: Path) -> None:
    notes: list[str] = []
    text = "query;count\nwing;1.000\nflap;1.234.567\nrib;999\nspar;7.0\n"
    found = read_query_log(written(tmp_path, text), notes=notes)
    assert found["count"].to_list() == [1000, 1234567, 999, 7]
    assert "semicolons" in notes[0]
    assert "2 counts" in notes[1]
    assert "1.000 is 1,000" in notes[1]
    with pytest.raises(InputError, match=r"'1\.5' is not a whole number"):
        read_query_log(written(tmp_path, "query;count\nwing;1.5\n"))
    # Without names they are counts too.
    bare = read_query_log(written(tmp_path, "wing;1.000\nflap;20\n"))
    assert bare.rows() == [("wing", 1000), ("flap", 20)]
    # Beside commas a point is a decimal one, and nothing needs to be said.
    plain: list[str] = []
    assert read_query_log(written(tmp_path, "query,count\nwing,1.000\n"), notes=plain).rows() == [
        ("wing", 1)
    ]
    assert plain == []
