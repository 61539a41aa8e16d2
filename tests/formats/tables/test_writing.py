from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.choosing import deep_but

from karat import formats
from karat.errors import InputError, UsageError
from karat.tables import Qrels, Run

RUN = Run.from_dict({"1": {"a": 2.0}})
QRELS = Qrels.from_dict({"1": {"a": 2.0}})


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("x.trec", b"1 Q0 a"),
        ("x.TXT", b"1 Q0 a"),
        ("x.qrels", b"1 Q0 a"),
        ("x.run", b"1 Q0 a"),
        ("x.tsv", b"query_id\tdoc_id"),
        ("x.csv", b"query_id,doc_id"),
        ("x.jsonl", b'{"query_id"'),
        ("x.parquet", b"PAR1"),
        ("x.json", b"{\n"),
        ("x.run.gz", b"\x1f\x8b"),
        ("x.csv.zst", b"\x28\xb5\x2f\xfd"),
        ("x.json.bz2", b"BZh"),
    ],
)
def test_the_name_tells_the_format(name: str, start: bytes, tmp_path: Path) -> None:
    formats.write_run(RUN, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert formats.read_run(tmp_path / name).to_dict() == RUN.to_dict()


def test_a_name_that_tells_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot tell"):
        formats.write_run(RUN, tmp_path / "x.doc")
    with pytest.raises(UsageError, match=r"\.jsonl"):
        formats.write_queries(formats.read_queries(_queries(tmp_path)), tmp_path / "x.trec")
    with pytest.raises(UsageError, match="unknown format"):
        formats.write_run(RUN, tmp_path / "x", "trek")


def _queries(folder: Path) -> Path:
    (folder / "q.jsonl").write_text('{"query_id": "1", "text": "x"}\n')
    return folder / "q.jsonl"


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        formats.write_run(RUN, tmp_path / "nowhere" / "x.run")
    with pytest.raises(InputError, match="a folder"):
        formats.write_run(RUN, tmp_path, "trec")


def test_links_and_modes_stay(tmp_path: Path) -> None:
    (tmp_path / "real.run").write_text("old")
    (tmp_path / "real.run").chmod(0o600)
    (tmp_path / "link.run").symlink_to("real.run")
    formats.write_run(RUN, tmp_path / "link.run")
    assert (tmp_path / "link.run").is_symlink()
    assert (tmp_path / "real.run").read_text().startswith("1 Q0 a")
    assert (tmp_path / "real.run").stat().st_mode & 0o777 == 0o600


def test_interrupted_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        formats.write_qrels(QRELS, tmp_path / "x.qrels")
    assert not list(tmp_path.iterdir())


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.run.gz", "b.run.gz"):
        formats.write_run(RUN, tmp_path / name)
    assert (tmp_path / "a.run.gz").read_bytes() == (tmp_path / "b.run.gz").read_bytes()


def test_a_device_is_written_to_and_not_renamed_over() -> None:
    formats.write_run(RUN, Path("/dev/null"), "trec")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet", "json"])
@pytest.mark.parametrize("details", deep_but([True], [True, False]))
@pytest.mark.parametrize(
    "states",
    [
        {"a": "failed", "b": "failed"},
        {"a": "failed"},
        {"a": "empty", "b": "empty"},
        {"a": "failed", "b": "ok"},
        {"a": "empty", "b": "ok", "c": "failed"},
    ],
)
def test_a_run_that_did_not_answer_comes_back(
    tmp_path: Path, ending: str, details: bool, states: dict[str, str]
) -> None:
    docs = {"ok": {"x": 1.5}, "empty": {}, "failed": None}
    run = Run.from_dict({query: docs[state] for query, state in states.items()})
    failed = pl.col("state") == "failed"
    if details and ending != "json":
        run.answers = run.answers.with_columns(
            error=pl.when(failed).then(pl.lit("timeout")), latency_us=pl.lit(7, pl.Int64)
        )
    formats.write_run(run, tmp_path / f"x.{ending}")
    back = formats.read_run(tmp_path / f"x.{ending}")
    told = run.answers.select(c.name for c in run.answers if c.null_count() < len(c))
    assert back.answers.select(told.columns).sort("query_id").equals(told.sort("query_id"))
    assert back.to_dict() == run.to_dict()
    assert len(back) == len(run)


@pytest.mark.parametrize("content", ["", " \n \n", "# a comment\n", "query_id,doc_id,score\n"])
def test_an_empty_file_is_a_run_without_a_query_only_for_who_asks(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(InputError, match=r"empty|only comments|no ranking"):
        formats.read_run(tmp_path / "x.csv")
    run = formats.read_run(tmp_path / "x.csv", may_be_empty=True)
    assert (run.name, len(run), run.answers.height) == ("x", 0, 0)
    with pytest.raises(InputError, match="no such file"):
        formats.read_run(tmp_path / "y.csv", may_be_empty=True)


@pytest.mark.parametrize("ending", [".parquet", ".parquet.gz", ".trec", ".csv", ".jsonl", ".json"])
def test_a_scale_is_kept_or_named_as_lost(ending: str, tmp_path: Path) -> None:
    grades = pl.DataFrame({"query_id": ["q1"], "doc_id": ["a"], "grade": [2.0]})
    qrels = Qrels(grades, scale=(0, 3), without=["q2"])
    lost = formats.write_qrels(qrels, tmp_path / f"x{ending}")
    again = formats.read_qrels(tmp_path / f"x{ending}")
    if "parquet" in ending:
        assert (lost, again.declared, again.without) == ([], (0.0, 3.0), {"q2"})
    else:
        assert lost == ["the scale 0-3", "queries without a relevant document: 1"]
        assert (again.declared, again.without) == (None, frozenset())
    assert formats.write_qrels(Qrels(grades), tmp_path / f"y{ending}") == []
    assert formats.read_qrels(tmp_path / f"y{ending}").declared is None
