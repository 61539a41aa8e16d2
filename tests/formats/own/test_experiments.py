"""Plans of experiments, and rollout files."""

from __future__ import annotations

from pathlib import Path

import pytest

import karat
from karat.clients import assignment
from karat.errors import InputError
from karat.experiments.assignment import Rollout, arm_of
from karat.formats.own.experiments import read_plan, read_rollout, rollout_text
from karat.online.rules import DAY
from karat.tables.experiments.experiment import Guard


def plan(folder: Path, text: str):
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_a_whole_plan(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        '[experiment]\ncontrol = "a"\ntreatment = "b"\nshares = [90, 10]\nusers = 5000\nweeks = 2\n'
        'start = 2026-11-02\nend = "2026-11-15"\nwindow = "7d"\nbefore = "7d"\nalpha = 0.1\n'
        'decide = ["SAT"]\ndiagnose = ["Dwell"]\n[guard]\nCTR = "2%"\nErrorRate = 0.002\n'
        "[cap]\nRevenuePerSearch = 500\n",
    )
    assert (found.control, found.treatment, found.name) == ("a", "b", "plan")
    assert (found.shares, found.users, found.weeks) == ((90.0, 10.0), 5000, 2)
    assert (found.start, found.end) == (20_759, 20_772)  # days since 1970-01-01
    assert (found.window_us, found.before_us, found.alpha) == (7 * DAY, 7 * DAY, 0.1)
    assert found.guards == (Guard("CTR", 0.02, relative=True), Guard("ErrorRate", 0.002))
    assert found.caps == {"RevenuePerSearch": 500.0}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("", "no control"),
        ('control = "a"', "no treatment"),
        ('control = "a"\ntreatment = "b"\nusers = 0', "line 4: .experiment. users is 0"),
        ('control = "a"\ntreatment = "b"\nshares = [1]', "line 4: .experiment. shares is"),
        ('control = "a"\ntreatment = "b"\nwindow = "soon"', "'soon' is not a duration"),
        ('control = "a"\ntreatment = "b"\nstart = "x"', "start: "),
        ('control = "a"\ntreatment = "b"\nalphas = 1', "unknown key 'alphas'"),
        ('control = "a"\ntreatment = "b"\n[guard]\nCTR = "two"', "line 5: .guard. CTR is 'two'"),
        ('control = "a"\ntreatment = "b"\n[cap]\nCTR = "x"', ".cap. CTR is 'x', not a number"),
    ],
)
def test_wrong_plans(tmp_path: Path, line: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        plan(tmp_path, f"[experiment]\n{line}\n")


def test_a_rollout_file(tmp_path: Path) -> None:
    path = tmp_path / "rollout.json"
    rollout = Rollout("ranker", "s1", control_share=0.05, treatment_share=0.05)
    path.write_text(rollout_text(rollout), encoding="utf-8")
    assert read_rollout(path) == rollout
    assert karat.assign("u1", path) == arm_of("u1", rollout)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"experiment": "e"}', '{"experiment": 1, "salt": "s"}',
             '{"experiment": "e", "salt": "s", "stopped": "yes"}',
             '{"experiment": "e", "salt": "s", "treatment_share": 2}']
)  # fmt: skip
def test_no_rollout_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rollout.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        karat.assign("u1", path)


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "FRESH", 0.0)
    path = tmp_path / "rollout.json"
    path.write_text(rollout_text(Rollout("e", "s", treatment_share=1.0)), encoding="utf-8")
    assert karat.assign("u1", path) == "treatment"
    stopped = Rollout("e", "s", treatment_share=1.0, stopped=True)
    path.write_text(rollout_text(stopped), encoding="utf-8")
    assert karat.assign("u1", path) is None
    path.write_text("half a fi", encoding="utf-8")
    assert karat.assign("u1", path) is None  # what it said last
    path.unlink()
    assert karat.assign("u1", path) is None
