"""The file beside a run: what it keeps, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError
from karat.tables import Run
from karat.workflows.lint.lint import lint


def write(folder: Path) -> Path:
    """A TREC run of a query that was answered and one that failed, with its sidecar."""
    run = Run.from_dict({"1": {"a": 2.0}, "2": None})
    run.about = {"engine": "prod"}
    formats.write_run(run, folder / "x.trec")
    return folder / "x.trec.about.json"


def test_it_is_found_through_a_link_and_says_what_trec_cannot(tmp_path: Path) -> None:
    beside = write(tmp_path)
    assert json.loads(beside.read_text())["answers"] == [
        {"query_id": "1", "state": "ok"},
        {"query_id": "2", "state": "failed"},
    ]
    (tmp_path / "latest").symlink_to("x.trec")
    back = formats.read_run(tmp_path / "latest")
    assert back.about["engine"] == "prod"
    assert back.answers["state"].to_list() == ["ok", "failed"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "damaged: the file is empty"),
        ("[1]", "damaged: not an object"),
        ('{"about": 3}', "damaged: not an object"),
        ('{"about": {"a": 1},', "not JSON"),
        ('{"about": {" ": 1}}', "keys are text"),
        ('{"about": {}, "answers": [1]}', '"answers" is not a list of objects'),
        ('{"answers": [{"query_id": "2", "state": "lost"}]}', "answer 1: unknown state 'lost'"),
        ('{"answers": [{"state": "ok"}]}', "answer 1: the query_id is empty"),
        ('{"answers": [{"query_id": "3", "state": "empty"}]}', '"answers" without "run"'),
        (json.dumps({"about": {"template": "x" * 50_000}}), "the limit is 49,152"),
    ],
)
def test_a_damaged_one_is_named(tmp_path: Path, text: str, says: str) -> None:
    beside = write(tmp_path)
    beside.write_text(text)
    with pytest.raises(InputError) as caught:
        formats.read_run(tmp_path / "x.trec", may_be_empty=True)
    assert caught.value.file == str(beside)
    assert says in str(caught.value)
    found = lint([tmp_path / "x.trec", beside])
    assert {finding.file for finding in found.findings} == {str(beside), str(tmp_path / "x.trec")}


def test_one_of_an_earlier_run_is_refused_and_one_by_hand_is_not(tmp_path: Path) -> None:
    beside = write(tmp_path)
    with (tmp_path / "x.trec").open("a") as stream:
        stream.write("2 Q0 b 1 1 x\n")
    with pytest.raises(InputError, match=r"x.trec.about.json: x.trec has changed since"):
        formats.read_run(tmp_path / "x.trec")
    beside.write_text('{"about": {"index": "docs-7"}}')
    assert formats.read_run(tmp_path / "x.trec").about == {"tag": "x", "index": "docs-7"}


def test_a_change_after_the_first_mebibyte_is_found(tmp_path: Path) -> None:
    run = Run.from_dict({"1": {f"d{n:060}": -float(n) for n in range(20_000)}, "2": None})
    formats.write_run(run, tmp_path / "x.trec")
    whole = (tmp_path / "x.trec").read_bytes()
    assert len(whole) > 1 << 20
    at = whole.rindex(b"d0")
    (tmp_path / "x.trec").write_bytes(whole[:at] + b"e" + whole[at + 1 :])  # of the same size
    with pytest.raises(InputError, match=r"x\.trec has changed since"):
        formats.read_run(tmp_path / "x.trec")


def test_ok_without_documents_is_refused(tmp_path: Path) -> None:
    beside = write(tmp_path)
    said = json.loads(beside.read_text())
    said["answers"].append({"query_id": "3", "state": "ok"})
    beside.write_text(json.dumps(said))
    with pytest.raises(InputError, match=r"the state is ok, but x\.trec") as caught:
        formats.read_run(tmp_path / "x.trec")
    assert (caught.value.file, caught.value.query) == (str(beside), "3")
    assert "the state is ok, but" in str(lint([tmp_path / "x.trec"]).findings)


def test_one_by_hand_stays_when_the_run_is_written_anew(tmp_path: Path) -> None:
    beside = write(tmp_path)
    beside.write_text('{"about": {"index": "docs-7"}}')
    formats.write_run(Run.from_dict({"1": {"a": 1.0}}, "x"), tmp_path / "x.trec")
    assert formats.read_run(tmp_path / "x.trec").about == {"tag": "x", "index": "docs-7"}


def test_it_is_not_read_as_a_run(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="the description of a run; karat reads it along with the run"
    ):
        formats.read_run(write(tmp_path))


def test_lint_reads_what_is_beside_and_finds_nothing(tmp_path: Path) -> None:
    beside = write(tmp_path)
    run = Run.from_dict({"1": {"a": 2.0}, "2": None})
    run.about = {"engine": "prod"}
    formats.write_run(run, tmp_path / "x.jsonl")
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 b 1\n")
    found = lint([tmp_path / "qrels", tmp_path / "x.trec", beside, tmp_path / "x.jsonl"])
    assert not found.findings  # in neither run is query 2 missing: it failed


def test_a_parquet_file_whose_metadata_is_damaged_is_refused(tmp_path: Path) -> None:
    rows = Run.from_dict({"1": {"a": 2.0}}).frame()
    rows.write_parquet(tmp_path / "x.parquet", metadata={"karat_about": "{"})
    with pytest.raises(InputError, match="the metadata karat_about is not a JSON object"):
        formats.read_run(tmp_path / "x.parquet")


def test_the_lines_of_a_run_with_a_header_are_counted_with_it(tmp_path: Path) -> None:
    row = '{"query_id": "1", "doc_id": "a", "score": %s}\n'
    (tmp_path / "x.jsonl").write_text('{"about": {"a": "b"}}\n' + row % 2 + row % '"high"')
    with pytest.raises(InputError, match="the score 'high' is not a number") as caught:
        formats.read_run(tmp_path / "x.jsonl")
    assert caught.value.line == 3
    (tmp_path / "x.jsonl").write_text('{"about": {"a": "b"}}\n' + row % 2 + row % 1)
    with pytest.raises(InputError, match="duplicate document a") as caught:
        formats.read_run(tmp_path / "x.jsonl")
    assert caught.value.line == 3
