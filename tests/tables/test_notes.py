"""Notes: the most important first, each once, at most three under a result."""

from __future__ import annotations

import copy
import json

from karat.tables.notes import Concern, Note, as_lines, first_notes, in_order, prefixed

EXPLAINS = "BCa bootstrap intervals"
UNJUDGED = Note("unjudged documents could change this", Concern.UNJUDGED)
MISSING = Note("3 queries not in the run", Concern.QUERIES)
FEW = Note("fewer than 25 queries", Concern.FEW)
IDS = Note("no retrieved document is judged", Concern.INPUT)


def test_notes_are_in_order_of_importance_and_each_is_there_once() -> None:
    assert in_order([EXPLAINS, FEW, MISSING, "also", FEW, UNJUDGED, IDS]) == [
        IDS, MISSING, UNJUDGED, FEW, EXPLAINS, "also",
    ]  # fmt: skip


def test_three_are_shown_and_the_others_counted() -> None:
    assert first_notes([EXPLAINS, FEW, MISSING]) == ([MISSING, FEW, EXPLAINS], 0)
    assert first_notes([EXPLAINS, FEW, MISSING, UNJUDGED, FEW]) == ([MISSING, UNJUDGED, FEW], 1)
    assert as_lines([EXPLAINS, FEW, MISSING, UNJUDGED, "also"])[2:] == [
        f"· {FEW}",
        "2 more notes: .notes",
    ]
    assert as_lines([FEW, MISSING]) == [f"· {MISSING}", f"· {FEW}"]


def test_a_note_keeps_its_concern_when_it_is_prefixed_or_copied() -> None:
    for note in (prefixed("bm25: ", MISSING), copy.deepcopy(MISSING)):
        assert isinstance(note, Note)
        assert note.concern is Concern.QUERIES
    assert in_order([EXPLAINS, prefixed("bm25: ", MISSING)])[0] == "bm25: 3 queries not in the run"
    assert json.dumps([MISSING]) == '["3 queries not in the run"]'
