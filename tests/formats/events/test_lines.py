"""Lines in chunks: whatever their size, and wherever a chunk ends, the same lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karat.formats.events import lines as event_lines
from karat.formats.events.lines import lines
from karat.formats.tables.source import Source

SAME_PATH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@SAME_PATH
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=30).filter(lambda sizes: sum(sizes) > 0),
    st.booleans(),
    st.integers(1, 60),
    st.integers(1, 60),
)
def test_short_lines_come_out_and_long_ones_are_named(
    tmp_path: Path, sizes: list[int], ends: bool, size: int, piece: int
) -> None:
    """A line longer than 20 bytes is too long here."""
    data = b"\n".join(b"x" * each for each in sizes) + (b"\n" if ends else b"")
    path = tmp_path / "a"
    path.write_bytes(data)
    numbered = list(enumerate(data.split(b"\n")[: -1 if ends else None], 1))
    short = [(at, line) for at, line in numbered if len(line) <= 20 and line]
    long = [at for at, line in numbered if len(line) > 20]
    with pytest.MonkeyPatch.context() as patch, Source(path) as source:
        patch.setattr(event_lines, "LONGEST", 20)
        cut = [data[at : at + piece] for at in range(0, len(data), piece)]
        patch.setattr(source, "pieces", lambda: iter(cut))
        chunks = list(lines(source, size))
    found = [
        (at, line)
        for chunk in chunks
        for at, line in enumerate(chunk.data.split(b"\n"), chunk.first)
        if line
    ]
    assert found == short
    assert [at for chunk in chunks for at in chunk.long] == long
