from __future__ import annotations

import bz2
import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.choosing import deep_but

from karat.errors import InputError
from karat.formats.tables.source import EmptyFile, Source, not_utf8, zstd


def test_chunks_are_whole_lines_and_know_their_number(tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % i for i in range(50_000))
    (tmp_path / "x").write_bytes(lines)
    with Source(tmp_path / "x") as source:
        chunks = list(source.chunks(1000))
    assert b"".join(chunk.data for chunk in chunks) == lines
    for chunk in chunks:
        assert chunk.data.endswith(b"\n")
        assert chunk.data.startswith(b"line %d\n" % (chunk.first_line - 1))


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"1 0 a 1\n") + gzip.compress(b"1 0 b 1\n"))
    with Source(tmp_path / "x") as source:
        assert source.compressed == "gzip"
        assert source.whole() == b"1 0 a 1\n1 0 b 1\n"


def test_a_mark_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbf1 0 a 1\n")
    with Source(tmp_path / "x") as source:
        assert source.bom
        assert source.whole() == b"1 0 a 1\n"


def test_a_file_nobody_may_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder"):
        Source(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        Source(tmp_path / "nowhere" / "x")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("bm26.txt", "bm25.txt"),
        ("qrel.tsv", "qrels.txt"),
        ("gate.toml", "gates.toml"),
        # What they share is the ending: no guess is better than that one.
        ("nope.toml", None),
        ("x.txt", None),
    ],
)
def test_the_file_that_may_be_meant(typed: str, meant: str | None, tmp_path: Path) -> None:
    for name in ("bm25.txt", "qrels.txt", "gates.toml", "p16.toml", "new.trec"):
        (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match="no such file") as caught:
        Source(tmp_path / typed)
    assert caught.value.fix is not None
    assert ("did you mean" in caught.value.fix) is (meant is not None)
    assert meant is None or f"{tmp_path / meant}?" in caught.value.fix


def test_an_empty_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(" \n")
    with pytest.raises(EmptyFile, match="the file is empty") as caught:
        Source(tmp_path / "x")
    assert "write it again" in (caught.value.fix or "")


def test_a_bomb_of_short_lines_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    # 80 MiB from a few kilobytes; a run of it would take ten times that in memory.
    (tmp_path / "x").write_bytes(zstd.compress(b"q1 Q0 d1 1 1.0 runs\n" * (4 << 20)))
    with Source(tmp_path / "x") as source, pytest.raises(InputError, match="more than 250 times"):
        list(source.chunks())
    assert source.stored == (tmp_path / "x").stat().st_size


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd.compress])
@pytest.mark.parametrize("count", deep_but([2_000], [2_000, 200_000]))
def test_what_comes_before_the_damage_is_handed_out_first(
    pack: Callable[[bytes], bytes], count: int, tmp_path: Path
) -> None:
    draw = random.Random(0)
    text = b"".join(b"%032x\n" % draw.getrandbits(128) for _ in range(count))
    packed = pack(text)
    (tmp_path / "x").write_bytes(packed[: int(0.95 * len(packed))])
    got = bytearray()

    def read() -> None:
        with Source(tmp_path / "x") as source:
            for piece in source.pieces():
                got.extend(piece)

    with pytest.raises(InputError, match="damaged or truncated"):
        read()
    assert text.startswith(got)
    # A block of bzip2 holds 900 KB, one of zstd 128 KiB: of the one that is cut nothing is known.
    block = {gzip.compress: 1 << 16, bz2.compress: 900_000}.get(pack, 1 << 17)
    assert len(got) >= 0.94 * len(text) - block


def test_a_page_does_not_advise_a_command() -> None:
    error = not_utf8("it is not UTF-8", "a.csv", 1)
    assert error.fix == "save the file as UTF-8"
    assert "save the file as UTF-8: iconv -f latin1 -t UTF-8 a.csv" in str(error)
