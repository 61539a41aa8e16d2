"""Moving traffic: a rollback is the last word, whatever else runs, and whenever it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from karat.clients.switch import SwitchError, put, read
from karat.errors import InputError, KaratError, UsageError
from karat.experiments.assignment import Rollout
from karat.formats.own.history import locked
from karat.formats.own.release_files import LOCK, TOMBSTONE, tombstone, write_switch
from karat.tables.release.pipeline import SwitchConfig
from karat.workflows.release import _switching
from karat.workflows.release._switching import drive, roll_back_now, stopped

ROOT = Path(__file__).resolve().parents[3]
BASELINE = Rollout("new-ranker", "s")
WANT = replace(BASELINE, control_share=0.25, treatment_share=0.25)
FILE = SwitchConfig("file", path="rollout.json", timeout=1.0)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, and programs of a shell")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_switch(tmp_path, "v2", FILE, BASELINE)
    return tmp_path


def roll_back(root: Path, by: str = "anna") -> None:
    roll_back_now(root, "v2", by=by, reason="clicks fell", now=1_800_000_000_000_000)


def test_after_a_rollback_the_switch_stays_stopped(root: Path) -> None:
    assert drive(root, "v2", FILE, WANT) == WANT
    assert read(FILE, root) == WANT
    roll_back(root)
    assert read(FILE, root) == stopped(BASELINE)
    assert drive(root, "v2", FILE, WANT) == stopped(WANT)
    assert read(FILE, root) == stopped(BASELINE)
    roll_back(root, by="ben")
    record = tombstone(root, "v2")
    assert record is not None
    assert (record.by, record.reason, record.at_us) == (
        "anna",
        "clicks fell",
        1_800_000_000_000_000,
    )
    assert read(FILE, root) == stopped(BASELINE)


def test_the_tombstone_is_written_before_the_switch_is_set(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        assert tombstone(root, "v2") is not None
        raise SwitchError("the webhook did not accept it", fix="start its receiver")

    monkeypatch.setattr(_switching, "put", unreachable)
    with pytest.raises(SwitchError) as failed:
        roll_back(root)
    assert str(failed.value) == (
        "users may still get the candidate of v2: the webhook did not accept it. The rollback is "
        "recorded in releases/v2/rollback.json, and karat release run keeps trying\n"
        "  fix: start its receiver"
    )


@pytest.mark.parametrize("content", [None, b"{"])
def test_without_its_file_a_rollback_is_recorded(root: Path, content: bytes | None) -> None:
    path = root / "releases/v2/switch.json"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(SwitchError, match=r"switch\.json.* The rollback is recorded"):
        roll_back(root)
    assert drive(root, "v2", FILE, WANT) == stopped(WANT)


def test_an_unknown_release_changes_nothing(root: Path) -> None:
    for call in (
        lambda: roll_back_now(root, "v3", by="anna", reason="", now=1),
        lambda: roll_back_now(root, "../v2", by="anna", reason="", now=1),
        lambda: drive(root, "v3", FILE, WANT),
    ):
        with pytest.raises(UsageError):
            call()
    assert [path.name for path in (root / "releases").iterdir()] == ["v2"]
    assert [path.name for path in (root / "releases/v2").iterdir()] == ["switch.json"]


def test_a_tombstone_that_cannot_be_written_stops_the_candidate_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise InputError("cannot be written: Read-only file system", file="rollback.json")

    monkeypatch.setattr(_switching, "write_tombstone", refused)
    drive(root, "v2", FILE, WANT)
    with pytest.raises(SwitchError, match=r"is stopped, but the rollback is not recorded.*Read-o"):
        roll_back(root)
    assert read(FILE, root) == stopped(BASELINE)
    (root / "rollout.json").unlink()
    (root / "rollout.json").mkdir()
    with pytest.raises(SwitchError, match=r"Is a directory.* is not recorded either: .*Read-only"):
        roll_back(root)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write it")
def test_a_folder_that_is_read_only(root: Path) -> None:
    folder = root / "releases/v2"
    folder.chmod(0o500)
    try:
        with pytest.raises(SwitchError, match="not recorded"):
            roll_back(root)
        assert read(FILE, root) == stopped(BASELINE)
        with pytest.raises(KaratError, match="cannot be written"):
            drive(root, "v2", FILE, WANT)
    finally:
        folder.chmod(0o700)


def test_a_process_that_hangs_does_not_prevent_a_rollback(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_switching, "MARGIN", -1.9)  # 0.1 s
    put(FILE, root, WANT)
    with locked(root / "releases/v2" / LOCK):
        with pytest.raises(SwitchError, match="another process has been setting the switch of v2"):
            drive(root, "v2", FILE, WANT)
        with pytest.raises(SwitchError, match="is stopped and the rollback is recorded, but ano"):
            roll_back(root)
    assert read(FILE, root) == stopped(BASELINE)
    roll_back(root)


def test_a_rollback_during_a_drive_that_did_not_wait(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drive looked for the tombstone before it was there, and sets the switch last."""

    def slow(*args: object, **options: object) -> None:
        if not (root / "releases/v2" / TOMBSTONE).exists():
            monkeypatch.setattr(_switching, "MARGIN", -1.9)
            with pytest.raises(SwitchError, match="another process"):
                roll_back(root)
        put(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(_switching, "put", slow)
    assert drive(root, "v2", FILE, WANT) == stopped(WANT)
    assert read(FILE, root) == stopped(BASELINE)


# A process forks the ones that fight, so that Python starts once; fsync is real in it.
FIGHT = r"""
import atexit, os, random, signal, sys, time
from dataclasses import replace
from pathlib import Path
from karat.clients.switch import put, read
from karat.experiments.assignment import Rollout
from karat.formats.own.release_files import tombstone, write_switch
from karat.tables.release.pipeline import SwitchConfig
from karat.workflows.release._switching import drive, roll_back_now, stopped

top, rounds = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(7)
alive = set()
FILE = SwitchConfig("file", path="rollout.json")
BASELINE = Rollout("new-ranker", "s")
WANT = replace(BASELINE, control_share=0.25, treatment_share=0.25)
OVER = stopped(BASELINE)

def forked(act):
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        except BaseException as error:
            print("failed:", repr(error), flush=True)
            os._exit(1)
    alive.add(pid)
    return pid

def forever(act):
    def loop():
        while True:
            act()
            time.sleep(0.001)  # nor does karat release run set it without a pause
    return loop

def killed(pid):
    os.kill(pid, signal.SIGKILL)
    ended(pid)

def ended(pid):
    alive.discard(pid)
    return os.waitpid(pid, 0)[1]

@atexit.register
def none_goes_on():
    for pid in list(alive):
        killed(pid)

def fight(root):  # drive in a loop against a rollback
    driving = [forked(forever(lambda: drive(root, "v2", FILE, WANT))) for _ in range(2)]
    time.sleep(chance.random() * 0.02)
    rolling = forked(roll_back(root))
    assert ended(rolling) == 0
    assert read(FILE, root) == OVER, "right after the rollback"
    time.sleep(0.01)
    assert read(FILE, root) == OVER, "while the others go on"
    for pid in driving:
        killed(pid)
    assert read(FILE, root) == OVER, "after they were killed"

def roll_back(root):
    return lambda: roll_back_now(root, "v2", by="anna", reason="clicks fell", now=5)

def kill(root):  # a rollback that is killed at any point, while another process drives
    put(FILE, root, WANT)
    driving = forked(forever(lambda: drive(root, "v2", FILE, WANT)))
    rolling = forked(roll_back(root))
    time.sleep(chance.random() ** 2 * 3 * took)
    killed(rolling)
    found = tombstone(root, "v2")
    if found is not None:
        if chance.random() < 0.5:
            assert drive(root, "v2", FILE, WANT) == OVER
            assert read(FILE, root) == OVER, "by the next drive"
    killed(driving)
    assert read(FILE, root) in (WANT, OVER)
    roll_back(root)()
    again = tombstone(root, "v2")
    assert again is not None and (found is None or found.by in (again.by, ""))
    assert read(FILE, root) == OVER, "called again"
    assert drive(root, "v2", FILE, WANT) == OVER
    return found is not None

def torn(root):  # a put that is killed: the file is the old or the new one
    put(FILE, root, WANT)
    putting = forked(forever(lambda: (put(FILE, root, OVER), put(FILE, root, WANT))))
    time.sleep(0.002 + chance.random() * took)
    killed(putting)
    assert read(FILE, root) in (WANT, OVER)
    put(FILE, root, OVER)
    assert read(FILE, root) == OVER

def orphan(root):  # a command goes on when karat is killed, and is waited for
    script = "cat > got.$$; [ -e began ] || { touch began; sleep 0.3; }; mv got.$$ rollout.json"
    config = SwitchConfig("command", command=("sh", "-c", script))
    write_switch(root, "v2", config, BASELINE)
    driving = forked(lambda: drive(root, "v2", config, WANT))
    while not (root / "began").exists():
        time.sleep(0.01)
    killed(driving)
    assert not (root / "rollout.json").exists(), "the command has not ended"
    roll_back(root)()
    assert read(FILE, root) == OVER
    time.sleep(0.4)
    assert read(FILE, root) == OVER, "the command of the killed process was not the last one"

def new(name):
    root = top / name
    root.mkdir()
    write_switch(root, "v2", FILE, BASELINE)
    return root

roll_back(new("first"))()
began = time.monotonic()
roll_back(new("timed"))()
took = time.monotonic() - began
orphan(new("orphan"))
seen = [0, 0]
for number in range(rounds):
    fight(new(f"fight{number}"))
    seen[kill(new(f"kill{number}"))] += 1
    torn(new(f"torn{number}"))
print("fine", *seen)
"""


def test_processes_that_fight_and_are_killed(tmp_path: Path, *, deep: bool) -> None:
    rounds = 200 if deep else 10
    done = subprocess.run(
        [sys.executable, "-c", FIGHT, str(tmp_path), str(rounds)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    fine, before, after = done.stdout.split()
    assert fine == "fine", done.stdout
    assert int(before) + int(after) == rounds
    assert not deep or min(int(before), int(after)) > 0, "kills before and after the tombstone"
