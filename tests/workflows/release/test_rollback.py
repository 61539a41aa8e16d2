"""A rollback that comes before everything else: without a database, or with a broken switch."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.release_road import Road, make_road

from karat.clients.switch import SwitchError
from karat.errors import KaratError, UsageError
from karat.workflows.release import pipeline
from karat.workflows.release.pipeline import Release


@pytest.fixture
def road(tmp_path: Path) -> Road:
    made = make_road(tmp_path / "shop", traffic=False)
    made.start()
    return made


def back(road: Road, opening: Any, name: str = "hybrid") -> Any:
    return pipeline.roll_back_first(
        road.folder, name, opening, by="anna", reason="wrong prices", now=road.now
    )


def stopped(road: Road) -> bool:
    return bool(json.loads(road.rollout.read_text())["stopped"])


def away() -> Any:
    raise KaratError("the store did not answer\n  fix: start it")


def test_users_first_then_the_ledger(road: Road) -> None:
    assert not stopped(road)

    def opening() -> Any:
        assert stopped(road), "before the workspace is opened"
        return road.open()

    found = back(road, opening)
    assert found.problem == ""
    assert (found.status.state, found.status.reason) == ("rolled_back", "wrong prices")


def test_without_a_database_the_next_round_writes_it(road: Road) -> None:
    found = back(road, away)
    assert stopped(road)
    assert (found.status, found.problem) == (None, "the store did not answer")
    status = road.call(Release.status)
    assert status.state == "rolled_back"
    assert [each.kind for each in road.call(Release.choices, by="anna")] == ["rolled_back"]
    road.run()
    assert road.call(Release.choices, by="anna") == []
    assert road.call(Release.status).step.reason == "it is rolled back"


def test_a_switch_that_fails_is_an_error_and_the_ledger_knows(road: Road) -> None:
    road.rollout.unlink()
    road.rollout.mkdir()
    with pytest.raises(SwitchError, match="users may still get the candidate"):
        back(road, road.open)
    with road.open() as opened:
        assert pipeline.state_of(opened, "hybrid").rolled_back is not None
    with pytest.raises(SwitchError, match="users may still get the candidate"):
        back(road, away)


def test_an_unknown_release_opens_nothing(road: Road) -> None:
    with pytest.raises(UsageError, match="hybird"):
        back(road, nullcontext, "hybird")
