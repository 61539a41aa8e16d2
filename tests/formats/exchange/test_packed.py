"""A BEIR folder in a ZIP file: what belongs to it is found, and nothing is written elsewhere."""

from __future__ import annotations

import errno
import io
import zipfile
from pathlib import Path

import pytest

from karat.errors import InputError, is_disk_full
from karat.formats.exchange import packed as zips
from karat.formats.exchange import source_file
from karat.formats.exchange.packed import beir_in

QUERY = b'{"_id": "q1", "text": "door"}\n'
QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t3\n"


def packed(path: Path, files: dict[str, bytes]) -> Path:
    """A ZIP file of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    path.write_bytes(made.getvalue())
    return path


@pytest.mark.parametrize("root", ["", "shop-now/", "a/b/"])
def test_the_folder_is_found_wherever_it_lies(root: str, tmp_path: Path) -> None:
    files = {
        "queries.jsonl": QUERY,
        "qrels/test.tsv": QRELS,
        "README.md": b"",
        "x/qrels/a.tsv": b"",
    }
    path = packed(tmp_path / "a.zip", {f"{root}{name}": data for name, data in files.items()})
    with beir_in(path) as folder:
        assert folder is not None
        held = {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
        assert held == {"queries.jsonl", "qrels/test.tsv"}
        assert (folder / "qrels/test.tsv").read_bytes() == QRELS
    assert not folder.exists()


def test_what_is_no_such_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_bytes(QRELS)
    for path in (
        tmp_path / "plain.csv",
        tmp_path / "missing",
        tmp_path,
        packed(tmp_path / "book.zip", {"book.json": b"{}"}),
        packed(tmp_path / "judged.zip", {"shop/qrels/test.tsv": QRELS}),  # is one file
    ):
        with beir_in(path) as folder:
            assert folder is None


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"queries.jsonl": QUERY, "../qrels/test.tsv": QRELS}, "outside of it"),
        ({"/queries.jsonl": QUERY}, "outside of it"),
        ({"C:/queries.jsonl": QUERY}, "outside of it"),
        ({"C:queries.jsonl": QUERY}, "outside of it"),
        ({"queries.jsonl": b" " * (1 << 22)}, "which real data does not"),
    ],
)
def test_what_is_not_safe_is_refused(
    files: dict[str, bytes], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_file, "BOMB_FROM", 1 << 18)
    path = packed(tmp_path / "a.zip", files)
    with pytest.raises(InputError, match=says), beir_in(path):
        pass


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", {"queries.jsonl": QUERY * 99})
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError, match="damaged or truncated"), beir_in(path):
        pass


def wrong_in(path: Path) -> None:
    """Find something wrong in a file of the folder."""
    with beir_in(path) as folder:
        assert folder is not None
        where = str(folder / "qrels/test.tsv")
        raise InputError(f"{where} is odd", file=where, line=3, fix=f"mend {where}")


def test_what_is_wrong_in_it_names_the_part(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", {"a/queries.jsonl": QUERY})
    with pytest.raises(InputError) as refused:
        wrong_in(path)
    error = refused.value
    assert (error.what, error.file, error.line) == (
        "qrels/test.tsv: qrels/test.tsv is odd",
        str(path),
        3,
    )
    assert error.fix == "mend qrels/test.tsv"


def test_several_files_that_expand_much_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zips, "BOMB_FROM", 1 << 20)
    # Each alone is small enough.
    parts = ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv")
    path = packed(tmp_path / "bomb.zip", dict.fromkeys(parts, b" " * (700 << 10)))
    with pytest.raises(InputError, match="expands more than 250 times, to 2 MiB"), beir_in(path):
        pytest.fail("it was unpacked")


def test_only_the_split_that_is_meant_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"queries.jsonl": QUERY, "qrels/train.tsv": QRELS}
    path = packed(tmp_path / "a.zip", parts | {"qrels/test.tsv": QRELS})
    with beir_in(path) as folder:
        assert folder is not None
        assert [each.name for each in (folder / "qrels").iterdir()] == ["test.tsv"]
    path = packed(tmp_path / "b.zip", parts | {"qrels/dev.tsv": QRELS})
    monkeypatch.setattr(zips.shutil, "copyfileobj", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match=r"several splits \(dev, train\)"), beir_in(path):
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_is_no_damage_of_the_file(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, "full")

    path = packed(tmp_path / "a.zip", {"queries.jsonl": QUERY})
    monkeypatch.setattr(zips.shutil, "copyfileobj", full)
    with (
        pytest.raises(InputError, match="not enough disk space to unpack it") as refused,
        beir_in(path),
    ):
        pass
    assert is_disk_full(refused.value)
