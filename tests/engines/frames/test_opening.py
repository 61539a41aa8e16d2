"""Engines by name, and batches of whole users."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.engines.frames.files import batches_of
from karat.engines.frames.opening import open_engine
from karat.errors import MissingExtra, UsageError
from karat.tables.online.events import EventFile, EventLog


def test_a_strange_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean polars"):
        open_engine("polar")
    assert open_engine(" Polars ").name == "polars"


def test_only_spark_has_a_master() -> None:
    with pytest.raises(UsageError, match="the engine polars has no master"):
        open_engine(master="local[2]")


@pytest.mark.parametrize(
    ("name", "package", "own"),
    [
        ("duckdb", "duckdb", "karat.engines.frames._on_duckdb"),
        ("spark", "pyspark", "karat.engines.frames._on_spark"),
    ],
)
def test_a_package_that_is_lacking_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, own: str
) -> None:
    for module in [each for each in sys.modules if each.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, own, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'karat\[{name}\]'"):
        open_engine(name)


def log_of(*files: EventFile) -> EventLog:
    """A log of files that nobody opens."""
    none = (None,) * 4
    kinds = {"search": 1}
    return EventLog(Path(), files, 1, 0, kinds, (), (), frozenset(), *none, "UTC", False, "1")


WIDTH = st.sampled_from([256, 128, 64, 1])
FILE = st.tuples(WIDTH, st.integers(0, 255), st.integers(0, 5_000)).map(
    lambda made: EventFile(
        "x", made[1] // made[0] * made[0], (made[1] // made[0] + 1) * made[0], made[2]
    )
)


@given(st.lists(FILE, max_size=8), st.integers(1, 10_000))
def test_batches_hold_every_bucket_of_every_file_once(files: list[EventFile], at_once: int) -> None:
    batches = list(batches_of(log_of(*files), at_once))
    for before, after in pairwise(batches):
        assert before.high == after.low
    for each in files:
        if each.rows:
            held = [batch for batch in batches if each in batch.files]
            assert held[0].low <= each.low
            assert each.high <= held[-1].high
            width = sum(min(b.high, each.high) - max(b.low, each.low) for b in held)
            assert width == each.high - each.low
    for batch in batches:
        rows = [
            sum(f.rows / (f.high - f.low) for f in batch.files if f.low <= bucket < f.high)
            for bucket in range(batch.low, batch.high)
        ]
        # A bucket that is too large by itself is read by itself, and never split.
        assert sum(rows) <= at_once + 1e-6 or sum(each > 0 for each in rows) == 1
