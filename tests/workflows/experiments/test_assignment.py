"""karat.assign: an arm by a rollout file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.errors import InputError
from karat.experiments.assignment import Rollout, arm_of, rollout_text
from karat.workflows.experiments import assignment
from karat.workflows.experiments.assignment import read_rollout


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


def test_it_imports_nothing_heavy() -> None:
    code = "import sys, karat; karat.assign; print({'numpy', 'polars', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
