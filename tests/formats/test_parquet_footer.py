"""The footer of Parquet files: as Polars writes it, and as strangers break it."""

from __future__ import annotations

import io

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from karat.formats.parquet_footer import read_footer


def packed(frame: pl.DataFrame, **how: int) -> bytes:
    """The frame as Parquet."""
    stream = io.BytesIO()
    frame.write_parquet(stream, **how)  # type: ignore[arg-type]
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
