"""A shop whose release has users in its A/B test, and one that nothing was gathered for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.release_road import GATE, POLICY, Effect, Road, make_road
from tests.web.conftest import Clock

from karat.workflows.release import pipeline
from karat.workflows.release.pipeline import Release
from karat.workflows.workspace.workspace import Workspace


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Road:
    """A day into the A/B test of ``hybrid``, whose stage in shadow was skipped by ben."""
    road = make_road(tmp_path_factory.mktemp("road") / "shop", users=400)
    road.start()
    road.run()
    road.review()
    if road.call(Release.status).stage == "shadow":
        road.call(Release.skip, by="ben", reason="no shadow traffic")
    road.run()
    road.live(1, Effect(lift=0.1))
    road.run()
    road.start("synonyms", "same", path='path = "synonyms.json"')
    return road


@pytest.fixture
def road(walked: Road, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Road:
    monkeypatch.delenv("KARAT_STORE", raising=False)
    folder = Path(shutil.copytree(walked.folder, tmp_path / "shop"))
    return Road(folder, users=walked.users, now=walked.now)


@pytest.fixture
def workspace(road: Road) -> Path:
    return road.folder


@pytest.fixture
def clock(road: Road) -> Clock:
    return Clock(road.now)


def begin(opened: Workspace, *, now: int, name: str = "newer") -> None:
    """Start a release of ``new`` for ``old`` in the shop of all pages."""
    root = opened.workspace.root
    (root / "gate.toml").write_text(GATE)
    (root / "release.toml").write_text(POLICY)
    pipeline.start(opened, name, "old", "new", root / "release.toml", by="olga", now=now)
