"""Faults at every transition: afterwards ledger and switch agree, nobody has a failed candidate."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.release_road import DAY, Road, make_road

from karat.cli.main import karat
from karat.errors import KaratError
from karat.formats.own.release_files import tombstone
from karat.release.pipeline import ReleaseState, rollout_of
from karat.workflows.release import pipeline
from karat.workflows.release._switching import roll_back_now
from karat.workflows.release.pipeline import Release


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop without traffic, so that a round is quick."""
    folder = tmp_path_factory.mktemp("faults") / "shop"
    make_road(folder, traffic=False)
    return folder


@pytest.fixture
def road(made: Path, tmp_path: Path) -> Road:
    shutil.copytree(made, tmp_path / "shop")
    return Road(tmp_path / "shop")


def state_of(road: Road) -> ReleaseState:
    with road.open() as opened:
        return pipeline.state_of(opened, "hybrid")


def at_switch(road: Road) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(road.rollout.read_bytes())
    return found


def agree(road: Road) -> None:
    """After a round, the switch is where the ledger says, and a tombstone is in the ledger."""
    road.now += 2 * pipeline.LEASE_US
    road.run()
    state = state_of(road)
    assert at_switch(road) == asdict(rollout_of(state))
    if tombstone(road.folder, "hybrid") is not None:
        assert state.rolled_back is not None
        assert at_switch(road)["stopped"]
        assert at_switch(road)["treatment_share"] == 0


def skip(road: Road, stage: str) -> Any:
    return road.call(Release.skip, by="anna", reason="a test", stage=stage)


def to(road: Road, stage: str) -> None:
    """Start a release, and skip to a stage."""
    road.start()
    for each in ("offline", "shadow", "ab", "ramp_50", "ramp_100"):
        if each == stage:
            return
        if each == "ab":
            road.review()
        skip(road, each)


def roll_back(road: Road) -> None:
    roll_back_now(road.folder, "hybrid", by="anna", reason="wrong prices", now=road.now)


STEPS: dict[str, tuple[str, Callable[[Road], Any]]] = {
    "start": ("", lambda road: road.start()),
    "to shadow": ("offline", lambda road: skip(road, "offline")),
    "to the ramp": ("ab", lambda road: (road.review(), skip(road, "ab"))),
    "to all users": ("ramp_100", lambda road: skip(road, "ramp_100")),
    "a round": ("ramp_50", lambda road: road.run()),
    "a rollback": ("ramp_50", roll_back),
    "a rollback by the verb": (
        "done",
        lambda road: road.roll_back("wrong prices"),
    ),
}


def killed(act: Callable[[], Any], seconds: float) -> None:
    """Do something in a process of its own, and kill that after some seconds."""
    child = os.fork()
    if not child:
        try:
            act()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_moment(step: str, made: Path, tmp_path: Path, deep: bool) -> None:
    before, act = STEPS[step]
    rng = random.Random(step)
    for number in range(30 if deep else 1):
        road = Road(tmp_path / str(number))
        shutil.copytree(made, road.folder)
        if before:
            to(road, before)
        was = state_of(road) if before else None
        killed(lambda road=road: act(road), rng.uniform(0, 0.15))
        if before:
            agree(road)
            after = state_of(road)
            assert was is not None
            assert after.seq >= was.seq
        else:  # a start that was killed can be repeated, or is there
            with road.open() as opened:
                there = "hybrid" in pipeline.release_names(opened)
            if not there:
                road.start()
            agree(road)
        shutil.rmtree(road.folder)


def test_the_database_is_away_before_a_rollback(
    road: Road, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    to(road, "ramp_50")
    assert at_switch(road)["treatment_share"] == 0.5
    monkeypatch.setenv("KARAT_STORE", "postgresql+psycopg://nobody@127.0.0.1:9/none")
    command = ["release", "rollback", "hybrid", "--reason", "wrong prices", "-w", str(road.folder)]
    karat.main(command, standalone_mode=False)
    assert at_switch(road)["stopped"]
    told = capsys.readouterr()
    assert "hybrid is rolled back" in told.out
    assert "the ledger could not be written" in told.err
    monkeypatch.delenv("KARAT_STORE")
    agree(road)
    state = state_of(road)
    assert state.rolled_back is not None
    assert state.rolled_back.reason == "wrong prices"


def test_the_database_goes_away_during_a_rollback(
    road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    to(road, "ramp_50")
    real = Release.adopt

    def away(*_: Any) -> Any:
        raise KaratError("the store cannot be reached")

    monkeypatch.setattr(Release, "adopt", away)
    found = road.roll_back("wrong prices")
    assert (found.status, found.problem) == (None, "the store cannot be reached")
    assert at_switch(road)["stopped"]
    monkeypatch.setattr(Release, "adopt", real)
    agree(road)


def test_an_older_database_does_not_ship_again(road: Road) -> None:
    """The tombstone outranks a ledger that was restored from before the rollback."""
    to(road, "ramp_50")
    shutil.copy(road.folder / "karat.db", road.folder / "backup.db")
    road.roll_back("wrong prices")
    for file in road.folder.glob("karat.db*"):
        file.unlink()
    shutil.move(road.folder / "backup.db", road.folder / "karat.db")
    status = road.call(Release.status)
    assert (status.state, status.share) == ("rolled_back", 0.0)
    agree(road)


class _Switch(BaseHTTPRequestHandler):
    up = True
    rollouts: list[dict[str, Any]] = []  # noqa: RUF012 - of the one test that uses it

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if type(self).up:
            type(self).rollouts.append(json.loads(body))
        self.send_response(200 if type(self).up else 400)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def switch() -> Iterator[str]:
    _Switch.up, _Switch.rollouts = True, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Switch)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/rollout"
    server.shutdown()
    server.server_close()


def test_an_unreachable_switch_is_reported_until_it_is_there(road: Road, switch: str) -> None:
    road.policy = road.policy.replace(
        'kind = "file"\npath = "rollout.json"', f'kind = "webhook"\nurl = "{switch}"'
    )
    to(road, "ramp_50")
    assert _Switch.rollouts[-1]["treatment_share"] == 0.5
    _Switch.up = False
    with pytest.raises(KaratError, match="users may still get the candidate"):
        road.roll_back("wrong prices")
    assert state_of(road).rolled_back is not None  # the ledger has it nevertheless
    road.now += 2 * pipeline.LEASE_US
    status = road.run()
    assert (status.state, status.switched) == ("rolled_back", False)
    assert "400" in status.problem
    seq = state_of(road).seq
    road.run()
    assert state_of(road).seq == seq  # a problem is recorded once
    _Switch.up = True
    road.now += DAY
    status = road.run()
    assert (status.switched, status.problem) == (True, "")
    assert _Switch.rollouts[-1]["stopped"]
    count = len(_Switch.rollouts)
    road.run()
    assert len(_Switch.rollouts) == count  # it is there: nothing is sent again


def test_two_rounds_at_once(road: Road) -> None:
    to(road, "ramp_50")
    errors: list[BaseException] = []

    def round_() -> None:
        try:
            with road.open() as opened:
                pipeline.run(opened, now=road.now)
        except BaseException as error:  # noqa: BLE001 - whatever it is
            errors.append(error)

    threads = [threading.Thread(target=round_) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    agree(road)


def test_the_second_operator_is_told(road: Road) -> None:
    to(road, "offline")
    with road.open() as opened:
        first = Release.of(opened, "hybrid", road.now)
        skip(road, "offline")
        with pytest.raises(pipeline.Overtaken, match="anna took another step of hybrid meanwhile"):
            first.record("skipped", by="ben", reason="me too", stage="offline")
