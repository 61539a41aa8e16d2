"""Pages of experiments: the list, one of them, planning and interleaving."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.experiment_traffic import traffic
from tests.net.visible import visible
from tests.web.conftest import Browser, ClientOf
from tests.web.online_log import plan_experiment, put_users

from karat.workflows.online.import_events import import_events


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karat.web.online.log.WAIT_S", 60.0)
    monkeypatch.setattr("karat.web.online.log.LONGEST_S", 60.0)


@pytest.fixture
def engineer(client_of: ClientOf) -> Browser:
    return client_of("engineer")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traffic") / "log.parquet"
    traffic(users=400, lift=0.12, lost=0.0, seed=4).write_parquet(path)
    return path


def test_without_a_plan_the_page_says_how_to_write_one(workspace: Path, engineer: Browser) -> None:
    assert "No events yet" in visible(engineer.get("/experiments").text)
    put_users(workspace)
    said = visible(engineer.get("/experiments").text)
    assert "experiments/ranker.toml" in said
    assert engineer.get("/experiments/ranker").status_code == 404
    assert engineer.get("/api/experiments").json()["items"] == []


def test_effects_after_health(workspace: Path, engineer: Browser, log: Path) -> None:
    import_events(workspace / "events", [log], now=1_800_000_000_000_000)
    plan_experiment(workspace)
    said = visible(engineer.get("/experiments/ranker?by=query_class").text)
    assert "Ship: CTR is better." in said
    assert said.index("Health") < said.index("Decision")
    page = engineer.get("/experiments/ranker?format=json").json()
    result = engineer.get("/api/experiments/ranker").json()
    assert page["result"] == result
    assert (result["verdict"], result["exit_code"]) == ("pass", 0)
    [row] = engineer.get("/experiments?format=json").json()["experiments"]
    assert (row["name"], row["verdict"], row["said"]) == ("ranker", "pass", "CTR is better")
    assert "CTR so far" in said
    planning = visible(engineer.get("/experiments/planning").text)
    assert "Metrics tried on known truths" in planning
    assert engineer.get("/api/experiments/planning").json()["weeks"] == 3


def test_plans_that_are_wrong(workspace: Path, engineer: Browser) -> None:
    """Each in its row, without the folders of the server."""
    put_users(workspace)
    arms = '[experiment]\ncontrol = "a"\ntreatment = "b"\n'
    folder = workspace / "experiments"
    folder.mkdir(exist_ok=True)
    (folder / "planning.toml").write_text(arms, encoding="utf-8")
    (folder / "<b>.toml").write_text(f'{arms}decide = ["Nope"]\n', encoding="utf-8")
    (folder / "gone.toml").write_text(f'{arms}exposures = "gone.csv"\n', encoding="utf-8")
    page = engineer.get("/experiments")
    assert "<b>.toml" not in page.text
    said = visible(page.text)
    assert "planning is the name of a page: rename planning.toml" in said
    assert "experiments/<b>.toml: [experiment] unknown online metric 'Nope'" in said
    assert "its exposures gone.csv cannot be read" in said
    assert str(workspace) not in said


def test_an_unhealthy_experiment_shows_no_effects(
    workspace: Path, engineer: Browser, log: Path
) -> None:
    import_events(workspace / "events", [log], now=1_800_000_000_000_000)
    plan_experiment(workspace, '[experiment]\ncontrol = "a"\ntreatment = "b"\nshares = [90, 10]\n')
    said = visible(engineer.get("/experiments/ranker").text)
    assert "Unhealthy: sample ratio" in said
    assert "has no effects to show" in said
    assert "Decision" not in said


def test_a_plan_with_an_error(workspace: Path, engineer: Browser) -> None:
    put_users(workspace)
    plan_experiment(workspace, '[experiment]\ncontrol = "a"\n')
    [row] = engineer.get("/experiments?format=json").json()["experiments"]
    assert row["verdict"] == "error"
    assert "has no treatment" in row["said"]
    assert "has no treatment" in visible(engineer.get("/experiments/ranker").text)
    assert engineer.get("/api/experiments/ranker").status_code == 400


def test_interleaving_says_what_to_log(workspace: Path, engineer: Browser) -> None:
    put_users(workspace)
    said = visible(engineer.get("/experiments/interleaving").text)
    assert "Log the mark of karat.interleave" in said
