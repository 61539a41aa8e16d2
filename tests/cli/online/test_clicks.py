"""karat clicks, as typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.click_traffic import research_form, traffic
from tests.event_stores import keep_events

Typed = Callable[..., Any]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return research_form(traffic(500), tmp_path / "pages.txt")


def test_the_keys_that_others_read(typed: Typed, pages: Path) -> None:
    found = json.loads(typed(f"clicks fit {pages} --model PBM --held-out {pages} -f json").out)
    assert {"model", "log_likelihood", "perplexity", "perplexity_by_rank"} < found.keys()
    assert {"examination", "identified", "seconds"} < found.keys()
    assert found["model"] == "PBM"
    assert found["identified"] is True
    assert {"rank", "value", "ci_low", "ci_high"} < found["examination"][1].keys()
    assert found["examination"][0]["ci_low"] is None
    assert found["unseen"] == 0


def test_positions_that_are_not_identified_are_no_error(typed: Typed, tmp_path: Path) -> None:
    path = tmp_path / "fixed.txt"
    path.write_text("q\ta,b : a\nq\ta,b : b\n")
    done = typed(f"clicks fit {path}")
    assert done.out.startswith("Positions are not identified: documents at rank 2 were never shown")
    found = json.loads(typed(f"clicks fit {path} -f json").out)
    assert (found["identified"], found["examination"]) == (False, None)
    assert found["perplexity"] > 1


def test_an_event_log(typed: Typed, tmp_path: Path) -> None:
    keep_events(tmp_path / "events", traffic(600))
    assert "fix: name events" in typed("clicks fit .", code=2).err
    done = typed("clicks fit events --by device --randomised order=random --only device=phone")
    assert "Use examination from" in done.out
    assert "Examination by device" in done.out
    assert "only searches with device=phone are counted" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    md = typed("clicks fit events --from 2026-09-04 --to 2026-09-04 --depth 3 -f md").out
    assert md.startswith("**Rank 3 is looked at")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--model PBN", "did you mean PBM"),
        ("--only device", "--only device: no value given"),
        ("--by device", "by needs an event log"),
        ("--engine duckdb", "engine needs an event log"),
    ],
)
def test_mistakes(typed: Typed, pages: Path, options: str, said: str) -> None:
    assert said in typed(f"clicks fit {pages} {options}", code=2).err


def test_a_damaged_line(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("q\ta : a\nq\ta,,b : a\n")
    error = typed("clicks fit log.txt", code=2).err
    assert "log.txt, line 2: an empty document id" in error
    assert "fix: write each page as" in error


def test_the_catalogue(typed: Typed) -> None:
    assert "SDBN" in typed("clicks models").out
    one = json.loads(typed("clicks models pbm -f json").out)
    assert one["name"] == "PBM"
    assert len(json.loads(typed("clicks models -f json").out)) == 8
    assert typed("clicks models dbn -f md").out.startswith("## DBN")
    assert "did you mean" in typed("clicks models sdbm", code=2).err
