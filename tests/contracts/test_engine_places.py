"""Every engine puts a document that is clicked again at the same place."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.contracts.conftest import MOSTLY_ON_POLARS
from tests.contracts.test_engines import everything, rows

from karat.engines.frames.engine import Engine

pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)


@MOSTLY_ON_POLARS
def test_a_document_clicked_again_counts_at_the_best_place_that_is_known(
    engine: Engine, stored: ModuleType, tmp_path: Path
) -> None:
    events = rows(
        # At 12, after a repetition of the search at 3; another at 7.
        ("again", "06-01 10:00:00", "search"),
        ("again", "06-01 10:00:05", "click"),
        ("again", "06-01 10:01:00", "search"),
        ("again", "06-01 10:01:05", "click"),
        ("again", "06-01 10:01:10", "click"),
        # First without a position, then at 2, then at 9.
        ("mixed", "06-01 10:00:00", "search"),
        ("mixed", "06-01 10:00:05", "click"),
        ("mixed", "06-01 10:00:50", "click"),
        ("mixed", "06-01 10:00:55", "click"),
        # The same document in another search is another click.
        ("mixed", "06-01 11:00:00", "search"),
        ("mixed", "06-01 11:00:05", "click"),
        doc_id=[None, "d", None, "d", "e", None, "d", "d", "d", None, "d"],
        position=[None, 12, None, 3, 7, None, None, 2, 9, None, 1],
        query_key=["pie", None, "pie", None, None, "pie", None, None, None, "tart", None],
        returned=[20, None, 20, None, None, 20, None, None, None, 20, None],
    )
    events = events.with_columns(time_us=stored.when()).drop("time")
    found = everything(stored.store(tmp_path, events), engine)
    clicks = found["clicks"].select("user_key", "intent", "time_us", "doc_id", "position")
    again, mixed = stored.key_of("again"), stored.key_of("mixed")
    began = {"again": 1_780_308_000, "tart": 1_780_311_600}  # 10:00 and 11:00 on 2026-06-01
    wanted = [
        # When and how long it was first read is that of the first click.
        (again, 1, (began["again"] + 5) * 1_000_000, "d", 3),
        (again, 1, (began["again"] + 70) * 1_000_000, "e", 7),
        (mixed, 1, (began["again"] + 5) * 1_000_000, "d", 2),
        (mixed, 2, (began["tart"] + 5) * 1_000_000, "d", 1),
    ]
    assert sorted(clicks.rows()) == sorted(wanted)
    searches = found["searches"].select("user_key", "intent", "first_rank", "paul_5")
    # 0.5^2 + 0.5^6; 0.5^1; 0.5^0.
    assert sorted(searches.rows()) == sorted(
        [(again, 1, 3, 0.25 + 0.015625), (mixed, 1, 2, 0.5), (mixed, 2, 1, 1.0)]
    )
