"""The footer of Parquet files: as Polars writes it, and as strangers break it."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import deep_but

from karat.formats.tables._parquet_footer import odd_page, read_footer


def packed(frame: pl.DataFrame, **how: Any) -> bytes:
    """The frame as Parquet."""
    stream = io.BytesIO()
    frame.write_parquet(stream, **how)
    return stream.getvalue()


SOUND = packed(pl.DataFrame({"a": ["x", "y"], "b": [[1, 2, 3], [4]], "c": [True, None]}))


def test_rows_and_values_are_counted_over_all_groups() -> None:
    # 10 rows of two columns in groups of 4, 4 and 2; a page of 10 integers has 80 bytes and more.
    frame = pl.DataFrame({"a": range(10), "b": [f"row {k}" for k in range(10)]})
    found = read_footer(io.BytesIO(packed(frame, row_group_size=4)))
    assert found is not None
    assert (found.rows, found.values) == (10, 20)
    assert found.uncompressed >= 10 * 5 + 80
    nested = read_footer(io.BytesIO(SOUND))
    assert nested is not None
    assert (nested.rows, nested.values) == (2, 2 + 4 + 2)


def test_more_columns_than_fit_a_short_list() -> None:
    found = read_footer(io.BytesIO(packed(pl.DataFrame({f"c{k}": [k] for k in range(300)}))))
    assert found is not None
    assert (found.rows, found.values) == (1, 300)


def test_strings_that_compress_well_count_whole() -> None:
    found = read_footer(io.BytesIO(packed(pl.DataFrame({"a": ["x" * 10**6]}))))
    assert found is not None
    assert found.uncompressed >= 10**6


@given(st.integers(0, len(SOUND) - 1), st.integers(0, 255), st.integers(0, len(SOUND)))
def test_a_broken_footer_is_none_or_numbers(at: int, byte: int, end: int) -> None:
    for data in (SOUND[:at] + bytes([byte]) + SOUND[at + 1 :], SOUND[:end]):
        found = read_footer(io.BytesIO(data))
        assert found is None or isinstance(found.values + found.rows + found.uncompressed, int)


@given(st.binary(max_size=60))
def test_any_bytes_before_the_magic_end(data: bytes) -> None:
    read_footer(io.BytesIO(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1"))


FRAME = pl.DataFrame(
    {
        "a": [None if k % 7 == 0 else f"text {k % 50}" for k in range(5000)],
        "b": [float(k) for k in range(5000)],
        "c": [[k] * (k % 4) for k in range(5000)],
        "d": [{"x": k, "y": [str(k)]} for k in range(5000)],
        "e": [None] * 5000,
    }
)


def odd(data: bytes) -> str | None:
    footer = read_footer(io.BytesIO(data))
    assert footer is not None
    return odd_page(io.BytesIO(data), footer)


@pytest.mark.parametrize(
    "compression",
    deep_but(["uncompressed", "zstd"], ["uncompressed", "snappy", "gzip", "zstd", "lz4"]),
)
def test_pages_are_sound_whoever_wrote_them(compression: Any, tmp_path: Path) -> None:
    for frame in (FRAME, FRAME.head(0), FRAME.head(1)):
        for how in ({}, {"row_group_size": 999}, {"data_page_size": 512}):
            assert odd(packed(frame, compression=compression, **how)) is None
    arrow = pytest.importorskip("pyarrow.parquet")
    for version in ("1.0", "2.0"):
        for dictionary in (True, False):
            path = tmp_path / "x.parquet"
            known = "none" if compression == "uncompressed" else compression
            arrow.write_table(
                FRAME.drop("e").to_arrow(),
                path,
                compression=known,
                data_page_version=version,
                use_dictionary=dictionary,
                data_page_size=512,
                write_page_index=True,
            )
            assert odd(path.read_bytes()) is None


def test_a_page_that_claims_too_much_is_odd() -> None:
    """Polars would ask for the memory, and end the whole process if there is not as much."""
    data = packed(pl.DataFrame({"a": list(range(100))}), compression="uncompressed")
    says = set()
    for at in range(4, 60):  # where the header of the first page is
        for bit in range(8):
            said = odd(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            says.add(None if said is None else re.sub(r"-?[\d,]+", "N", said))
    assert {"a page of N values in a column of N", "a page of N bytes", None} <= says


def test_lists_in_lists_without_end_are_no_footer() -> None:
    data = b"\x19" * 5000  # a field that is a list of one list of one list …
    assert (
        read_footer(io.BytesIO(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1")) is None
    )
